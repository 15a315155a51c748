//! What a row becomes in Kafka: payload, key, headers, partition, topic; and which rows halt their relay.

use outbox_relay::config::Config;
use tokio_postgres::Client;

use crate::support::outside::{fixed, halted, stdout_relay};
use crate::support::{
    CLOCK, Database, PATIENCE, Process, Record, Replica, bookings, broker, config, database, eventually, ids,
    kafka_relay, outbox_relay, records, toml, unique,
};

mod missing_topics;

/// A relay to a topic with these lines of its sink.
fn relay(name: &str, topic: &str, sink: &str) -> String {
    format!(
        "[[relay]]\nname = \"{name}\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.kafka]\n\
         topic = \"{topic}\"\n{sink}\n"
    )
}

async fn topic(prefix: &str, partitions: i32, settings: &[(&str, &str)]) -> String {
    let topic = unique(prefix);
    broker().await.create_topic(&topic, partitions, settings).await.unwrap();
    topic
}

pub async fn configured(database: &Database, relays: &str) -> Config {
    config(database, "relay", Some(&broker().await.bootstrap_servers()), relays)
}

/// Everything in the topic once it holds this many records.
pub async fn arrived(topic: &str, count: usize) -> Vec<Record> {
    let servers = broker().await.bootstrap_servers();
    eventually(PATIENCE * 2, || async { records(&servers, topic).await.len() >= count }).await;
    records(&servers, topic).await
}

async fn run(owner: &Client, sql: &str) {
    owner.batch_execute(sql).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_is_the_row_some_columns_or_one_column_unchanged_and_null_is_a_tombstone() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "ALTER TABLE bookings ADD doc json, ADD docb jsonb, ADD bin bytea").await;
    run(
        &owner,
        r#"INSERT INTO bookings (id, payload, doc, docb, bin) OVERRIDING SYSTEM VALUE VALUES
           (9007199254740993, E'tab\tü', '{"b": 1,  "a":9007199254740995}', '{"b": 1,  "a":9007199254740995}', '\x00ff0a'),
           (9007199254740994, NULL, NULL, NULL, NULL)"#,
    )
    .await;
    let shapes = [
        ("row", "{ row = true }"),
        ("columns", "{ columns = [\"id\", \"payload\"] }"),
        ("doc", "{ column = \"doc\" }"),
        ("docb", "{ column = \"docb\" }"),
        ("payload", "{ column = \"payload\" }"),
        ("bin", "{ column = \"bin\" }"),
    ];
    let mut topics = Vec::new();
    let mut relays = String::new();
    for (name, payload) in shapes {
        let topic = topic(name, 1, &[]).await;
        relays.push_str(&relay(name, &topic, &format!("payload = {payload}")));
        topics.push(topic);
    }
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    let mut found = Vec::new();
    for topic in &topics {
        let records = arrived(topic, 2).await;
        let ids: Vec<_> = records.iter().map(Record::id).collect();
        assert_eq!(ids, ["9007199254740993", "9007199254740994"]);
        found.push(records);
    }
    replica.stop().await;
    let [row, columns, doc, docb, payload, bin] = &found[..] else { panic!("six topics") };
    assert!(row[0].text().contains("\"id\":9007199254740993"), "{}", row[0].text());
    let value: serde_json::Value = serde_json::from_str(&row[0].text()).unwrap();
    assert_eq!((&value["customer"], &value["payload"]), (&"c".into(), &"tab\tü".into()));
    assert_eq!(serde_json::from_str::<serde_json::Value>(&row[1].text()).unwrap()["payload"], serde_json::Value::Null);
    let value: serde_json::Value = serde_json::from_str(&columns[0].text()).unwrap();
    assert_eq!(value.as_object().unwrap().len(), 2);
    assert!(columns[0].text().contains("9007199254740993"), "{}", columns[0].text());
    assert_eq!(doc[0].text(), r#"{"b": 1,  "a":9007199254740995}"#);
    assert_eq!(docb[0].text(), r#"{"a": 9007199254740995, "b": 1}"#);
    assert_eq!(payload[0].text(), "tab\tü");
    assert_eq!(bin[0].payload.as_deref(), Some(&[0, 255, 10][..]));
    for tombstone in [&doc[1], &docb[1], &payload[1], &bin[1]] {
        assert_eq!(tombstone.payload, None);
    }
}

// Guarantee: delivery.traceparent
#[tokio::test(flavor = "multi_thread")]
async fn configured_headers_and_the_traceparent_travel_with_the_record() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    run(&owner, "ALTER TABLE bookings ADD traceparent text, ADD region text").await;
    let insert = format!("INSERT INTO bookings (region, traceparent) VALUES ('eu', '{trace}'), (NULL, NULL)");
    run(&owner, &insert).await;
    let topic = topic("headers", 1, &[]).await;
    let sink = "payload = { column = \"payload\" }\nheaders = { \"x-region\" = \"region\" }";
    let replica = Replica::start(&configured(&database, &relay("headers", &topic, sink)).await, "r1");
    let records = arrived(&topic, 2).await;
    replica.stop().await;
    assert_eq!((records[0].header("x-region"), records[0].header("traceparent")), (Some("eu"), Some(trace)));
    assert_eq!((records[0].header("id"), records[0].header("relay")), (Some("1"), Some("headers")));
    assert_eq!(records[1].header("traceparent"), None);
    assert!(records.iter().all(|record| record.header("late").is_none() && record.header("replayed").is_none()));
}

