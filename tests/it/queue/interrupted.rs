//! A replica is killed, or loses its claim, at each step; another one is there.

use rustix::process::Signal;

use super::kinds::{DEADLINE, Fixture};
use super::{Kind, sent};
use crate::support::outside::line;
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

/// Kills a replica; it has no time to record anything.
async fn kill(process: &mut Process) {
    process.signal(Signal::KILL);
    process.wait().await;
}

/// Another replica does what its kind of work allows for a job that may have been sent.
async fn taken_up(kind: &Kind, fixture: &Fixture) {
    let _second = fixture.replica("second");
    if kind.sent_again {
        eventually(PATIENCE * 3, async || fixture.recorded().await == 1).await;
        assert_eq!(sent(&fixture.receiver), ["a", "a"]);
    } else {
        let unknown = "SELECT count(*) FROM outbox.claim WHERE state = 'unknown'";
        eventually(PATIENCE * 3, async || fixture.count(unknown).await == 1).await;
        assert_eq!(sent(&fixture.receiver), ["a"]);
    }
    assert_eq!(fixture.claims().await, 0);
}

pub async fn kill_while_claiming_sends_once(kind: &'static Kind) {
    let fixture = Fixture::new(kind, DEADLINE, "600ms").await;
    let gate = fixture.database.connect("postgres").await;
    gate.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
    fixture
        .owner
        .batch_execute(&format!(
            "CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
             IF NEW.expires_at IS NOT NULL THEN PERFORM pg_advisory_xact_lock(1); END IF; RETURN NEW; END $$; \
             CREATE TRIGGER wait BEFORE INSERT OR UPDATE ON {} FOR EACH ROW EXECUTE FUNCTION public.wait()",
            kind.table
        ))
        .await
        .unwrap();
    fixture.add("a").await;
    let mut first = fixture.replica("first");
    let claiming = "SELECT count(*) FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database \
                    WHERE d.datname = current_database() AND l.locktype = 'advisory' AND NOT l.granted";
    eventually(PATIENCE, async || fixture.count(claiming).await == 1).await;
    kill(&mut first).await;
    gate.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    fixture.owner.batch_execute(&format!("DROP TRIGGER wait ON {}", kind.table)).await.unwrap();
    assert_eq!((sent(&fixture.receiver).len(), fixture.claims().await), (0, 0));
    let _second = fixture.replica("second");
    eventually(PATIENCE * 3, async || fixture.recorded().await == 1).await;
    assert_eq!((sent(&fixture.receiver), fixture.claims().await), (vec!["a".to_owned()], 0));
}

pub async fn kill_while_sending(kind: &'static Kind) {
    let fixture = Fixture::new(kind, DEADLINE, "600ms").await;
    fixture.receiver.hold();
    fixture.add("a").await;
    let mut first = fixture.replica("first");
    eventually(PATIENCE, async || sent(&fixture.receiver).len() == 1).await;
    kill(&mut first).await;
    fixture.receiver.release();
    taken_up(kind, &fixture).await;
}

pub async fn kill_before_the_record(kind: &'static Kind) {
    let fixture = Fixture::new(kind, DEADLINE, "600ms").await;
    fixture.refuse("a", "53100").await;
    fixture.add("a").await;
    let mut first = fixture.replica("first");
    let accepted = async || fixture.receiver.requests().first().is_some_and(|request| request.status == 200);
    eventually(PATIENCE, accepted).await;
    line(&first, "cannot look for due work").await;
    kill(&mut first).await;
    fixture.allow().await;
    taken_up(kind, &fixture).await;
}

pub async fn lost_claim_is_not_recorded(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "10s", "6s").await;
    let mut process = fixture.replica("first");
    line(&process, "relay ready").await;
    fixture.receiver.hold();
    fixture.add("a").await;
    eventually(PATIENCE, async || sent(&fixture.receiver).len() == 1).await;
    let sql = "SET token = 'theirs', claimed_by = 'other', expires_at = now() + interval '1 hour'";
    assert_eq!(fixture.owner.execute(&format!("UPDATE {} {sql}", kind.table), &[]).await.unwrap(), 1);
    // What stops by itself stops before its claim would have ended.
    let lost = async || ["taken up by another", "claim lost"].iter().any(|said| process.log().contains(said));
    if kind.lease.as_secs() == 10 {
        eventually(PATIENCE, lost).await;
    }
    fixture.receiver.release();
    eventually(PATIENCE, lost).await;
    let theirs = format!("SELECT count(*) FROM {} WHERE token = 'theirs' AND expires_at > now()", kind.table);
    assert_eq!(fixture.count(&theirs).await, 1, "{}", process.log());
    process.signal(Signal::TERM);
    let code = tokio::time::timeout(PATIENCE * 2, process.wait()).await.unwrap();
    assert_eq!(code, Some(kind.after_lost_claim), "{}", process.log());
    assert_eq!(sent(&fixture.receiver), ["a"]);
}

pub async fn run_once_waits_for_another_replica(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "20s", "12s").await;
    let first = fixture.replica("first");
    line(&first, "relay ready").await;
    fixture.receiver.hold();
    fixture.add("a").await;
    eventually(PATIENCE, async || sent(&fixture.receiver).len() == 1).await;
    let once = Process::spawn(&fixture.text, &["run", "--once", "--replica-id", "once", "--timeout", "30s"]);
    line(&once, "relay ready").await;
    // It looks every few milliseconds, and ends as soon as it finds nothing to wait for.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(!once.log().contains("nothing that is due is left"), "{}", once.log());
    fixture.receiver.release();
    let mut once = once;
    let code = tokio::time::timeout(PATIENCE * 2, once.wait()).await.unwrap();
    assert_eq!((code, fixture.recorded().await), (Some(0), 1), "{}", once.log());
    assert_eq!(sent(&fixture.receiver), ["a"]);
    let (code, _, log) = outbox_relay(&fixture.text, &["run", "--once"]).await;
    assert_eq!((code, sent(&fixture.receiver).len()), (Some(0), 1), "{log}");
}
