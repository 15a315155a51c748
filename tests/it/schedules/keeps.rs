//! Keeping claims waits for nobody.

use std::time::Duration;

use outbox_relay::cursor::actions;

use crate::support::{database, sessions};

/// Two actions that are being carried out, and one that somebody else has taken up.
const RUNNING: &str = "INSERT INTO outbox.action (schedule_id, schedule, tenant, relay, planned_at, due_at, try_at, started_at, \
    status, payload, on_interrupted, timeout, token, claimed_by, expires_at) \
    SELECT i, 's', '', 'jobs', t, t, t, t, 'running', '{}', 'retry', '1 minute', CASE i WHEN 3 THEN 'theirs' ELSE 'ours' END, 'r', t \
    FROM generate_series(1, 3) AS i, now() AS t";

#[tokio::test]
async fn claims_are_kept_while_somebody_holds_one_of_their_rows_and_nobody_waits_for_another() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(RUNNING).await.unwrap();
    let ids: Vec<i64> = owner
        .query("SELECT action_id FROM outbox.action ORDER BY schedule_id", &[])
        .await
        .unwrap()
        .iter()
        .map(|row| row.get(0))
        .collect();
    let held = database.connect("postgres").await;
    held.batch_execute(&format!("BEGIN; SELECT FROM outbox.action WHERE action_id = {} FOR UPDATE", ids[0]))
        .await
        .unwrap();

    let session = sessions(&database, "relay", "test").open().await.unwrap();
    session.batch_execute("SET lock_timeout = '10ms'").await.unwrap();
    let claims = ids.iter().map(|id| (*id, "ours".to_owned(), Some("half".to_owned()))).collect::<Vec<_>>();
    let mut kept = actions::keep(&session, Duration::from_secs(10), &claims).await.unwrap();
    kept.sort_unstable();
    assert_eq!(kept, ids[..2], "a row that is locked is still ours; one that was taken up is not");
    let longer = "SELECT array_agg(expires_at > started_at + interval '5 seconds' ORDER BY schedule_id), \
                  array_agg(progress IS NOT NULL ORDER BY schedule_id) FROM outbox.action";
    let row = owner.query_one(longer, &[]).await.unwrap();
    assert_eq!(
        (row.get::<_, Vec<bool>>(0), row.get::<_, Vec<bool>>(1)),
        (vec![false, true, false], vec![false, true, false])
    );
}