/// The hash of Java's client, as its source has it.
fn murmur2(data: &[u8]) -> i32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c_u32 ^ u32::try_from(data.len()).unwrap();
    let words = data.chunks_exact(4);
    let rest = words.remainder();
    for word in words {
        let mut k = u32::from_le_bytes(word.try_into().unwrap()).wrapping_mul(M);
        k ^= k >> 24;
        hash = hash.wrapping_mul(M) ^ k.wrapping_mul(M);
    }
    for (place, byte) in rest.iter().enumerate() {
        hash ^= u32::from(*byte) << (8 * place);
    }
    if !rest.is_empty() {
        hash = hash.wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    (hash ^ (hash >> 15)).cast_signed()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_goes_to_the_partition_that_javas_client_chooses() {
    // From the Java client's own tests.
    for (key, hash) in [
        ("21", -973_932_308),
        ("foobar", -790_332_482),
        ("a-little-bit-long-string", -985_981_536),
        ("a-little-bit-longer-string", -1_486_304_829),
        ("abc", 479_470_107),
    ] {
        assert_eq!(murmur2(key.as_bytes()), hash, "{key}");
    }
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let mut keys: Vec<String> = (0..50).map(|n| format!("customer-{}", n * n)).collect();
    keys.extend(["", " ", "ü", "日本語", "🦀🦀", "a\tb", "0"].map(str::to_owned));
    let insert = "INSERT INTO bookings (customer) SELECT unnest($1::text[])";
    owner.execute(insert, &[&keys]).await.unwrap();
    let topic = topic("partitions", 7, &[]).await;
    let replica = Replica::start(&configured(&database, &kafka_relay("partitions", &topic, "")).await, "r1");
    let records = arrived(&topic, keys.len()).await;
    replica.stop().await;
    assert_eq!(records.len(), keys.len());
    for record in records {
        let key = record.key.as_deref().unwrap();
        assert_eq!(record.partition, (murmur2(key.as_bytes()) & 0x7fff_ffff) % 7, "{key:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_key_halts_its_relay_and_names_the_message_while_another_of_the_table_goes_on() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "ALTER TABLE bookings ADD region text").await;
    run(&owner, "INSERT INTO bookings (region) VALUES ('a'), ('b'), (NULL), ('d')").await;
    let (keyed, other) = (topic("keyed", 3, &[]).await, topic("other", 1, &[]).await);
    let relays = format!("{}{}", relay("keyed", &keyed, "key = \"region\""), kafka_relay("other", &other, ""));
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    let (message_id, error) = halted(&owner, "keyed").await;
    assert_eq!(
        (message_id.as_deref(), &error["class"], &error["code"]),
        (Some("3"), &"poison".into(), &"null_key".into())
    );
    run(&owner, "INSERT INTO bookings (region) VALUES ('e')").await;
    assert_eq!(arrived(&other, 5).await.len(), 5);
    let mut delivered: Vec<_> = arrived(&keyed, 2).await.iter().map(|record| record.id().to_owned()).collect();
    delivered.sort_unstable();
    assert_eq!(delivered, ["1", "2"]);
    run(&owner, "UPDATE bookings SET region = 'c' WHERE region IS NULL").await;
    let servers = broker().await.bootstrap_servers();
    let text = toml(&database, "relay", Some(&servers), &relays);
    let (code, out, _) = outbox_relay(&text, &["cursor", "resume", "keyed"]).await;
    assert_eq!((code, out.as_str()), (Some(0), "keyed: resumed\n"));
    assert_eq!(arrived(&keyed, 5).await.len(), 5, "each once");
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_above_the_topics_limit_is_refused_before_producing_and_those_before_it_are_delivered() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let fill = "INSERT INTO bookings (payload) SELECT repeat('x', CASE n WHEN 4 THEN 30000 ELSE 100 END) \
                FROM generate_series(1, 6) AS n";
    run(&owner, fill).await;
    let topic = topic("large", 1, &[("max.message.bytes", "20000")]).await;
    let replica = Replica::start(&configured(&database, &kafka_relay("large", &topic, "")).await, "r1");
    let (message_id, error) = halted(&owner, "large").await;
    assert_eq!((message_id.as_deref(), &error["class"]), (Some("4"), &"poison".into()));
    assert_eq!(error["code"], "message_too_large");
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with(&format!("; topic {topic} accepts 20000")), "{message}");
    replica.stop().await;
    assert_eq!(ids(&broker().await.bootstrap_servers(), &topic).await, ["1", "2", "3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_whose_limit_is_below_the_clients_batches_works() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "INSERT INTO bookings (payload) SELECT repeat('x', 200) FROM generate_series(1, 5000)").await;
    let topic = topic("small", 1, &[("max.message.bytes", "5000")]).await;
    let replica = Replica::start(&configured(&database, &kafka_relay("small", &topic, "")).await, "r1");
    let records = arrived(&topic, 5000).await;
    replica.stop().await;
    let expected: Vec<String> = (1..=5000).map(|id: i32| id.to_string()).collect();
    assert_eq!(records.iter().map(|record| record.id().to_owned()).collect::<Vec<_>>(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_by_template_takes_each_row_to_its_own_and_halts_at_a_name_that_is_no_topic() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (eu, us) = (topic("eu", 1, &[]).await, topic("us", 1, &[]).await);
    let late = unique("late");
    let insert = "INSERT INTO bookings (customer) SELECT unnest($1::text[])";
    owner.execute(insert, &[&vec![&eu, &us, &eu, &late, &us]]).await.unwrap();
    let relays = relay("routed", "{{ customer }}", "payload = { column = \"payload\" }\nkey = \"customer\"");
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    let (message_id, error) = halted(&owner, "routed").await;
    assert_eq!((message_id.as_deref(), &error["class"]), (Some("4"), &"poison".into()), "{error}");
    assert!(error["message"].as_str().unwrap().contains("opic"), "{error}");
    let servers = broker().await.bootstrap_servers();
    assert_eq!(ids(&servers, &eu).await, ["1", "3"]);
    // Rows behind it may be on their way to other topics already; they come again, each topic in order.
    let to_us = || async { ids(&servers, &us).await };
    assert!(to_us().await == ["2"] || to_us().await == ["2", "5"]);

    broker().await.create_topic(&late, 1, &[]).await.unwrap();
    let text = toml(&database, "relay", Some(&servers), &relays);
    assert_eq!(outbox_relay(&text, &["cursor", "resume", "routed"]).await.0, Some(0));
    assert_eq!(arrived(&late, 1).await[0].id(), "4");
    run(&owner, &format!("INSERT INTO bookings (customer) VALUES ('{eu}')")).await;
    arrived(&eu, 3).await; // the row after: whatever comes again has come
    let arrived_now = to_us().await;
    fixed(&owner, "routed").await;
    assert!([&["2", "5"][..], &["2", "5", "5"]].iter().any(|order| arrived_now == *order), "{arrived_now:?}");
    run(&owner, "INSERT INTO bookings (customer) VALUES ('no topic!')").await;
    let (message_id, error) = halted(&owner, "routed").await;
    assert_eq!((message_id.as_deref(), &error["code"]), (Some("7"), &"invalid_topic".into()));
    assert_eq!(error["class"], "poison");
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_partitions_without_a_key_are_refused_unless_order_is_given_up() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 20)").await;
    let topic = topic("three", 3, &[]).await;
    let relays = format!(
        "{}{}{}",
        relay("ordered", &topic, "payload = { column = \"payload\" }"),
        relay("unordered", &topic, "unordered = true"),
        stdout_relay("printed", "")
    );
    let servers = broker().await.bootstrap_servers();
    let process = Process::spawn(&toml(&database, "relay", Some(&servers), &relays), &["run"]);
    let (_, error) = halted(&owner, "ordered").await;
    let message = format!("topic {topic} has 3 partitions and the relay has no key: order would be lost");
    assert_eq!((&error["code"], &error["message"]), (&"key_missing".into(), &message.into()));
    let records = arrived(&topic, 20).await;
    assert!(records.iter().all(|record| record.header("relay") == Some("unordered")));
    drop(process);
}
