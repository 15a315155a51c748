//! What happens at a message that its receiver will never accept: the offending row is found, halts its relay or is put aside,
//! and can be sent again.

mod kill;
mod letters;
mod many;
mod partitions;
mod search;
mod verbs;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use serde_json::Value;

use self::partitions::{grow, marks_until};
use crate::support::outside::{halted, is_halted, json};
use crate::support::relays::parse;
use crate::support::{
    CLOCK, Database, PATIENCE, Record, Replica, bookings, broker, config, database, eventually, ids, kafka_relay,
    outbox_relay, records, toml, unique,
};

const ROWS: usize = 600;
const CULPRIT: &str = "301";

async fn admin() -> AdminClient<DefaultClientContext> {
    ClientConfig::new().set("bootstrap.servers", broker().await.bootstrap_servers()).create().unwrap()
}

/// The topic accepts records of this many bytes from now on; the relay believes what it saw at its start.
pub(crate) async fn limit(topic: &str, bytes: &str) {
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("max.message.bytes", bytes);
    let done = admin().await.alter_configs([&change], &AdminOptions::new()).await.unwrap();
    assert!(done.iter().all(Result::is_ok), "{done:?}");
}

async fn all(topic: &str) -> Vec<Record> {
    records(&broker().await.bootstrap_servers(), topic).await
}

/// A relay that has published one row before the topic refuses row `CULPRIT` of the `ROWS` that come then.
async fn refused(database: &Database, relays: &str, name: &str, topic: &str, in_flight: usize) -> Replica {
    let owner = bookings(database, CLOCK).await;
    let text = toml(database, "relay", Some(&broker().await.bootstrap_servers()), relays);
    let properties = format!("\n[kafka.properties]\n\"max.in.flight.requests.per.connection\" = \"{in_flight}\"\n");
    let replica = Replica::start(&parse(&format!("{text}{properties}")), name);
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('first')").await.unwrap();
    eventually(PATIENCE, || async { all(topic).await.len() == 1 }).await;
    limit(topic, "20000").await;
    let fill = format!(
        "INSERT INTO bookings (payload) SELECT repeat('x', CASE n WHEN {CULPRIT} THEN 30000 ELSE 50 END) \
         FROM generate_series(2, {ROWS}) AS n"
    );
    owner.batch_execute(&fill).await.unwrap();
    replica
}

async fn the_culprit_is_found(in_flight: usize) {
    let database = database().await;
    let topic = unique("culprit");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let replica = refused(&database, &kafka_relay("culprit", &topic, ""), "r1", &topic, in_flight).await;
    let owner = database.connect("postgres").await;
    let (message_id, error) = halted(&owner, "culprit").await;
    replica.stop().await;
    assert_eq!((message_id.as_deref(), &error["class"]), (Some(CULPRIT), &"poison".into()), "{error}");
    let before: Vec<String> = (1..CULPRIT.parse().unwrap()).map(|id: i32| id.to_string()).collect();
    assert_eq!(ids(&broker().await.bootstrap_servers(), &topic).await, before, "all before it, in order, once");
}

// Guarantee: failures.isolated-record
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_the_broker_refuses_stands_alone_before_it_halts_with_one_request_in_flight() {
    the_culprit_is_found(1).await;
}

// Guarantee: failures.isolated-record
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_the_broker_refuses_stands_alone_before_it_halts_with_five_requests_in_flight() {
    the_culprit_is_found(5).await;
}

// Guarantee: failures.too-large
// Guarantee: failures.redrive
#[tokio::test(flavor = "multi_thread")]
async fn a_poison_row_is_put_aside_and_redriven_with_its_id_and_the_mark_replayed() {
    let database = database().await;
    let topic = unique("dead");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let relays = kafka_relay("dead", &topic, "on_poison = \"dead_letter\"");
    let replica = refused(&database, &relays, "r1", &topic, 5).await;
    eventually(PATIENCE * 2, || async { all(&topic).await.len() == ROWS - 1 }).await;
    let expected: Vec<String> = (1..=ROWS).map(|id| id.to_string()).filter(|id| id != CULPRIT).collect();
    assert_eq!(ids(&broker().await.bootstrap_servers(), &topic).await, expected, "all others, in order, once");

    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &relays);
    let (code, out, log) = outbox_relay(&text, &["dead-letter", "list", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let letters = json(&out)["dead_letters"].as_array().unwrap().clone();
    assert_eq!(letters.len(), 1, "{out}");
    assert_eq!((&letters[0]["key"], &letters[0]["error"]["class"]), (&Value::from(vec![CULPRIT]), &"poison".into()));
    let id = letters[0]["id"].to_string();
    let (_, shown, _) = outbox_relay(&text, &["dead-letter", "show", &id, "-o", "json"]).await;
    assert_eq!(json(&shown)["payload"].as_str().unwrap().len(), 30_000, "the payload as sent");

    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", &id]).await;
    assert_eq!(code, Some(2), "nobody can be asked: {log}");
    limit(&topic, "1000000").await;
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", &id, "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE, || async { all(&topic).await.len() == ROWS }).await;
    let last = all(&topic).await.pop().unwrap();
    assert_eq!((last.id(), last.header("replayed")), (CULPRIT, Some("true")));
    let (_, out, _) = outbox_relay(&text, &["dead-letter", "list", "-o", "json"]).await;
    assert_eq!(json(&out)["dead_letters"], Value::Array(Vec::new()));
    let owner = database.connect("postgres").await;
    let done = "SELECT count(*) FROM outbox.operation WHERE verb = 'dead-letter redrive'";
    assert_eq!(owner.query_one(done, &[]).await.unwrap().get::<_, i64>(0), 1);
    replica.stop().await;
}

// Guarantee: failures.partition-count
#[tokio::test(flavor = "multi_thread")]
async fn another_number_of_partitions_halts_a_keyed_relay_until_it_is_adopted() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let topic = unique("grown");
    broker().await.create_topic(&topic, 2, &[]).await.unwrap();
    let relays = kafka_relay("grown", &topic, "");
    let replica = Replica::start(&config(&database, "relay", Some(&broker().await.bootstrap_servers()), &relays), "r1");
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('a')").await.unwrap();
    eventually(PATIENCE, || async { all(&topic).await.len() == 1 }).await;
    grow(&topic, 4).await;
    marks_until(&owner, &topic, async || is_halted(&owner, "grown").await).await;
    assert_eq!(halted(&owner, "grown").await.1["code"], "partition_count_changed");
    let text = toml(&database, "relay", Some(&broker().await.bootstrap_servers()), &relays);
    let (code, _, log) = outbox_relay(&text, &["cursor", "adopt", "grown", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let rows: i64 = owner.query_one("SELECT count(*) FROM bookings", &[]).await.unwrap().get(0);
    eventually(PATIENCE * 2, || async { all(&topic).await.len() == usize::try_from(rows).unwrap() }).await;
    replica.stop().await;
}
