//! The exit code after an acknowledged row whose settlement failed: 1 when the row is listed as unknown, 0 when it is not.

use std::collections::BTreeSet;

use rustix::process::Signal;

use super::{Stage, guarantee};
use crate::support::outside::lines;
use crate::support::proxy::{Cut, Proxy};
use crate::support::relays::toml_of;
use crate::support::{PATIENCE, Process, eventually};

/// Holds up the settlement: `when` says at its statement, or at its commit.
async fn held_up(stage: &Stage, when: &str) {
    let trigger = format!(
        "CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN IF NEW.token IS NULL AND OLD.token IS NOT NULL THEN PERFORM pg_advisory_xact_lock(11); END IF; RETURN NULL; END'; \
         CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON outbox.cursor {when} FOR EACH ROW EXECUTE FUNCTION public.wait(); \
         SELECT pg_advisory_lock(11)"
    );
    stage.owner.batch_execute(&trigger).await.unwrap();
}

/// Whether the process says that it exits with so many unrecorded outcomes.
fn says(process: &Process, outcomes: u64) -> bool {
    lines(process).iter().any(|line| line["cursor"] == "r" && line["outcomes"] == outcomes)
}

#[tokio::test(flavor = "multi_thread")]
async fn terminated_settlement_exits_1() {
    for when in ["NOT DEFERRABLE", "DEFERRABLE INITIALLY DEFERRED"] {
        let stage = Stage::http("").await;
        held_up(&stage, when).await;
        let mut process = stage.replica("r0");
        stage.insert(1).await;
        let end = "SELECT count(pg_terminate_backend(l.pid)) FROM pg_locks AS l WHERE l.locktype = 'advisory' AND NOT l.granted \
                   AND l.objid = 11 AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let ended = async || stage.owner.query_one(end, &[]).await.unwrap().get::<_, i64>(0) == 1;
        eventually(PATIENCE * 2, ended).await;
        stage.owner.batch_execute("SELECT pg_advisory_unlock(11)").await.unwrap();
        eventually(PATIENCE * 2, async || stage.unknown().await == BTreeSet::from([1])).await;
        process.signal(Signal::TERM);
        let code = process.wait().await;
        assert!(process.log().contains("57P01"), "{}", process.log());
        assert_eq!((code, stage.arrived().await), (Some(1), vec![1]), "{when}\n{}", process.log());
        assert!(says(&process, 1), "{when}\n{}", process.log());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settlement_whose_commit_is_not_answered_exits_1_only_if_it_was_not_committed() {
    for (cut, code, unknown) in [(Cut::Before, 1, vec![1]), (Cut::After, 0, vec![])] {
        let mut stage = Stage::http("").await;
        let direct = stage.database.postgres.port();
        // The statement that takes the token away goes with its commit.
        let proxy = Proxy::start_at(direct, cut, b"COMMIT\0").await;
        let url = stage.database.url("relay").replace(&format!(":{direct}/"), &format!(":{}/", proxy.port));
        let relay = stage.receiver().relay("r", &guarantee(""));
        stage.toml = toml_of(url.trim_end_matches("?sslmode=disable"), None, &relay);
        stage.receiver().hold();
        let mut process = stage.replica("r0");
        stage.insert(1).await;
        eventually(PATIENCE * 2, async || stage.receiver().requests().len() == 1).await;
        proxy.arm();
        stage.receiver().release();
        eventually(PATIENCE * 2, async || proxy.cuts() == 1).await;
        stage.settled(1).await;
        eventually(PATIENCE * 2, async || stage.unknown().await == unknown.iter().copied().collect()).await;
        stage.insert(1).await;
        stage.settled(2).await;
        process.signal(Signal::TERM);
        assert_eq!(process.wait().await, Some(code), "{cut:?}\n{}", process.log());
        assert_eq!((says(&process, 1), stage.arrived().await), (code == 1, vec![1, 2]), "{cut:?}\n{}", process.log());
    }
}
