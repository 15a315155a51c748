//! Records in formats whose schemas are in a real registry: `make test-registry`, outside of CI, because the registry is 158 MB and takes a
//! quarter of a gigabyte while it runs. What a registry does only when it is made to is in `tests/it/schema_registry.rs`.
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    unused_imports,
    clippy::disallowed_methods,
    clippy::too_many_lines,
    clippy::unwrap_used,
    reason = "as in tests/it, of whose support little is used here"
)]
#![cfg(feature = "schema-registry")]

use apache_avro::Schema;
use apache_avro::reader::datum::GenericDatumReader;
use outbox_testkit::registry::{RealRegistry, USER};
use serde_json::{Value, json};
use support::outside::{client, finding, fixed, standing};
use support::records::{Record, records};
use support::relays::parse;
use support::schemas::{BOOKING, BOOKING_2, Decoder, id, relay, section};
use support::{CLOCK, Database, PATIENCE, Replica, bookings, broker, database, eventually, outbox_relay, toml, unique};
use tokio_postgres::Client;

#[path = "../it/support/mod.rs"]
mod support;

const ADDRESS: &str =
    r#"{"type":"record","name":"Address","namespace":"org.example","fields":[{"name":"city","type":"string"}]}"#;
const AVRO: &str = r#"{"type":"record","name":"Booking","namespace":"org.example","fields":[
    {"name":"id","type":"long"},{"name":"customer","type":"string"},{"name":"address","type":["null","org.example.Address"]},
    {"name":"price","type":{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}}]}"#;
const ADDRESS_PROTO: &str = "syntax = \"proto3\"; package org.example; message Address { string city = 1; }";
const PROTOBUF: &str = "syntax = \"proto3\"; package org.example; import \"org/example/address.proto\";
    message Trip { message Other {} message Booking { int64 id = 1; string customer = 2; Address address = 3; string price = 4; } }";
const ADDRESS_JSON: &str = r#"{"type":"object","required":["city"],"properties":{"city":{"type":"string"}}}"#;
const JSON: &str = r#"{"title":"Booking","type":"object","required":["price"],"properties":{
    "id":{"type":"integer"},"customer":{"type":"string"},"address":{"$ref":"address.json"},"price":{"type":"number"}}}"#;
const ROW: &str = "ALTER TABLE bookings ADD address jsonb, ADD price numeric(12,2); \
    INSERT INTO bookings (id, customer, address, price) OVERRIDING SYSTEM VALUE \
    VALUES (9007199254740993, 'müller', '{\"city\": \"Delft\"}', 1234567890.10)";

/// Sends a body to the registry, and answers what it says.
async fn tell(method: reqwest::Method, url: &str, body: &Value) -> Value {
    let request = client().request(method, url).header("content-type", "application/vnd.schemaregistry.v1+json");
    let answer = request.basic_auth(USER.0, Some(USER.1)).body(body.to_string()).send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert!(status.is_success(), "{url}: {status} {text}");
    serde_json::from_str(&text).unwrap()
}

/// Registers a schema, which may refer to the first version of another subject's; answers its id.
async fn register(url: &str, subject: &str, (kind, text): (&str, &str), reference: Option<(&str, &str)>) -> u64 {
    let references: Vec<Value> =
        reference.iter().map(|(name, subject)| json!({ "name": name, "subject": subject, "version": 1 })).collect();
    let body = json!({ "schemaType": kind, "schema": text, "references": references });
    let answer = tell(reqwest::Method::POST, &format!("{url}/subjects/{subject}/versions"), &body).await;
    answer["id"].as_u64().unwrap()
}

async fn topic(prefix: &str) -> String {
    let topic = unique(prefix);
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    topic
}

async fn text(database: &Database, registry: &str, relays: &str) -> String {
    toml(database, "relay", Some(&broker().await.bootstrap_servers()), &format!("{registry}{relays}"))
}

