//! `format = "avro"`, `"protobuf"` and `"json_schema"`, with a registry that a test can take away. A real one: `make test-registry`.

use outbox_testkit::registry::{Answer, ScriptedRegistry};
use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::kafka_sink::arrived;
use crate::support::outside::{fixed, halted, standing};
use crate::support::relays::parse;
use crate::support::schemas::{BOOKING, BOOKING_2, Decoder, id, relay, section};
use crate::support::{
    CLOCK, Database, PATIENCE, Record, Replica, bookings, broker, database, eventually, ids, outbox_relay, toml, unique,
};

mod away;
mod checked;
mod misfits;
mod replicas;

async fn topic(prefix: &str) -> String {
    let topic = unique(prefix);
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    topic
}

/// The text of a configuration with this section of the registry and these relays.
async fn text(database: &Database, registry: &str, relays: &str) -> String {
    toml(database, "relay", Some(&broker().await.bootstrap_servers()), &format!("{registry}{relays}"))
}

/// A replica of the same.
async fn replica(database: &Database, registry: &str, relays: &str) -> Replica {
    Replica::start(&parse(&text(database, registry, relays).await), "r1")
}

async fn run(owner: &Client, sql: &str) {
    owner.batch_execute(sql).await.unwrap();
}

fn value(record: &Record) -> &[u8] {
    record.payload.as_deref().expect("a value")
}

const COLUMNS: &str = "ALTER TABLE bookings ADD price numeric(12,2), ADD day date, ADD at timestamp, ADD tags text[], ADD doc jsonb, \
    ADD bin bytea, ADD ref uuid, ADD ok boolean, ADD rate double precision; \
    INSERT INTO bookings (id, customer, created_at, payload, price, day, at, tags, doc, bin, ref, ok, rate) OVERRIDING SYSTEM VALUE VALUES \
    (9007199254740993, 'müller', '2026-11-21 08:00:00.123456+00', E'tab\\t\"€', 1234567890.10, '2026-02-28', '2026-11-21 02:30:00', \
     '{a,b}', '{\"n\": 12345678901234567890.10}', '\\x00ff0a', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', true, 0.1), \
    (9007199254740994, 'm', '2026-11-21 09:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)";

const AVRO: &str = r#"{"type":"record","name":"Booking","namespace":"org.example","fields":[
    {"name":"id","type":"long"},
    {"name":"created_at","type":{"type":"long","logicalType":"timestamp-micros"}},
    {"name":"customer","type":"string"},
    {"name":"payload","type":["null","string"]},
    {"name":"price","type":["null",{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}]},
    {"name":"day","type":["null",{"type":"int","logicalType":"date"}]},
    {"name":"at","type":["null",{"type":"long","logicalType":"local-timestamp-millis"}]},
    {"name":"tags","type":["null",{"type":"array","items":"string"}]},
    {"name":"doc","type":["null","string"]},
    {"name":"bin","type":["null","bytes"]},
    {"name":"ref","type":["null",{"type":"string","logicalType":"uuid"}]},
    {"name":"ok","type":["null","boolean"]},
    {"name":"rate","type":["null","double"]},
    {"name":"source","type":"string","default":"relay"}]}"#;

const PROTOBUF: &str = "syntax = \"proto3\"; package org.example; import \"google/protobuf/timestamp.proto\";
    message Other {}
    message Booking {
        int64 id = 1; google.protobuf.Timestamp created_at = 2; string customer = 3; optional string payload = 4; string price = 5;
        string day = 6; google.protobuf.Timestamp at = 7; repeated string tags = 8; string doc = 9; bytes bin = 10; string ref = 11;
        bool ok = 12; double rate = 13; }";

const JSON: &str = r#"{"title":"Booking","type":"object","additionalProperties":false,"required":["id","customer"],"properties":{
    "id":{"type":"integer"},"created_at":{"type":"string"},"customer":{"type":"string","minLength":1},"payload":{},"price":{},"day":{},
    "at":{},"tags":{},"doc":{},"bin":{},"ref":{},"ok":{"type":["boolean","null"]},"rate":{"type":["number","null"]}}}"#;

