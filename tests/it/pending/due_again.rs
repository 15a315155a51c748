//! A row that is due again at another instant while its earlier outcome is unknown.

use std::time::Duration;

use serde_json::{Value, json};

use super::{database, reminders, tables, welcome};
use crate::support::receiver::Receiver;
use crate::support::{outbox_relay, outside, toml};

#[tokio::test(flavor = "multi_thread")]
async fn unknown_outcome_stays_listed_when_its_row_is_due_again() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner
        .batch_execute("INSERT INTO users (id, email, created) VALUES (7, 'a@example.com', '2026-01-01 00:00:00')")
        .await
        .unwrap();
    let text = toml(&database, "relay", None, &welcome(&receiver, ""));
    let listed = async || {
        let (code, out, log) = outbox_relay(&text, &["request", "list", "-o", "json"]).await;
        assert_eq!(code, Some(0), "{log}");
        let row = |row: &Value| json!([row["key"], row["status"], row["error"]["code"]]);
        outside::json(&out)["requests"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    receiver.answer(|_| (503, Duration::ZERO));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    let first = json!([["7"], "unknown", "http_503"]);
    assert_eq!(listed().await, std::slice::from_ref(&first));

    let again = "UPDATE users SET created = '2026-01-02 00:00:00', sent_welcome = false";
    owner.batch_execute(again).await.unwrap();
    receiver.answer(|_| (500, Duration::ZERO));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    let earlier = json!([["7", "2026-01-01T06:00:00.000000Z"], "unknown", "http_503"]);
    assert_eq!(listed().await, [earlier.clone(), json!([["7"], "unknown", "http_500"])]);

    // Settled, it leaves the other alone, and the mark of the other.
    let settle =
        ["request", "settle", "--relay", "welcome", "--lost", "--yes", "[\"7\",\"2026-01-01T06:00:00.000000Z\"]"];
    let (code, out, log) = outbox_relay(&text, &settle).await;
    assert_eq!((code, out.as_str()), (Some(0), "[\"7\",\"2026-01-01T06:00:00.000000Z\"] lost\n"), "{log}");
    assert_eq!(listed().await, [json!([["7"], "unknown", "http_500"])]);

    // One that is sent the next time leaves the list of the unknown ones as it is.
    let again = "UPDATE users SET created = '2026-01-03 00:00:00', sent_welcome = false";
    owner.batch_execute(again).await.unwrap();
    receiver.answer(|_| (200, Duration::ZERO));
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(listed().await, [json!([["7", "2026-01-02T06:00:00.000000Z"], "unknown", "http_500"])]);
}

#[tokio::test(flavor = "multi_thread")]
async fn part_of_a_key_names_no_row() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    owner.batch_execute("INSERT INTO todos SELECT 'blue', '7', 't', now()").await.unwrap();
    let text = toml(&database, "relay", None, &reminders(&receiver, "guarantee = \"at_most_once\""));
    receiver.answer(|_| (503, Duration::ZERO));
    assert_eq!(outbox_relay(&text, &["run", "--once"]).await.0, Some(1));
    let settle = async |key: &str| {
        outbox_relay(&text, &["request", "settle", "--relay", "reminders", "--lost", "--yes", key]).await
    };
    let (code, out, log) = settle("blue").await;
    assert!(code == Some(1) && log.contains("no unknown outcome of row blue"), "{out}{log}");
    let (code, out, log) = settle("[\"blue\",\"7\"]").await;
    assert_eq!((code, out.as_str()), (Some(0), "[\"blue\",\"7\"] lost\n"), "{log}");
}
