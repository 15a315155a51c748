//! `verify` names every id that differs between a table and its topic, and no other.

mod adopted;
mod discarded;
mod explained;
mod follow;
mod late;
mod limits;
mod live;
mod planted;
mod repair;
mod shards;
mod sinks;
mod trial;

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rustix::process::Signal;
use serde_json::Value;
use tokio_postgres::Client;

use crate::support::{
    CLOCK, PATIENCE, Process, Record, bookings, broker, database, eventually, kafka_relay, outbox_relay, records, toml,
    unique,
};

/// The column by which late rows are found, and its index.
const SWEPT: &str = "ALTER TABLE public.bookings ADD COLUMN txid xid8 NOT NULL DEFAULT pg_current_xact_id(); \
                     CREATE INDEX ON public.bookings (txid, created_at, id)";

/// Runs `verify -o json`: exit code, document, talk.
async fn verify(text: &str, args: &[&str]) -> (Option<i32>, Value, String) {
    let args: Vec<&str> = ["verify", "-o", "json"].iter().chain(args).copied().collect();
    let (code, out, log) = outbox_relay(text, &args).await;
    (code, serde_json::from_str(&out).unwrap_or(Value::Null), log)
}

/// The differences of a document as `kind id`.
fn differences(document: &Value) -> Vec<String> {
    let list = document["differences"].as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().map(|one| format!("{} {}", one["kind"].as_str().unwrap(), one["id"].as_str().unwrap())).collect()
}

/// A relay of `public.bookings` that has delivered rows 1 to `rows`.
struct Delivered {
    owner: Client,
    topic: String,
    text: String,
}

async fn delivered(rows: u32) -> Delivered {
    delivered_by(rows, 1, |topic| kafka_relay("events", topic, "")).await
}

async fn delivered_by(rows: u32, partitions: i32, relay: impl Fn(&str) -> String) -> Delivered {
    delivered_after("", rows, partitions, relay).await
}

/// The same after a statement of the owner.
async fn delivered_after(sql: &str, rows: u32, partitions: i32, relay: impl Fn(&str) -> String) -> Delivered {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(sql).await.unwrap();
    let topic = unique("verified");
    broker().await.create_topic(&topic, partitions, &[]).await.unwrap();
    insert(&owner, rows).await;
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &relay(&topic));
    drain(&text).await;
    Delivered { owner, topic, text }
}

impl Delivered {
    /// The records of its topic.
    async fn records(&self) -> Vec<Record> {
        records(&broker().await.bootstrap_servers(), &self.topic).await
    }

    /// The configuration with another topic.
    fn with_topic(&self, topic: &str) -> String {
        self.text.replace(&self.topic, topic)
    }
}

async fn insert(owner: &Client, rows: u32) {
    let sql = format!(
        "INSERT INTO bookings (customer, payload) SELECT 'c' || n % 3, '{{}}' FROM generate_series(1, {rows}) AS n"
    );
    owner.batch_execute(&sql).await.unwrap();
}

async fn drain(text: &str) {
    let (code, _, log) = outbox_relay(text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
}

/// A row just before the second one, of the same key; its id.
async fn insert_late(owner: &Client) -> String {
    let sql = "INSERT INTO bookings (created_at, customer, payload) \
               SELECT created_at - interval '1 microsecond', customer, payload FROM bookings WHERE id = 2 RETURNING id::text";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

/// Moves a cursor as if it had published all rows up to this one.
async fn pass_over(owner: &Client, cursor: &str, id: u32) {
    let sql = format!(
        "UPDATE outbox.cursor SET (position_created_at, position_id) = \
         (SELECT created_at, id::text FROM bookings WHERE id = {id}) WHERE name = '{cursor}'"
    );
    owner.batch_execute(&sql).await.unwrap();
}

/// Has a replica move the cursor after the row with this id, and ends it; the cursor stays paused.
async fn seek_and_stay_paused(relay: &Delivered, id: &str) {
    let mut replica = Process::spawn(&relay.text, &["run"]);
    let seek = ["cursor", "seek", "events", "--after-id", id, "--yes", "--no-wait"];
    for args in [&["cursor", "pause", "events"][..], &seek] {
        let (code, _, log) = outbox_relay(&relay.text, args).await;
        assert_eq!(code, Some(0), "{log}");
    }
    let carried_out =
        "SELECT c.seek_applied = k.seek_seq FROM outbox.cursor AS c JOIN outbox.control AS k ON k.cursor = c.name";
    eventually(PATIENCE * 2, async || relay.owner.query_one(carried_out, &[]).await.unwrap().get(0)).await;
    replica.signal(Signal::TERM);
    assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
}

/// Writes records to a topic as they are, in their order.
async fn put(topic: &str, records: &[Record]) {
    let producer: FutureProducer =
        ClientConfig::new().set("bootstrap.servers", broker().await.bootstrap_servers()).create().unwrap();
    for record in records {
        let headers = record
            .headers
            .iter()
            .fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: Some(value) }));
        let key = record.key.clone().unwrap_or_default();
        let payload = record.payload.clone().unwrap_or_default();
        let sent = FutureRecord::to(topic).key(&key).payload(&payload).partition(record.partition).headers(headers);
        producer.send(sent, Duration::from_secs(10)).await.unwrap();
    }
}

