//! A dedupe key that a transaction elsewhere holds: its callers wait, and no others.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::front::{Front, answer, welcome};
use crate::support::{PATIENCE, database, eventually};

fn call(key: &str) -> serde_json::Value {
    json!({ "dedupe_key": key, "user_id": "ada", "template": "welcome" })
}

const WAITING: &str = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

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
    eventually(PATIENCE, || async { !watcher.query(WAITING, &[]).await.unwrap().is_empty() }).await;
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
async fn callers_of_busy_key_are_answered_once_it_is_free() {
    let database = database().await;
    let mut owner = welcome(&database).await;
    let front = Front::start(&database, "timeout = \"60s\"").await;
    let held = owner.transaction().await.unwrap();
    held.batch_execute("SELECT outbox.enqueue_once('k', 'ada', 'welcome')").await.unwrap();
    let callers: Vec<_> = (0..4).map(|_| tokio::spawn(answer(front.call(&call("k"))))).collect();
    let watcher = database.connect("postgres").await;
    // Longer than a statement may wait for a lock: it has ended, and has begun again.
    let began = "SELECT query_start::text FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    let first = seen(&watcher, began, None).await;
    seen(&watcher, began, Some(&first)).await;
    held.commit().await.unwrap();
    for caller in callers {
        let answered = caller.await.unwrap().expect("an answer");
        assert_eq!((answered.status, &answered.body["status"]), (202, &"pending".into()), "{answered:?}");
    }
    let made = "SELECT FROM outbox.request WHERE dedupe_key = 'k'";
    assert_eq!(watcher.query(made, &[]).await.unwrap().len(), 1);
}

/// When a statement began that waits for a lock; another one than `before`.
async fn seen(watcher: &tokio_postgres::Client, sql: &str, before: Option<&str>) -> String {
    let begun = std::sync::Mutex::new(String::new());
    eventually(PATIENCE, || async {
        let rows = watcher.query(sql, &[]).await.unwrap();
        let Some(row) = rows.first() else { return false };
        let at: String = row.get(0);
        let is_another = before != Some(at.as_str());
        *begun.lock().unwrap() = at;
        is_another
    })
    .await;
    begun.into_inner().unwrap()
}
