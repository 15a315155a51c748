//! The shards of a relay are one table, and what was done with one of them says nothing of another.

use std::collections::BTreeSet;

use tokio_postgres::Client;

use super::{Delivered, delivered_after, differences, pass_over, put, verify, with};
use crate::support::{
    CLOCK, Database, PATIENCE, Record, bookings, broker, database, eventually, ids, kafka_relay, outbox_relay, records,
    toml, unique,
};

/// Twenty rows, each of a key of its own.
const BOOK: &str = "INSERT INTO bookings (customer, payload) SELECT 'k' || n, '{}' FROM generate_series(1, 20) AS n";

/// The number of a row's shard.
fn number(key: &str, shards: u32) -> String {
    format!("(COALESCE(hashtextextended({key}::text COLLATE \"C\", 0), 0) & 2147483647) % {shards}")
}

/// A relay with two shards, each of which has delivered some of 20 rows, each of a key of its own.
async fn two_shards() -> Delivered {
    let index = format!("CREATE INDEX ON bookings (({}), created_at, id)", number("customer", 2));
    let relay = delivered_after(&index, 0, 1, |topic| kafka_relay("events", topic, "shards = 2")).await;
    relay.owner.batch_execute(BOOK).await.unwrap();
    super::drain(&relay.text).await;
    relay
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
    let relay = two_shards().await;
    relay.owner.batch_execute(BOOK).await.unwrap();
    let seek = ["cursor", "seek", "events#0", "--after-id", "40", "--yes"];
    let (code, _, log) = outbox_relay(&relay.text, &seek).await;
    assert_eq!(code, Some(0), "{log}");
    pass_over(&relay.owner, "events#1", 40).await;
    super::drain(&relay.text).await;
    let lost = number("customer", 2);
    let lost = format!("SELECT 'not_in_topic ' || id FROM bookings WHERE id > 20 AND {lost} = 1");
    let lost = relay.owner.query(&lost, &[]).await.unwrap();
    let lost: BTreeSet<String> = lost.iter().map(|row| row.get(0)).collect();
    assert!(!lost.is_empty() && lost.len() < 20, "{lost:?}");
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document).into_iter().collect::<BTreeSet<_>>(), lost);
    assert_eq!(document["explained"], serde_json::json!({ "skipped": 20 - lost.len() }));
}

// Guarantee: verify.kinds
#[tokio::test(flavor = "multi_thread")]
async fn move_back_of_one_shard_excuses_no_second_record_of_another() {
    let relay = two_shards().await;
    let (code, _, log) = outbox_relay(&relay.text, &["cursor", "seek", "events#0", "--beginning", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    super::drain(&relay.text).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    let other = format!("SELECT min(id)::text FROM bookings WHERE {} = 1", number("customer", 2));
    let other: String = relay.owner.query_one(&other, &[]).await.unwrap().get(0);
    let record = relay.records().await.into_iter().find(|record| record.id() == other).unwrap();
    put(&relay.topic, &[record]).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, differences(&document)), (Some(3), vec![format!("twice {other}")]), "{document}{log}");
}

/// A topic of one partition, and the configuration of a role for so many shards.
struct Resharded {
    owner: Client,
    topic: String,
    database: Database,
    servers: String,
}

impl Resharded {
    async fn new() -> Self {
        let (database, servers, topic) = (database().await, broker().await.bootstrap_servers(), unique("resharded"));
        broker().await.create_topic(&topic, 1, &[]).await.unwrap();
        let owner = bookings(&database, CLOCK).await;
        let index = format!("CREATE INDEX ON bookings (({}), created_at, id)", number("customer", 2));
        owner.batch_execute(&index).await.unwrap();
        Self { owner, topic, database, servers }
    }

    fn text(&self, role: &str, shards: u32) -> String {
        let relay = kafka_relay("events", &self.topic, &format!("shards = {shards}"));
        toml(&self.database, role, Some(&self.servers), &relay)
    }

    async fn reshard(&self, shards: u32) {
        let (code, out, log) = outbox_relay(&self.text("postgres", shards), &["cursor", "reshard", "events"]).await;
        assert_eq!(code, Some(0), "{out}{log}");
    }

