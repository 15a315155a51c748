//! Payloads of a mebibyte and more, to topics that take them and to topics that do not.

use outbox_testkit::kafka::{BrokerOptions, Java, RealBroker};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;
use rdkafka::message::Message;
use rustix::process::Signal;

use super::{PATIENT, fill, holds, is_of, peak, replica, topic};
use crate::support::outside::halted;
use crate::support::records::{Record, each};
use crate::support::{CLOCK, Process, bookings, broker, database, ids, kafka_relay, outbox_relay, records, toml};

const MEBIBYTE: usize = 1 << 20;
/// Three rows are large; their neighbours have a line.
const SIZES: &str = "CASE n WHEN 4 THEN 64 WHEN 6 THEN 72 WHEN 7 THEN 64 ELSE 0 END * 1024 * 1024 + 64";
const ROWS: i32 = 9;

fn relay(name: &str, topic: &str, more: &str) -> String {
    format!("{}{PATIENT}", kafka_relay(name, topic, more))
}

/// Ten rows are large here: more than the process may have.
const MANY: &str = "CASE WHEN n = 6 THEN 72 WHEN n BETWEEN 4 AND 13 THEN 64 ELSE 0 END * 1024 * 1024 + 64";
const OF_MANY: i32 = 15;
const BOUND: u64 = 600;

fn bytes(row: usize) -> usize {
    let mebibytes = match row {
        6 => 72,
        4..=13 => 64,
        _ => 0,
    };
    mebibytes * MEBIBYTE + 64
}

// Guarantee: delivery.large-rows
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_mebibyte_arrive_whole_and_in_order_where_the_topic_takes_just_them() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, "CASE n % 3 WHEN 0 THEN 1024 * 1024 ELSE 64 END", 30).await;
    let topic = topic("mebibyte", &[("max.message.bytes", "1049600")]).await;
    let _replica = replica(&database, &relay("mebibyte", &topic, "")).await;
    let servers = broker().await.bootstrap_servers();
    holds(&servers, &topic, 30).await;
    for (n, record) in (1..=30).zip(records(&servers, &topic).await) {
        assert_eq!(record.id(), n.to_string());
        assert!(is_of(&record.payload.unwrap(), &n.to_string(), if n % 3 == 0 { MEBIBYTE } else { 64 }), "row {n}");
    }
}

// Guarantee: delivery.large-rows
// Guarantee: delivery.memory
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_64_mebibytes_arrive_whole_and_in_order_with_their_neighbours() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, MANY, OF_MANY).await;
    // One of its own, with the memory of a real one: each of a broker's network threads keeps a buffer as large as the largest
    // request that it has read, and three of these are more than the tests' small Java has.
    let lasting = BrokerOptions { java: Java::Lasting, ..BrokerOptions::default() };
    let broker = RealBroker::start_with(&lasting).await.unwrap();
    let servers = broker.bootstrap_servers();
    broker.create_topic("large", 1, &[("max.message.bytes", "76000000")]).await.unwrap();
    let mut replica = Process::spawn(&toml(&database, "relay", Some(&servers), &relay("large", "large", "")), &["run"]);
    holds(&servers, "large", i64::from(OF_MANY)).await;
    let peak = peak(&replica);
    println!("the relay had at most {peak} MiB");
    replica.signal(Signal::TERM);
    assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
    let seen = each(&servers, "large", |message| {
        let (row, payload) = (usize::try_from(message.offset()).unwrap() + 1, message.payload().unwrap());
        (row, payload.len(), is_of(payload, &row.to_string(), bytes(row)))
    });
    let expected: Vec<_> = (1..=usize::try_from(OF_MANY).unwrap()).map(|row| (row, bytes(row), true)).collect();
    assert_eq!(seen.await, expected, "each once, in order");
    assert!(peak < BOUND, "the relay had {peak} MiB");
    broker.stop().await.unwrap();
}

// Guarantee: failures.too-large
#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_64_mebibytes_that_the_topic_does_not_take_halts_its_relay_behind_the_rows_before_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, SIZES, ROWS).await;
    let topic = topic("refusing", &[]).await;
    let _replica = replica(&database, &relay("refusing", &topic, "")).await;
    let (message_id, error) = halted(&owner, "refusing").await;
    assert_eq!((message_id.as_deref(), error["class"].as_str()), (Some("4"), Some("poison")), "{error}");
    assert_eq!(error["code"], "message_too_large");
    assert!(error["hint"].as_str().unwrap().contains("max.message.bytes"), "{error}");
    assert_eq!(ids(&broker().await.bootstrap_servers(), &topic).await, ["1", "2", "3"]);
}