async fn arrived(topic: &str, count: usize) -> Vec<Record> {
    let servers = broker().await.bootstrap_servers();
    eventually(PATIENCE * 2, async || records(&servers, topic).await.len() >= count).await;
    records(&servers, topic).await
}

fn value(record: &Record) -> &[u8] {
    record.payload.as_deref().unwrap()
}

async fn insert(owner: &Client) {
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
}

/// The code and the words of a relay's last error.
async fn error(owner: &Client, relay: &str) -> (String, String) {
    let error = standing(owner, relay).await.map_or(Value::Null, |(_, _, _, error)| error);
    let said = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
    (said("code"), said("message"))
}

// Guarantee: delivery.schema-registry
#[tokio::test(flavor = "multi_thread")]
async fn records_are_read_by_the_schemas_of_a_registry_that_wants_a_password_and_by_those_that_they_refer_to() {
    let (database, registry) = (database().await, RealRegistry::start(true).await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute(ROW).await.unwrap();
    let url = registry.url();
    let [avro, protobuf, json] = [topic("real-avro").await, topic("real-proto").await, topic("real-json").await];
    register(&url, "address", ("AVRO", ADDRESS), None).await;
    register(&url, "address-proto", ("PROTOBUF", ADDRESS_PROTO), None).await;
    register(&url, "address-json", ("JSON", ADDRESS_JSON), None).await;
    let other = Some(("org.example.Address", "address"));
    let of_avro = register(&url, &format!("{avro}-value"), ("AVRO", AVRO), other).await;
    let other = Some(("org/example/address.proto", "address-proto"));
    let of_protobuf = register(&url, "org.example.Trip.Booking", ("PROTOBUF", PROTOBUF), other).await;
    let other = Some(("address.json", "address-json"));
    let of_json = register(&url, &format!("{json}-Booking"), ("JSON", JSON), other).await;

    let folder = tempfile::tempdir().unwrap();
    let password = folder.path().join("password");
    std::fs::write(&password, format!("{}\n", USER.1)).unwrap();
    let credentials = format!("username = \"{}\"\npassword_file = \"{}\"", USER.0, password.display());
    let sink = "payload = { columns = [\"id\", \"customer\", \"address\", \"price\"] }";
    let relays = [
        relay(&avro, "avro", ("", sink, "")),
        relay(&protobuf, "protobuf", ("", sink, "message = \"org.example.Trip.Booking\"\nsubject = \"record\"")),
        relay(&json, "json_schema", ("", sink, "record = \"Booking\"\nsubject = \"topic_record\"")),
    ];
    let text = text(&database, &section(&url, &credentials), &relays.concat()).await;
    let (code, said, log) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let found: Value = serde_json::from_str(&said).unwrap();
    assert!(code == Some(0) && finding(&found, "schema").is_some(), "{said}{log}");
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains(USER.1));

    let decoder = Decoder::new(&url, Some(USER));
    let record = arrived(&avro, 1).await.remove(0);
    assert_eq!(u64::from(id(value(&record))), of_avro);
    let schemas = Schema::parse_list([ADDRESS, AVRO]).unwrap();
    let reader = GenericDatumReader::builder(&schemas[1]).writer_schemata(schemas.iter().collect()).unwrap();
    let read = reader.build().unwrap().read_value(&mut &value(&record)[5..]).unwrap();
    let expected = json!({
        "id": 9_007_199_254_740_993_i64, "customer": "müller", "address": { "city": "Delft" },
        "price": [0x1c, 0xbe, 0x99, 0x1a, 0x12]
    });
    assert_eq!(Value::try_from(read).unwrap(), expected);

    let record = arrived(&protobuf, 1).await.remove(0);
    assert_eq!(u64::from(id(value(&record))), of_protobuf);
    let expected = json!({
        "id": "9007199254740993", "customer": "müller", "address": { "city": "Delft" }, "price": "1234567890.10"
    });
    assert_eq!(decoder.protobuf(value(&record)).await, expected);

    let record = arrived(&json, 1).await.remove(0);
    assert_eq!(u64::from(id(value(&record))), of_json);
    assert_eq!(decoder.json(value(&record)).await["address"], json!({ "city": "Delft" }));
    registry.stop().await.unwrap();
}

