//! Ids that repeat, each row at another instant: every row whose outcome is unknown has a line of its own.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use super::{Stage, Target};
use crate::support::outside::json;
use crate::support::{PATIENCE, eventually, outbox_relay};

/// Rows 1, 1 and 2, a minute apart; the receiver passes them on to no recipient.
async fn stage(more: &str) -> Stage {
    let stage = Stage::http(more).await;
    let rows = "ALTER TABLE bookings DROP CONSTRAINT bookings_pkey, ADD PRIMARY KEY (created_at, id); \
                INSERT INTO bookings (id, created_at, payload) OVERRIDING SYSTEM VALUE VALUES \
                (1, '2026-08-01T10:00:00Z', 'p'), (1, '2026-08-01T10:01:00.5Z', 'p'), (2, '2026-08-01T10:02:00Z', 'p')";
    stage.owner.batch_execute(rows).await.unwrap();
    stage
}

/// The keys of unknown outcomes and the instants of their rows.
async fn listed(stage: &Stage) -> Vec<(Value, String)> {
    let (code, out, log) = outbox_relay(&stage.toml, &["request", "list", "--unknown", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let row = |row: &Value| (row["key"].clone(), row["due_at"].as_str().unwrap().to_owned());
    json(&out)["requests"].as_array().unwrap().iter().map(row).collect()
}

fn line(key: &[&str], at: &str) -> (Value, String) {
    (serde_json::json!(key), format!("2026-08-01T{at}Z"))
}

/// All three, as they are listed.
fn all() -> Vec<(Value, String)> {
    vec![
        line(&["1"], "10:00:00.000000"),
        line(&["1", "2026-08-01T10:01:00.500000Z"], "10:01:00.500000"),
        line(&["2"], "10:02:00.000000"),
    ]
}

async fn settle(stage: &Stage, keys: &[&str]) -> (Option<i32>, String, String) {
    outbox_relay(&stage.toml, &[&["request", "settle", "--relay", "r", "--lost", "--yes"], keys].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_rows_of_one_id_have_a_line_each() {
    let stage = stage("").await;
    stage.receiver().answer(|_| (503, Duration::ZERO));
    let replica = stage.replica("r0");
    eventually(PATIENCE * 3, async || listed(&stage).await.len() == 3).await;
    assert_eq!(listed(&stage).await, all());
    // The position moved back: the same three rows again, and no line more.
    let moved = outbox_relay(&stage.toml, &["cursor", "seek", "r", "--beginning", "--yes"]).await;
    assert_eq!(moved.0, Some(0), "{}", moved.2);
    eventually(PATIENCE * 3, async || stage.receiver().requests().len() == 6).await;
    stage.settled(2).await;
    assert_eq!(listed(&stage).await, all());
    drop(replica);

    // The id alone names two of them.
    let (code, _, log) = settle(&stage, &["1"]).await;
    let names = "error: relay r has 2 unknown outcomes of row 1; name one of them: \
                 '[\"1\",\"2026-08-01T10:00:00.000000Z\"]' '[\"1\",\"2026-08-01T10:01:00.500000Z\"]'\n";
    assert_eq!((code, log.as_str()), (Some(1), names));
    let (code, out, log) = settle(&stage, &["[\"1\",\"2026-08-01T10:00:00.000000Z\"]", "2"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "[\"1\"] lost\n[\"2\"] lost\n"), "{log}");
    assert_eq!(listed(&stage).await, all()[1..2]);
    // Alone again, its id is enough.
    let (code, out, log) = settle(&stage, &["1"]).await;
    let settled = "[\"1\",\"2026-08-01T10:01:00.500000Z\"] lost\n";
    assert_eq!((code, out.as_str()), (Some(0), settled), "{log}");
    assert_eq!(listed(&stage).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_id_in_flight_have_a_line_each() {
    let stage = stage("[relay.turn]\nrows = 3").await;
    stage.receiver().answer(|_| (200, Duration::from_secs(600)));
    let mut replica = stage.replica("killed");
    eventually(PATIENCE * 2, async || !stage.receiver().requests().is_empty()).await;
    replica.signal(Signal::KILL);
    replica.wait().await;
    let Target::Http(receiver) = &stage.target else { unreachable!() };
    receiver.answer(|_| (200, Duration::ZERO));
    let _next = stage.replica("r1");
    eventually(PATIENCE * 3, async || listed(&stage).await.len() == 3).await;
    assert_eq!(listed(&stage).await, all());
}