/// Gives a topic of the shared broker another limit, as an operator does.
async fn raise(topic: &str, bytes: &str) {
    let mut client = ClientConfig::new();
    client.set("bootstrap.servers", broker().await.bootstrap_servers());
    let admin: AdminClient<DefaultClientContext> = client.create().unwrap();
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set("max.message.bytes", bytes);
    for changed in admin.alter_configs([&change], &AdminOptions::new()).await.unwrap() {
        changed.unwrap();
    }
}

// Guarantee: failures.raised-limit
#[tokio::test(flavor = "multi_thread")]
async fn resume_reads_the_topics_raised_limit() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, "CASE n WHEN 2 THEN 50000 ELSE 64 END", 3).await;
    let topic = topic("raised", &[("max.message.bytes", "20000")]).await;
    let servers = broker().await.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &relay("raised", &topic, ""));
    let _replica = Process::spawn(&text, &["run"]);
    let (_, error) = halted(&owner, "raised").await;
    assert_eq!(error["code"], "message_too_large");
    raise(&topic, "100000").await;
    let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "raised"]).await;
    assert_eq!(code, Some(0), "{log}");
    holds(&servers, &topic, 3).await;
    assert_eq!(ids(&servers, &topic).await, ["1", "2", "3"]);
}

// Guarantee: failures.raised-limit
#[tokio::test(flavor = "multi_thread")]
async fn redrive_reads_the_topics_raised_limit() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, "CASE n WHEN 2 THEN 50000 ELSE 64 END", 3).await;
    let topic = topic("redriven", &[("max.message.bytes", "20000")]).await;
    let servers = broker().await.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &relay("redriven", &topic, "on_poison = \"dead_letter\""));
    let _replica = Process::spawn(&text, &["run"]);
    holds(&servers, &topic, 2).await;
    raise(&topic, "100000").await;
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "redriven", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    holds(&servers, &topic, 3).await;
    assert_eq!(ids(&servers, &topic).await, ["1", "3", "2"]);
}

// Guarantee: failures.too-large
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_64_mebibytes_that_the_topic_does_not_take_are_put_aside_whole_and_the_others_arrive_in_order() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, SIZES, ROWS).await;
    let topic = topic("aside", &[]).await;
    let _replica = replica(&database, &relay("aside", &topic, "on_poison = \"dead_letter\"")).await;
    let servers = broker().await.bootstrap_servers();
    holds(&servers, &topic, 6).await;
    let came: Vec<Record> = records(&servers, &topic).await;
    assert_eq!(came.iter().map(Record::id).collect::<Vec<_>>(), ["1", "2", "3", "5", "8", "9"]);
    let letters = "SELECT d.message_id, d.payload = convert_to(b.payload, 'UTF8'), d.error->>'code' \
                   FROM outbox.dead_letter AS d JOIN bookings AS b ON b.id::text = d.message_id ORDER BY d.id";
    let letters: Vec<(String, bool, String)> =
        owner.query(letters, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
    let letter = |id: &str| (id.to_owned(), true, "message_too_large".to_owned());
    assert_eq!(letters, [letter("4"), letter("6"), letter("7")], "with what they hold");
}

// Guarantee: failures.too-large
#[tokio::test(flavor = "multi_thread")]
async fn a_record_above_the_brokers_largest_request_is_poison_though_its_topic_would_take_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    fill(&owner, "CASE n WHEN 2 THEN 101 * 1024 * 1024 ELSE 64 END", 3).await;
    let topic = topic("request", &[("max.message.bytes", "200000000")]).await;
    let _replica = replica(&database, &relay("request", &topic, "on_poison = \"dead_letter\"")).await;
    let servers = broker().await.bootstrap_servers();
    holds(&servers, &topic, 2).await;
    assert_eq!(ids(&servers, &topic).await, ["1", "3"]);
    let letter = owner.query_one("SELECT message_id, error->>'code' FROM outbox.dead_letter", &[]).await.unwrap();
    assert_eq!((letter.get(0), letter.get(1)), ("2", "message_too_large"));
}