// Guarantee: failures.schema-refused
// Guarantee: failures.schema-registry-away
// Guarantee: delivery.schema-evolution
#[tokio::test(flavor = "multi_thread")]
async fn real_registry_takes_a_schema_refuses_an_incompatible_one_hangs_and_has_a_later_one() {
    let (database, registry) = (database().await, RealRegistry::start(false).await.unwrap());
    let owner = bookings(&database, CLOCK).await;
    let url = registry.url();
    let [own, latest] = [topic("real-own").await, topic("real-latest").await];
    let subject = format!("{latest}-value");
    register(&url, &subject, ("AVRO", BOOKING), None).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("booking.avsc");
    std::fs::write(&file, BOOKING).unwrap();
    let of_file = format!("schema_file = \"{}\"\nregister = true", file.display());
    let relays = [relay(&own, "avro", ("", "", &of_file)), relay(&latest, "avro", ("", "", ""))].concat();
    let text = text(&database, &section(&url, "timeout = \"1s\""), &relays).await;
    let replica = Replica::start(&parse(&text), "r1");
    insert(&owner).await;
    // The same schema, the same id.
    let (first, second) = (arrived(&own, 1).await.remove(0), arrived(&latest, 1).await.remove(0));
    assert_eq!(id(value(&first)), id(value(&second)));
    let decoder = Decoder::new(&url, None);
    assert_eq!(decoder.avro(value(&first)).await["payload"], "p");

    // What is known is enough while it hangs.
    registry.freeze().unwrap();
    for sent in 2..=4 {
        insert(&owner).await;
        arrived(&latest, sent).await;
    }
    registry.thaw().unwrap();
    let later = register(&url, &subject, ("AVRO", BOOKING_2), None).await;
    let mut sent = 4;
    let uses_later = async || {
        insert(&owner).await;
        sent += 1;
        u64::from(id(value(arrived(&latest, sent).await.last().unwrap()))) == later
    };
    eventually(PATIENCE * 2, uses_later).await;
    assert_eq!(decoder.avro(value(arrived(&latest, sent).await.last().unwrap())).await["seats"], Value::Null);
    arrived(&own, sent).await;
    replica.stop().await;

    let compatibility = json!({ "compatibility": "BACKWARD" });
    tell(reqwest::Method::PUT, &format!("{url}/config/{own}-value"), &compatibility).await;
    // Readers of it could not read what is there: a field more, without a default.
    let incompatible = BOOKING_2
        .replace(r#"{"name":"seats","type":["null","int"],"default":null}"#, r#"{"name":"seats","type":"int"}"#);
    std::fs::write(&file, incompatible).unwrap();
    let (code, said, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let found: Value = serde_json::from_str(&said).unwrap();
    assert!(code == Some(3) && finding(&found, "schema_refused").is_some(), "{said}");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || error(&owner, &own).await.0 == "schema_refused").await;
    let (_, words) = error(&owner, &own).await;
    assert!(words.contains("seats at /fields/4"), "the registry's own words: {words}");
    insert(&owner).await;
    arrived(&latest, sent + 1).await;
    let before = records(&broker().await.bootstrap_servers(), &own).await.len();
    assert_eq!(before, sent, "nothing is sent under a schema that is refused");
    replica.stop().await;

    std::fs::write(&file, BOOKING_2).unwrap();
    let replica = Replica::start(&parse(&text), "r1");
    let record = arrived(&own, before + 1).await.pop().unwrap();
    assert_eq!(u64::from(id(value(&record))), later);
    fixed(&owner, &own).await;
    replica.stop().await;
    registry.stop().await.unwrap();
}