// Guarantee: delivery.schema-registry
#[tokio::test(flavor = "multi_thread")]
async fn consumer_of_another_project_reads_each_format_by_the_schema_in_the_registry() {
    let (database, registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    run(&owner, COLUMNS).await;
    let [avro, protobuf, json] = [topic("sr-avro").await, topic("sr-proto").await, topic("sr-json").await];
    // Ids of their own for the three.
    registry.register("other", "AVRO", "\"string\"");
    let of_avro = registry.register(&format!("{avro}-value"), "AVRO", AVRO);
    let of_protobuf = registry.register(&format!("{protobuf}-org.example.Booking"), "PROTOBUF", PROTOBUF);
    let of_json = registry.register("Booking", "JSON", JSON);
    let relays = [
        relay(&avro, "avro", ("", "", "")),
        relay(&protobuf, "protobuf", ("", "", "message = \"org.example.Booking\"\nsubject = \"topic_record\"")),
        relay(&json, "json_schema", ("", "", "record = \"Booking\"\nsubject = \"record\"\nversion = 1")),
    ];
    let replica = replica(&database, &section(&registry.url(), ""), &relays.concat()).await;
    let decoder = Decoder::new(&registry.url(), None);
    for (topic, schema) in [(&avro, of_avro), (&protobuf, of_protobuf), (&json, of_json)] {
        for record in arrived(topic, 2).await {
            assert_eq!((id(value(&record)), record.header("relay")), (schema, Some(topic.as_str())));
        }
    }
    let records = arrived(&avro, 2).await;
    assert_eq!((records[0].id(), records[0].key.as_deref()), ("9007199254740993", Some("müller")));
    let first = decoder.avro(value(&records[0])).await;
    let expected = json!({
        "id": 9_007_199_254_740_993_i64, "created_at": 1_795_248_000_123_456_i64, "customer": "müller", "payload": "tab\t\"€",
        "price": [0x1c, 0xbe, 0x99, 0x1a, 0x12], "day": 20_512, "at": 1_795_228_200_000_i64, "tags": ["a", "b"],
        "doc": "{\"n\": 12345678901234567890.10}", "bin": [0, 255, 10], "ref": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ok": true,
        "rate": 0.1, "source": "relay"
    });
    assert_eq!(first, expected);
    let second = decoder.avro(value(&records[1])).await;
    assert!(second["payload"].is_null() && second["price"].is_null() && second["source"] == "relay", "{second}");

    let records = arrived(&protobuf, 2).await;
    let first = decoder.protobuf(value(&records[0])).await;
    let expected = json!({
        "id": "9007199254740993", "createdAt": "2026-11-21T08:00:00.123456Z", "customer": "müller", "payload": "tab\t\"€",
        "price": "1234567890.10", "day": "2026-02-28", "at": "2026-11-21T02:30:00Z", "tags": ["a", "b"],
        "doc": "{\"n\": 12345678901234567890.10}", "bin": "AP8K", "ref": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ok": true, "rate": 0.1
    });
    assert_eq!(first, expected);
    assert_eq!(decoder.protobuf(value(&records[1])).await.get("payload"), None);

    let records = arrived(&json, 2).await;
    assert_eq!(decoder.json(value(&records[0])).await["customer"], "müller");
    let text = std::str::from_utf8(&value(&records[0])[5..]).unwrap();
    assert!(
        text.contains("\"id\":9007199254740993") && text.contains("12345678901234567890.10"),
        "digits stay: {text}"
    );
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn payload_that_is_null_is_a_tombstone_and_needs_no_schema() {
    let (database, mut registry) = (database().await, ScriptedRegistry::start().await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "ALTER TABLE bookings ADD doc json, ADD topic text").await;
    let [first, second] = [topic("sr-null").await, topic("sr-null").await];
    registry.register(&format!("{first}-value"), "AVRO", "{\"type\":\"map\",\"values\":\"long\"}");
    let name = unique("routed");
    let sink = "payload = { column = \"doc\" }";
    let relays = relay("{{ topic }}", "avro", ("", sink, "")).replacen(
        "name = \"{{ topic }}\"",
        &format!("name = \"{name}\""),
        1,
    );
    let replica = replica(&database, &section(&registry.url(), ""), &relays).await;
    run(&owner, &format!("INSERT INTO bookings (topic, doc) VALUES ('{first}', '{{\"a\": 1}}'), ('{first}', NULL)"))
        .await;
    let records = arrived(&first, 2).await;
    assert_eq!((&value(&records[0])[5..], records[1].payload.as_deref()), (&[2, 2, b'a', 2, 0][..], None));
    registry.down();
    // Of this topic nothing is known.
    run(&owner, &format!("INSERT INTO bookings (topic, doc) VALUES ('{second}', NULL)")).await;
    assert_eq!(arrived(&second, 1).await[0].payload, None);
    replica.stop().await;
}
