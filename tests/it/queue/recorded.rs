//! What was sent is recorded, whatever stands in between.

use rustix::process::Signal;

use super::kinds::{DEADLINE, Fixture, LONG_DEADLINE, LONG_LEASE};
use super::{Kind, sent};
use crate::support::outside::{line, lines};
use crate::support::{PATIENCE, Process, eventually};

/// A replica has sent these jobs, and the receiver has not answered yet.
async fn sending(fixture: &Fixture, jobs: &[&str]) -> Process {
    let process = fixture.replica("first");
    line(&process, "relay ready").await;
    fixture.receiver.hold();
    for job in jobs {
        fixture.add(job).await;
    }
    eventually(PATIENCE, async || sent(&fixture.receiver).len() == jobs.len()).await;
    process
}

pub async fn outcome_is_recorded_while_checks_fail(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "30s", "18s").await;
    let process = sending(&fixture, &["a"]).await;
    // The checks create the cursor's row again, and may not.
    fixture.owner.batch_execute("REVOKE INSERT ON outbox.cursor FROM relay; DELETE FROM outbox.cursor").await.unwrap();
    line(&process, "cannot look for due work").await;
    fixture.receiver.release();
    eventually(PATIENCE, async || fixture.recorded().await == 1).await;
    assert_eq!(fixture.claims().await, 0);
    fixture.owner.batch_execute("GRANT INSERT ON outbox.cursor TO relay").await.unwrap();
    fixture.add("b").await;
    eventually(PATIENCE * 2, async || fixture.recorded().await == 2).await;
    assert_eq!(sent(&fixture.receiver), ["a", "b"]);
}

/// After the server's clock was set back by an hour, what was written before lies in the future.
pub async fn clock_set_back_while_sending_records_once(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "5s", "3s").await;
    let _process = sending(&fixture, &["a"]).await;
    let Kind { table, begun, .. } = kind;
    let sql = format!(
        "UPDATE {table} SET {begun} = {begun} + interval '1 hour', expires_at = expires_at + interval '1 hour'; \
         UPDATE outbox.cursor SET advanced_at = advanced_at + interval '1 hour', updated_at = updated_at + interval '1 hour'"
    );
    fixture.owner.batch_execute(&sql).await.unwrap();
    fixture.receiver.release();
    eventually(PATIENCE, async || fixture.recorded().await == 1).await;
    fixture.add("b").await;
    eventually(PATIENCE, async || fixture.recorded().await == 2).await;
    assert_eq!((sent(&fixture.receiver), fixture.claims().await), (vec!["a".to_owned(), "b".to_owned()], 0));
}

pub async fn claim_is_renewed_while_record_is_refused(kind: &'static Kind) {
    let fixture = Fixture::new(kind, LONG_DEADLINE, "1200ms").await;
    fixture.refuse("a", "53100").await;
    fixture.add("a").await;
    let process = fixture.replica("first");
    let _second = fixture.replica("second");
    let Kind { table, begun, .. } = kind;
    let old = format!("SELECT count(*) FROM {table} WHERE now() - {begun} > $1::float8 * interval '1 s'");
    let seconds = kind.lease.max(LONG_LEASE).as_secs_f64() * 2.0 + 1.0;
    let is_old = async || fixture.owner.query_one(&old, &[&seconds]).await.unwrap().get::<_, i64>(0) == 1;
    eventually(PATIENCE * 4, is_old).await;
    assert_eq!(sent(&fixture.receiver), ["a"], "{}", process.log());
    fixture.allow().await;
    eventually(PATIENCE * 3, async || fixture.recorded().await == 1).await;
    assert_eq!((sent(&fixture.receiver), fixture.claims().await), (vec!["a".to_owned()], 0));
}

/// What a trigger of the application takes for each makes too long a transaction of all: they are recorded in parts, none twice sent.
pub async fn slow_records_are_made_in_parts(kind: &'static Kind) {
    let mut fixture = Fixture::new(kind, "5s", "3s").await;
    fixture.text = kind.wide(&fixture.text);
    let Kind { table, record, .. } = kind;
    let slow = format!(
        "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF {record} THEN PERFORM pg_sleep(0.05); END IF; \
         IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER slow BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION public.slow()"
    );
    fixture.owner.batch_execute(&slow).await.unwrap();
    for job in 0..200 {
        fixture.add(&format!("job-{job:03}")).await;
    }
    let process = fixture.replica("first");
    let _second = fixture.replica("second");
    eventually(PATIENCE * 6, async || fixture.recorded().await == 200).await;
    let (all, mut distinct) = (sent(&fixture.receiver), sent(&fixture.receiver));
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!((all.len(), distinct.len()), (200, 200), "{}", process.log());
    assert_eq!(fixture.claims().await, 0);
}

/// What a trigger of the application does for some of them takes longer than a call may; nor does another replica send them.
pub async fn slow_record_holds_up_no_other(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "5s", "3s").await;
    let Kind { table, record, job, .. } = kind;
    let slow = format!(
        "CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         IF {record} AND {job} LIKE 'slow%' THEN PERFORM pg_sleep(30); END IF; \
         IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW; END $$; \
         CREATE TRIGGER refuse BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION public.refuse()"
    );
    fixture.owner.batch_execute(&slow).await.unwrap();
    let _process = sending(&fixture, &["slow1", "slow2", "slow3", "a", "b"]).await;
    let _second = fixture.replica("second");
    fixture.receiver.release();
    eventually(PATIENCE * 4, async || fixture.recorded().await == 2).await;
    fixture.add("c").await;
    eventually(PATIENCE * 4, async || fixture.recorded().await == 3).await;
    fixture.allow().await;
    eventually(PATIENCE * 4, async || fixture.recorded().await == 6).await;
    let mut all = sent(&fixture.receiver);
    all.sort_unstable();
    assert_eq!(all, ["a", "b", "c", "slow1", "slow2", "slow3"]);
}