/// A record like this one with another value of a header, which it may not have had.
fn with(record: &Record, name: &str, value: &str) -> Record {
    let mut record = record.clone();
    record.headers.retain(|(key, _)| key != name);
    record.headers.push((name.to_owned(), value.to_owned()));
    record
}

// Guarantee: verify.equal
#[tokio::test(flavor = "multi_thread")]
async fn drained_relay_is_equal_and_nothing_is_written() {
    let relay = delivered_by(2_500, 3, |topic| kafka_relay("events", topic, "")).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!((&document["ok"], &document["relay"]), (&true.into(), &"events".into()));
    assert_eq!(document["rows"], serde_json::json!({ "table": 2500, "delivered": 2500, "topic": 2500 }));
    assert_eq!((&document["differences"], &document["differences_capped"]), (&serde_json::json!([]), &false.into()));
    assert_eq!(document["slices"], 60);
    assert!(document["since"].as_str().unwrap().ends_with('Z') && document["until"].as_str().unwrap().ends_with('Z'));
    let operations = relay.owner.query_one("SELECT count(*) FROM outbox.operation", &[]).await.unwrap();
    assert_eq!(operations.get::<_, i64>(0), 0);
    let (code, out, _) = outbox_relay(&relay.text, &["verify"]).await;
    assert_eq!(code, Some(0));
    assert!(out.starts_with("events: equal\n") && out.contains("2500 rows, 2500 delivered"), "{out}");
}

// Guarantee: verify.usage
#[tokio::test(flavor = "multi_thread")]
async fn unknown_relay_ends_with_2_and_an_unreachable_side_with_1() {
    let relay = delivered(1).await;
    let (code, _, log) = verify(&relay.text, &["evens"]).await;
    assert_eq!(code, Some(2));
    assert!(log.contains("did you mean \"events\"?"), "{log}");
    for args in [&["--table", "public.bookings"][..], &["events", "--since", "soon"], &["events", "--yes"]] {
        assert_eq!(verify(&relay.text, args).await.0, Some(2), "{args:?}");
    }
    let away = relay.text.replace(&broker().await.bootstrap_servers(), "127.0.0.1:1");
    let (code, _, log) = verify(&away, &["events"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("cannot read Kafka") && log.contains("bootstrap_servers 127.0.0.1:1"), "{log}");
    let (code, _, log) = verify(&relay.with_topic("nowhere"), &["events"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("topic nowhere does not exist"), "{log}");
    relay.owner.batch_execute("REVOKE SELECT ON outbox.operation FROM relay").await.unwrap();
    let (code, _, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("permission denied for table operation") && log.contains("GRANT SELECT"), "{log}");
    relay.owner.batch_execute("REVOKE SELECT ON bookings FROM relay").await.unwrap();
    let (code, _, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(1));
    assert!(log.contains("GRANT SELECT ON \"public\".\"bookings\" TO \"relay\""), "{log}");
}

// Guarantee: verify.usage
#[tokio::test(flavor = "multi_thread")]
async fn sink_without_topic_is_compared_by_its_name_and_left_out_otherwise() {
    let stdout =
        "[[relay]]\nname = \"shown\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n";
    let relay = delivered_by(3, 1, |topic| kafka_relay("events", topic, "")).await;
    let text = format!("{}{stdout}", relay.text);
    let (code, document, log) = verify(&text, &["shown"]).await;
    assert_eq!((code, &document["sink"], &document["not_yet_due"]), (Some(0), &"stdout".into(), &3.into()), "{log}");
    let has_none = |document: &Value, name: &str| {
        let note = format!("there is no cursor {name} yet, so nothing was passed that could be compared: ");
        document["notes"].to_string().contains(&note)
    };
    assert!(has_none(&document, "shown"), "{document}");
    let (code, document, log) = verify(&text, &[]).await;
    assert_eq!((code, &document["relay"]), (Some(0), &"events".into()), "{log}");
    assert!(log.contains("shown: left out"), "{log}");
    let second = kafka_relay("second", &relay.topic, "");
    let (code, document, log) = verify(&format!("{text}{second}"), &[]).await;
    assert_eq!((code, document["relays"].as_array().map(Vec::len)), (Some(0), Some(2)), "{document}{log}");
    assert!(has_none(&document["relays"][1], "second") && !has_none(&document["relays"][0], "events"), "{document}");
}
