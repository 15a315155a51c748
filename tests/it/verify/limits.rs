//! What the topic does not have any more is told apart from what is lost.

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::{delivered, differences, insert, put, verify};
use crate::support::{broker, unique};

/// Deletes the records of a topic's first partition below an offset.
async fn delete_below(topic: &str, offset: i64) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", broker().await.bootstrap_servers()).create().unwrap();
    let mut offsets = TopicPartitionList::new();
    offsets.add_partition_offset(topic, 0, Offset::Offset(offset)).unwrap();
    admin.delete_records(&offsets, &AdminOptions::new()).await.unwrap();
}

// Guarantee: verify.retention
#[tokio::test(flavor = "multi_thread")]
async fn deleted_records_are_told_apart_and_a_later_loss_is_still_named() {
    let relay = delivered(50).await;
    delete_below(&relay.topic, 20).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["explained"], serde_json::json!({ "beyond_retention": 20 }));
    assert!(document["notes"][0].as_str().unwrap().contains("older than what the topic still has"), "{document}");
    let since = document["since"].as_str().unwrap().to_owned();
    let first_left: String = relay
        .owner
        .query_one("SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM bookings WHERE id = 21", &[])
        .await
        .unwrap()
        .get(0);
    assert_eq!(since, first_left);
    insert(&relay.owner, 1).await;
    let passed = "UPDATE outbox.cursor SET (position_created_at, position_id) = \
                  (SELECT created_at, id::text FROM bookings WHERE id = 51)";
    relay.owner.batch_execute(passed).await.unwrap();
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, differences(&document)), (Some(3), vec!["not_in_topic 51".to_owned()]), "{document}{log}");
    delete_below(&relay.topic, 50).await;
    let (code, _, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("whether retention has removed their records cannot be told"), "{log}");
}

// Guarantee: verify.retention
#[tokio::test(flavor = "multi_thread")]
async fn compacted_topic_is_compared_only_where_nothing_is_missing() {
    let relay = delivered(10).await;
    let compacted = unique("compacted");
    broker().await.create_topic(&compacted, 1, &[("cleanup.policy", "compact")]).await.unwrap();
    put(&compacted, &relay.records().await).await;
    let text = relay.with_topic(&compacted);
    let (code, document, log) = verify(&text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    let less = unique("compacted");
    broker().await.create_topic(&less, 1, &[("cleanup.policy", "compact,delete")]).await.unwrap();
    put(&less, &relay.records().await).await;
    delete_below(&less, 1).await;
    relay
        .owner
        .batch_execute("UPDATE outbox.cursor SET position_id = '11'; INSERT INTO bookings DEFAULT VALUES")
        .await
        .unwrap();
    let moved = "UPDATE outbox.cursor SET (position_created_at, position_id) = (SELECT created_at, id::text FROM bookings WHERE id = 11)";
    relay.owner.batch_execute(moved).await.unwrap();
    let (code, _, log) = verify(&relay.with_topic(&less), &["events"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("cleanup.policy=compact"), "{log}");
}

// Guarantee: verify.retention
#[tokio::test(flavor = "multi_thread")]
async fn pruned_rows_of_the_built_in_outbox_are_not_called_deleted() {
    let of_message = |topic: &str| {
        crate::support::kafka_relay("events", topic, "")
            .replace("public.bookings", "outbox.message")
            .replace("\"customer\"", "\"key\"")
    };
    let grant = "GRANT SELECT ON outbox.message TO relay; \
                 INSERT INTO outbox.message (topic, key, payload) SELECT 't', 'k', '{}' FROM generate_series(1, 6)";
    let relay = super::delivered_after(grant, 0, 1, of_message).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["rows"]["topic"]), (Some(0), &6.into()), "{document}{log}");
    relay.owner.batch_execute("DELETE FROM outbox.message WHERE id <= 4").await.unwrap();
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["rows"]["topic"]), (Some(0), &2.into()), "{document}{log}");
    assert!(document["notes"][0].as_str().unwrap().contains("4 records are older than the oldest row"), "{document}");
}