/// A server that ends a refused transaction slowly has reported the error before its locks are free: subtransactions make it slow.
#[tokio::test(flavor = "multi_thread")]
async fn claim_is_renewed_although_the_refused_record_still_has_its_lock() {
    let fixture = Fixture::new(&super::REQUESTS, LONG_DEADLINE, "1200ms").await;
    let slow = "CREATE UNLOGGED TABLE public.slow (n int); GRANT INSERT ON public.slow TO relay; \
                CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.status = 'completed' THEN \
                FOR n IN 1..20000 LOOP BEGIN INSERT INTO public.slow VALUES (n); EXCEPTION WHEN others THEN RAISE; END; END LOOP; \
                RAISE EXCEPTION 'refused' USING ERRCODE = '53100'; END IF; RETURN NEW; END $$; \
                CREATE TRIGGER refuse BEFORE UPDATE ON outbox.request FOR EACH ROW EXECUTE FUNCTION public.refuse()";
    fixture.owner.batch_execute(slow).await.unwrap();
    fixture.add("a").await;
    let process = fixture.replica("first");
    let _second = fixture.replica("second");
    let claimed = "SELECT count(*) FROM outbox.request WHERE status = 'processing'";
    eventually(PATIENCE, async || fixture.count(claimed).await == 1).await;
    let old = "SELECT count(*) FROM outbox.request WHERE now() - claimed_at > interval '15 s'";
    eventually(PATIENCE * 4, async || fixture.count(old).await == 1).await;
    assert_eq!(sent(&fixture.receiver), ["a"], "{}", process.log());
    fixture.allow().await;
    eventually(PATIENCE * 3, async || fixture.recorded().await == 1).await;
    assert_eq!((sent(&fixture.receiver), fixture.claims().await), (vec!["a".to_owned()], 0));
}

pub async fn refused_record_holds_up_no_other(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "5s", "3s").await;
    fixture.refuse("refused", "P0001").await;
    let _process = sending(&fixture, &["refused", "a", "b"]).await;
    fixture.receiver.release();
    eventually(PATIENCE, async || fixture.recorded().await == 2).await;
    fixture.add("c").await;
    eventually(PATIENCE, async || fixture.recorded().await == 3).await;
    fixture.allow().await;
    eventually(PATIENCE * 2, async || fixture.recorded().await == 4).await;
}

/// How long that takes is five minutes, or 25 times as long as the deadline's lock kill.
#[tokio::test(flavor = "multi_thread")]
async fn action_whose_record_is_refused_for_good_is_reported_and_given_up() {
    let fixture = Fixture::new(&super::ACTIONS, "600ms", "360ms").await;
    fixture.refuse("refused", "42501").await;
    fixture.add("refused").await;
    let process = fixture.replica("first");
    let status = "SELECT count(*) FROM outbox.cursor_status \
                  WHERE last_error ->> 'code' = 'postgres_42501' AND last_error ->> 'message' LIKE '%cannot be recorded%'";
    eventually(PATIENCE, async || fixture.count(status).await == 1).await;
    let given_up =
        "cannot record the outcome of an action: on_interrupted of its schedule decides when its claim expires";
    eventually(PATIENCE * 8, async || process.log().contains(given_up)).await;
    fixture.allow().await;
    eventually(PATIENCE * 3, async || fixture.recorded().await == 1).await;
    assert_eq!(fixture.claims().await, 0);
}

pub async fn shutdown_records_outcome_once_possible(kind: &'static Kind) {
    let fixture = Fixture::new(kind, "5s", "3s").await;
    fixture.refuse("a", "53100").await;
    let mut process = sending(&fixture, &["a"]).await;
    process.signal(Signal::TERM);
    line(&process, "draining: running turns end, no new one begins").await;
    fixture.receiver.release();
    line(&process, "cannot record outcomes yet; retrying").await;
    fixture.allow().await;
    let code = tokio::time::timeout(PATIENCE * 3, process.wait()).await.unwrap();
    assert_eq!((code, fixture.recorded().await, fixture.claims().await), (Some(0), 1, 0), "{}", process.log());
}

pub async fn shutdown_with_unrecorded_outcome_exits_1(kind: &'static Kind) {
    let fixture = Fixture::new(kind, DEADLINE, "600ms").await;
    fixture.refuse("a", "53100").await;
    let mut process = sending(&fixture, &["a"]).await;
    process.signal(Signal::TERM);
    fixture.receiver.release();
    let code = tokio::time::timeout(PATIENCE * 3, process.wait()).await.unwrap();
    assert_eq!((code, fixture.recorded().await), (Some(1), 0), "{}", process.log());
    let unrecorded = |line: &serde_json::Value| line["cursor"] == "jobs" && line["outcomes"] == 1;
    assert!(lines(&process).iter().any(unrecorded), "{}", process.log());
}
