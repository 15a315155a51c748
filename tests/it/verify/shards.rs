//! The shards of a relay are one table, and what was done with one of them says nothing of another.

use std::collections::BTreeSet;

use super::{delivered_after, differences, pass_over, put, verify, with};
use crate::support::{kafka_relay, outbox_relay};

/// The number of a row's shard.
fn number(key: &str, shards: u32) -> String {
    format!("(COALESCE(hashtextextended({key}::text COLLATE \"C\", 0), 0) & 2147483647) % {shards}")
}

// Guarantee: verify.retention
#[tokio::test(flavor = "multi_thread")]
async fn records_of_the_built_in_outbox_are_compared_if_no_key_is_of_the_first_shard() {
    let of_message = |topic: &str| {
        kafka_relay("events", topic, "shards = 3")
            .replace("public.bookings", "outbox.message")
            .replace("\"customer\"", "\"key\"")
    };
    let number = number("key", 3);
    let rows = format!(
        "GRANT SELECT ON outbox.message TO relay; CREATE INDEX ON outbox.message (({number}), created_at, id); \
         INSERT INTO outbox.message (topic, key, payload) SELECT 't', key, '{{}}' \
         FROM (SELECT 'k' || n AS key FROM generate_series(1, 60) AS n) AS k WHERE {number} <> 0 LIMIT 6"
    );
    let relay = delivered_after(&rows, 0, 1, of_message).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["rows"]["topic"]), (Some(0), &6.into()), "{document}{log}");
    let records = relay.records().await;
    let oldest = records.iter().find(|record| record.id() == "1").unwrap();
    put(&relay.topic, &[with(oldest, "id", "4711")]).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), ["not_in_table 4711"]);
    // Rows that were pruned are told apart by the oldest row of all.
    relay.owner.batch_execute("DELETE FROM outbox.message WHERE id <= 4").await.unwrap();
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["rows"]["topic"]), (Some(0), &2.into()), "{document}{log}");
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn move_of_one_shard_excuses_no_row_that_another_has_lost() {
    let number = number("customer", 2);
    let index = format!("CREATE INDEX ON bookings (({number}), created_at, id)");
    let relay = delivered_after(&index, 0, 1, |topic| kafka_relay("events", topic, "shards = 2")).await;
    let book = "INSERT INTO bookings (customer, payload) SELECT 'k' || n, '{}' FROM generate_series(1, 20) AS n";
    relay.owner.batch_execute(book).await.unwrap();
    super::drain(&relay.text).await;
    relay.owner.batch_execute(book).await.unwrap();
    let seek = ["cursor", "seek", "events#0", "--after-id", "40", "--yes"];
    let (code, _, log) = outbox_relay(&relay.text, &seek).await;
    assert_eq!(code, Some(0), "{log}");
    pass_over(&relay.owner, "events#1", 40).await;
    super::drain(&relay.text).await;
    let lost = format!("SELECT 'not_in_topic ' || id FROM bookings WHERE id > 20 AND {number} = 1");
    let lost = relay.owner.query(&lost, &[]).await.unwrap();
    let lost: BTreeSet<String> = lost.iter().map(|row| row.get(0)).collect();
    assert!(!lost.is_empty() && lost.len() < 20, "{lost:?}");
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document).into_iter().collect::<BTreeSet<_>>(), lost);
    assert_eq!(document["explained"], serde_json::json!({ "skipped": 20 - lost.len() }));
}