    /// Twenty rows more, delivered by so many shards.
    async fn deliver(&self, shards: u32) {
        self.owner.batch_execute(BOOK).await.unwrap();
        super::drain(&self.text("relay", shards)).await;
    }

    /// Whether the partition has rows of two shards in another order than their own.
    async fn is_mixed(&self) -> bool {
        let ids = ids(&self.servers, &self.topic).await;
        !ids.iter().map(|id| id.parse::<u32>().unwrap()).is_sorted()
    }
}

// Guarantee: verify.order
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_two_shards_in_one_partition_are_in_order_after_a_reshard_to_one_cursor() {
    let stage = Resharded::new().await;
    let mut mixed = 0;
    while mixed < 40 || !stage.is_mixed().await {
        stage.deliver(2).await;
        mixed += 20;
        assert!(mixed < 400, "the shards take turns row by row");
    }
    stage.reshard(1).await;
    stage.deliver(1).await;
    let text = stage.text("relay", 1);
    let (code, document, log) = verify(&text, &["events"]).await;
    assert_eq!((code, &document["counts"]), (Some(0), &serde_json::json!({})), "{document}{log}");

    // What is out of order is named all the same: rows of one key of before, of the partition of after, and of both.
    let (copy, mut records) = (unique("copy"), records(&stage.servers, &stage.topic).await);
    broker().await.create_topic(&copy, 1, &[]).await.unwrap();
    let at = |records: &[Record], id: u32| records.iter().position(|record| record.id() == id.to_string()).unwrap();
    let (second, same_key) = (at(&records, 2), at(&records, 22));
    records.swap(second, same_key);
    let last = mixed + 20;
    let (before_last, end) = (at(&records, last - 1), at(&records, last));
    records.swap(before_last, end);
    let first = records.remove(at(&records, 1));
    records.push(first);
    // What is made sooner after the reshard may be the former cursors', by clocks that differ.
    let over = "SELECT clock_timestamp() > max(at) + interval '1 second' FROM outbox.operation \
                WHERE verb = 'cursor reshard'";
    eventually(PATIENCE, async || stage.owner.query_one(over, &[]).await.unwrap().get(0)).await;
    put(&copy, &records).await;
    let (code, document, log) = verify(&text.replace(&stage.topic, &copy), &["events"]).await;
    let expected = ["out_of_order 1".to_owned(), "out_of_order 2".to_owned(), format!("out_of_order {}", last - 1)];
    assert_eq!((code, differences(&document)), (Some(3), expected.to_vec()), "{document}{log}");
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn letter_of_a_shard_that_a_reshard_has_ended_explains_its_row() {
    let (database, servers, topic) = (database().await, broker().await.bootstrap_servers(), unique("verified"));
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let text = |role: &str, shards: u32| {
        let more = format!("shards = {shards}\non_poison = \"dead_letter\"");
        toml(&database, role, Some(&servers), &kafka_relay("events", &topic, &more))
    };
    let owner = bookings(&database, CLOCK).await;
    let poison = format!(
        "CREATE INDEX ON bookings (({}), created_at, id); INSERT INTO bookings (customer, payload) \
         SELECT k, repeat('x', 2000000) FROM (SELECT 'k' || n AS k FROM generate_series(1, 20) AS n) AS keys WHERE {} = 1 LIMIT 1",
        number("customer", 2),
        number("k", 2)
    );
    for sql in [poison.as_str(), BOOK] {
        owner.batch_execute(sql).await.unwrap();
    }
    super::drain(&text("relay", 2)).await;
    let discard = ["dead-letter", "discard", "--cursor", "events#1", "--yes"];
    let (code, _, log) = outbox_relay(&text("relay", 2), &discard).await;
    assert_eq!(code, Some(0), "{log}");
    // As older versions noted it: without the rows.
    owner.batch_execute("UPDATE outbox.operation SET detail = detail - 'rows'").await.unwrap();
    let (code, out, log) = outbox_relay(&text("postgres", 1), &["cursor", "reshard", "events"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let (code, document, log) = verify(&text("relay", 1), &["events"]).await;
    assert_eq!((code, &document["counts"]), (Some(0), &serde_json::json!({})), "{document}{log}");
    assert_eq!(document["explained"], serde_json::json!({ "discarded": 1 }));
}
