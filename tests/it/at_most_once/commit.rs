//! Commits whose answer is lost: what became of them is asked for before anything is sent.

use std::collections::BTreeSet;

use super::{Stage, guarantee};
use crate::support::proxy::{Cut, Proxy};
use crate::support::relays::toml_of;
use crate::support::{PATIENCE, Process, eventually};

/// A stage whose relay talks to PostgreSQL through a proxy.
async fn stage(cut: Cut) -> (Stage, Proxy) {
    let mut stage = Stage::http("[relay.turn]\nrows = 3").await;
    let direct = stage.database.postgres.port();
    let proxy = Proxy::start(direct, cut).await;
    let url = stage.database.url("relay").replace(&format!(":{direct}/"), &format!(":{}/", proxy.port));
    let relay = stage.receiver().relay("r", &guarantee("[relay.turn]\nrows = 3"));
    stage.toml = toml_of(url.trim_end_matches("?sslmode=disable"), None, &relay);
    (stage, proxy)
}

/// Every fifth turn's commit is cut, `cuts` times.
async fn survives(cut: Cut, cuts: usize) {
    let (stage, proxy) = stage(cut).await;
    let replica = stage.replica("r0");
    let mut rows = 0;
    for n in 1..=cuts {
        proxy.arm();
        stage.insert(10).await;
        rows += 10;
        eventually(PATIENCE * 2, async || proxy.cuts() == n).await;
        stage.settled(rows).await;
    }
    let (missing, listed) = stage.holds(rows).await;
    println!("{cuts} commits cut {cut:?}: {missing} of {rows} rows missing, {listed} listed");
    let asked = replica.log().matches("a commit was not answered").count();
    assert_eq!(asked, cuts, "{}", replica.log());
    // Nobody else was there to take the rows for lost.
    assert_eq!((stage.arrived().await.len(), stage.unknown().await), (rows.try_into().unwrap(), BTreeSet::new()));
}

// Guarantee: at-most-once.commit
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_whose_answer_is_lost_is_asked_for_and_its_rows_are_sent_once() {
    survives(Cut::After, 5).await;
}

// Guarantee: at-most-once.commit
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_never_reached_the_server_reserves_nothing_and_its_rows_are_sent_once() {
    survives(Cut::Before, 5).await;
}

// Guarantee: at-most-once.commit
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_while_a_commit_is_still_in_progress() {
    let (stage, proxy) = stage(Cut::After).await;
    // A commit that waits for the test, as one waits for a synchronous standby.
    let trigger = "CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS \
                   'BEGIN IF NEW.token IS NOT NULL THEN PERFORM pg_advisory_xact_lock(11); END IF; RETURN NULL; END'; \
                   CREATE CONSTRAINT TRIGGER wait AFTER UPDATE ON outbox.cursor DEFERRABLE INITIALLY DEFERRED \
                   FOR EACH ROW EXECUTE FUNCTION public.wait()";
    stage.owner.batch_execute(trigger).await.unwrap();
    stage.owner.batch_execute("SELECT pg_advisory_lock(11)").await.unwrap();
    proxy.arm();
    stage.insert(3).await;
    let replica = stage.replica("r0");
    eventually(PATIENCE * 2, async || replica.log().contains("a commit was not answered")).await;
    let in_progress = async || {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_xact_status%'";
        stage.owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0
    };
    eventually(PATIENCE, in_progress).await;
    assert_eq!(stage.arrived().await, Vec::<i64>::new(), "nobody knows yet whether the rows are reserved");
    stage.owner.batch_execute("SELECT pg_advisory_unlock(11)").await.unwrap();
    stage.settled(3).await;
    stage.holds(3).await;
}

// Guarantee: at-most-once.sessions
#[tokio::test(flavor = "multi_thread")]
async fn sessions_ended_at_random_send_nothing_twice_and_what_is_missing_is_listed() {
    let stage = Stage::http("[relay.turn]\nrows = 5").await;
    stage.receiver().answer(|_| (200, std::time::Duration::from_millis(2)));
    let replicas: Vec<Process> = (0..2).map(|n| stage.replica(&format!("r{n}"))).collect();
    let mut random = fastrand::Rng::with_seed(12);
    let mut rows = 0;
    for _ in 0..15 {
        stage.insert(20).await;
        rows += 20;
        let progress = rows - 20 + random.i64(1..15);
        eventually(PATIENCE * 3, async || stage.position().await.0 >= progress).await;
        tokio::time::sleep(std::time::Duration::from_micros(random.u64(0..5_000))).await;
        let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
                   AND application_name LIKE 'outbox-relay/%'";
        stage.owner.batch_execute(end).await.unwrap();
    }
    stage.settled(rows).await;
    let (missing, listed) = stage.holds(rows).await;
    println!("sessions ended 15 times, {rows} rows: {missing} missing, {listed} listed as unknown");
    drop(replicas);
}
