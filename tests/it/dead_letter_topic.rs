//! A topic for dead letters gets a copy of each before its row is put aside.

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, AlterConfig, ResourceSpecifier};
use rdkafka::client::DefaultClientContext;

use crate::support::outside::halted;
use crate::support::{
    CLOCK, Database, PATIENCE, Record, Replica, bookings, broker, config, database, eventually, ids, kafka_relay,
    records, unique,
};

const FILL: &str = "INSERT INTO bookings (customer, payload) \
                    SELECT 'c', repeat('x', CASE n WHEN 3 THEN 5000 ELSE 5 END) FROM generate_series(1, 5) AS n";

async fn set(topic: &str, key: &str, value: &str) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", broker().await.bootstrap_servers()).create().unwrap();
    let change = AlterConfig::new(ResourceSpecifier::Topic(topic)).set(key, value);
    let done = admin.alter_configs([&change], &AdminOptions::new()).await.unwrap();
    assert!(done.iter().all(Result::is_ok), "{done:?}");
}

async fn all(topic: &str) -> Vec<Record> {
    records(&broker().await.bootstrap_servers(), topic).await
}

/// A relay whose topic takes 2,000 bytes, with a topic for its dead letters of these settings.
async fn start(database: &Database, letters: &[(&str, &str)]) -> (Replica, String, String) {
    let (topic, dead) = (unique("living"), unique("dead"));
    broker().await.create_topic(&topic, 1, &[("max.message.bytes", "2000")]).await.unwrap();
    broker().await.create_topic(&dead, 1, letters).await.unwrap();
    let more = format!("on_poison = \"dead_letter\"\ndead_letter_topic = \"{dead}\"");
    let relays = kafka_relay("copied", &topic, &more);
    let config = config(database, "relay", Some(&broker().await.bootstrap_servers()), &relays);
    (Replica::start(&config, "r1"), topic, dead)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_letter_is_copied_to_its_topic_with_key_payload_and_reason() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(FILL).await.unwrap();
    let (replica, topic, dead) = start(&database, &[]).await;
    eventually(PATIENCE, || async { all(&topic).await.len() == 4 }).await;
    replica.stop().await;
    assert_eq!(ids(&broker().await.bootstrap_servers(), &topic).await, ["1", "2", "4", "5"]);
    let copies = all(&dead).await;
    assert_eq!(copies.len(), 1);
    let copy = &copies[0];
    assert_eq!((copy.id(), copy.header("relay"), copy.header("sink")), ("3", Some("copied"), Some("kafka")));
    assert_eq!((copy.header("error_code"), copy.header("target")), (Some("message_too_large"), Some(topic.as_str())));
    assert!(copy.header("error").unwrap().contains("accepts 2000"), "{copy:?}");
    assert_eq!((copy.key.as_deref(), copy.payload.as_ref().map(Vec::len)), (Some("c"), Some(5000)));
    assert_eq!(copy.header("payload_omitted"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_the_topic_of_dead_letters_cannot_take_is_left_out_and_said_to_be() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(FILL).await.unwrap();
    let (replica, topic, dead) = start(&database, &[("max.message.bytes", "2000")]).await;
    eventually(PATIENCE, || async { all(&topic).await.len() == 4 }).await;
    replica.stop().await;
    let copies = all(&dead).await;
    assert_eq!((copies.len(), copies[0].header("payload_omitted"), &copies[0].payload), (1, Some("true"), &None));
    let kept = owner.query_one("SELECT octet_length(payload) FROM outbox.dead_letter", &[]).await.unwrap();
    assert_eq!(kept.get::<_, i32>(0), 5000);
}

// Guarantee: failures.dead-letter-topic
#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_put_aside_while_its_copy_is_refused() {
    let database = database().await;
    let mut owner = bookings(&database, CLOCK).await;
    let (replica, topic, dead) = start(&database, &[]).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('first')").await.unwrap();
    eventually(PATIENCE, || async { all(&topic).await.len() == 1 }).await;
    // The relay believes what it saw of the topic at its start.
    set(&dead, "max.message.bytes", "500").await;
    owner.batch_execute(FILL).await.unwrap();
    let (message_id, error) = halted(&owner, "copied").await;
    assert_eq!((message_id.as_deref(), &error["code"]), (Some("4"), &"dead_letter_topic".into()), "{error}");
    assert!(error["message"].as_str().unwrap().starts_with(&format!("Dead letter topic {dead}: ")), "{error}");
    let standing = "SELECT position_id, (SELECT count(*) FROM outbox.dead_letter) FROM outbox.cursor";
    // All before it, and not it: the halt can be read an instant before the turn's commit.
    let before = async || {
        let row = owner.query_one(standing, &[]).await.unwrap();
        (row.get::<_, String>(0), row.get::<_, i64>(1)) == ("3".to_owned(), 0)
    };
    eventually(PATIENCE, before).await;

    set(&dead, "max.message.bytes", "100000").await;
    outbox_relay::cursor::control::resume(&mut owner, "copied", "test").await.unwrap();
    eventually(PATIENCE, || async { all(&topic).await.len() == 5 }).await;
    replica.stop().await;
    assert_eq!(ids(&broker().await.bootstrap_servers(), &topic).await, ["1", "2", "3", "5", "6"]);
    let row = owner.query_one(standing, &[]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, i64>(1)), ("6", 1));
    assert_eq!(all(&dead).await.len(), 1);
}
