//! A dedupe key that a transaction elsewhere holds: its callers wait, and no others.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::front::{Front, answer, welcome};
use crate::support::{PATIENCE, database, eventually};

fn call(key: &str) -> serde_json::Value {
    json!({ "dedupe_key": key, "user_id": "ada", "template": "welcome" })
}

/// Callers with a busy key each: with 100 ms on one of two connections for each of them, others would wait for 12 s.
const BURST: usize = 240;

/// Attempts that began after the transaction that holds the keys.
const ATTEMPTS: &str = "\
    SELECT query_start::text FROM pg_stat_activity \
    WHERE datname = current_database() AND query LIKE '%LATERAL outbox.enqueue_once%' AND query_start > ( \
        SELECT min(xact_start) FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction') \
    ORDER BY query_start DESC";

// Guarantee: intake.busy-key
#[tokio::test(flavor = "multi_thread")]
async fn busy_key_does_not_stop_other_callers() {
    let database = database().await;
    let mut owner = welcome(&database).await;
    let front = Front::start(&database, "timeout = \"4s\"").await;
    assert_eq!(front.post(&call("first")).await.status, 202);
    let held = owner.transaction().await.unwrap();
    held.batch_execute("SELECT outbox.enqueue_once('k', 'ada', 'welcome')").await.unwrap();
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let request = front.call(&call("k"));
        callers.spawn(async move {
            loop {
                let answered = answer(request.try_clone().unwrap()).await.expect("an answer");
                assert_eq!(answered.status, 503, "{answered:?}");
            }
        });
    }
    let watcher = database.connect("postgres").await;
    eventually(PATIENCE, || async { !watcher.query(ATTEMPTS, &[]).await.unwrap().is_empty() }).await;
    for round in 0..5 {
        let keys: Vec<_> = (0..6).map(|other| call(&format!("other{round}-{other}"))).collect();
        let answers = join_all(keys.iter().map(|key| front.post(key))).await;
        let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [202; 6], "round {round}: {answers:?}");
    }
    callers.abort_all();
}

// Guarantee: intake.busy-key
#[tokio::test(flavor = "multi_thread")]
async fn burst_of_busy_keys_does_not_stop_other_callers() {
    let database = database().await;
    let mut owner = welcome(&database).await;
    let front = Front::start(&database, "timeout = \"10s\"").await;
    assert_eq!(front.post(&call("first")).await.status, 202);
    let held = owner.transaction().await.unwrap();
    let keys = format!("SELECT outbox.enqueue_once('k' || n, 'ada', 'welcome') FROM generate_series(1, {BURST}) AS n");
    held.batch_execute(&keys).await.unwrap();
    let burst: Vec<_> = (1..=BURST).map(|n| tokio::spawn(answer(front.call(&call(&format!("k{n}")))))).collect();
    let watcher = database.connect("postgres").await;
    eventually(PATIENCE, || async { !watcher.query(ATTEMPTS, &[]).await.unwrap().is_empty() }).await;
    for round in 0..5 {
        let keys: Vec<_> = (0..6).map(|other| call(&format!("other{round}-{other}"))).collect();
        let answers = join_all(keys.iter().map(|key| front.post(key))).await;
        let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, [202; 6], "round {round}: {answers:?}");
    }
    for caller in burst {
        let answered = caller.await.unwrap().expect("an answer");
        assert_eq!(answered.status, 503, "{answered:?}");
    }
}

// Guarantee: intake.busy-key
#[tokio::test(flavor = "multi_thread")]
async fn callers_of_busy_key_are_answered_once_it_is_free() {
    let database = database().await;
    let mut owner = welcome(&database).await;
    let front = Front::start(&database, "timeout = \"60s\"").await;
    let held = owner.transaction().await.unwrap();
    held.batch_execute("SELECT outbox.enqueue_once('k', 'ada', 'welcome')").await.unwrap();
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(answer(front.call(&call("k"))))).collect();
    let watcher = database.connect("postgres").await;
    // A statement has waited as long as it may for the lock, and another has begun.
    let first = seen(&watcher, None).await;
    seen(&watcher, Some(&first)).await;
    held.commit().await.unwrap();
    for caller in callers {
        let answered = caller.await.unwrap().expect("an answer");
        assert_eq!((answered.status, &answered.body["status"]), (202, &"pending".into()), "{answered:?}");
    }
    let made = "SELECT FROM outbox.request WHERE dedupe_key = 'k'";
    assert_eq!(watcher.query(made, &[]).await.unwrap().len(), 1);
}

/// When the latest attempt began; another one than `before`.
async fn seen(watcher: &tokio_postgres::Client, before: Option<&str>) -> String {
    let begun = std::sync::Mutex::new(String::new());
    eventually(PATIENCE, || async {
        let rows = watcher.query(ATTEMPTS, &[]).await.unwrap();
        let Some(row) = rows.first() else { return false };
        let at: String = row.get(0);
        let is_another = before != Some(at.as_str());
        *begun.lock().unwrap() = at;
        is_another
    })
    .await;
    begun.into_inner().unwrap()
}
