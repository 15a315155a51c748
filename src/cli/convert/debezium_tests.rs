//! Translations are configurations that this program understands, and what they leave out is said.

use super::*;
use crate::config::{Config, Environment};

const SERVER: &str = "\
debezium.sink.type=kafka
debezium.sink.kafka.producer.bootstrap.servers=kafka-1:9093,kafka-2:9093
debezium.sink.kafka.producer.security.protocol=SASL_SSL
debezium.sink.kafka.producer.sasl.mechanism=SCRAM-SHA-512
debezium.sink.kafka.producer.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=\"relay\" password=\"hunter2\";
debezium.sink.kafka.producer.acks=all
debezium.source.connector.class=io.debezium.connector.postgresql.PostgresConnector
debezium.source.offset.storage.file.filename=data/offsets.dat
debezium.source.database.hostname=db.example.org
debezium.source.database.port=5433
debezium.source.database.user=cdc user
debezium.source.database.password=s3cret
debezium.source.database.dbname=app
debezium.source.topic.prefix=app
debezium.source.table.include.list=public\\\\.outboxevent
debezium.source.plugin.name=pgoutput
debezium.transforms=outbox
debezium.transforms.outbox.type=io.debezium.transforms.outbox.EventRouter
debezium.transforms.outbox.table.fields.additional.placement=type:header:eventType,tenant:header
debezium.format.value=simplestring
debezium.format.key=simplestring
quarkus.log.level=INFO
";

fn translated(text: &str) -> anyhow::Result<Translated> {
    translate(Settings::read(text)?)
}

fn refused(text: &str) -> String {
    translated(text).expect_err("it is refused").to_string()
}

fn understood(translated: &Translated) -> Config {
    // The file of a password is read with the configuration.
    let secret = tempfile::NamedTempFile::new().expect("a file");
    let path = secret.path().to_str().expect("a plain path");
    std::fs::write(path, "secret").expect("it can be written");
    let toml = translated.toml.replace("/run/secrets/kafka-password", path);
    Config::parse(&toml, "made.toml", &Environment::default()).unwrap_or_else(|problems| panic!("{problems}\n{toml}"))
}

#[test]
fn properties_of_debezium_server_become_a_relay_of_the_outbox() {
    let translated = translated(SERVER).expect("it is translated");
    let config = understood(&translated);
    let shown = config.redacted();
    for line in [
        "url = \"postgresql://cdc%20user@db.example.org:5433/app?sslmode=verify-full\"",
        "bootstrap_servers = \"kafka-1:9093,kafka-2:9093\"",
        "name = \"outboxevent\"",
        "table = \"public.outboxevent\"",
        "topic = \"outbox.event.{{ aggregatetype }}\"",
        "key = \"aggregateid\"",
    ] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
    assert!(
        translated.toml.contains("headers = { \"eventType\" = \"type\", \"tenant\" = \"tenant\" }"),
        "{}",
        translated.toml
    );
    assert!(!translated.toml.contains("hunter2") && !translated.toml.contains("s3cret"), "{}", translated.toml);
    let notes = translated.notes.join("\n");
    for told in [
        "ADD COLUMN created_at",
        "(created_at, id)",
        "database.password was not copied",
        "sasl.jaas.config",
        "REPLICATION",
    ] {
        assert!(notes.contains(told), "{told} in\n{notes}");
    }
    assert!(!notes.contains("Not translated") && !notes.contains("was JSON"), "{notes}");
}

#[test]
fn connector_of_kafka_connect_is_read_with_its_own_columns_and_unknown_keys_are_named() {
    let text = r#"{"name": "outbox", "config": {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "tasks.max": 1,
        "database.hostname": "::1", "database.user": "u", "database.dbname": "d", "database.sslmode": "disable",
        "table.include.list": "shop.events, shop.letters", "column.exclude.list": "shop.events.secret",
        "transforms": "o", "transforms.o.type": "io.debezium.transforms.outbox.EventRouter",
        "transforms.o.table.field.event.id": "event_id", "transforms.o.table.field.event.key": "customer",
        "transforms.o.table.field.event.payload": "body", "transforms.o.table.field.event.timestamp": "at",
        "transforms.o.route.by.field": "kind", "transforms.o.route.topic.replacement": "shop.${routedByValue}.v1",
        "key.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter": "org.apache.kafka.connect.storage.StringConverter"}}"#;
    let translated = translated(text).expect("it is translated");
    let config = understood(&translated);
    assert_eq!(config.relays.len(), 2);
    let shown = config.redacted();
    for line in [
        "@[::1]:5432/d?sslmode=disable",
        "topic = \"shop.{{ kind }}.v1\"",
        "created_at = \"at\"",
        "id = \"event_id\"",
        "key = \"customer\"",
    ] {
        assert!(shown.contains(line), "{line} in\n{shown}");
    }
    let notes = translated.notes.join("\n");
    for told in [
        "Not translated: column.exclude.list.",
        "key.converter was JSON",
        "set bootstrap_servers",
        "shop.letters.at gives the order",
    ] {
        assert!(notes.contains(told), "{told} in\n{notes}");
    }
}

#[test]
fn mark_of_the_encoding_and_needless_control_characters_are_read_over() {
    let marked =
        format!("\u{feff}{SERVER}quarkus.log.console.format=%d\\t%m\ndebezium.source.database.password=a\\tb\n");
    assert_eq!(understood(&translated(&marked).expect("it is translated")).relays.len(), 1);
    let json = r#"{"connector.class": "io.debezium.connector.mysql.MySqlConnector"}"#;
    assert!(refused(&format!("\u{feff}{json}")).contains("connector.class is"), "as JSON, too");
}

#[test]
fn what_would_change_messages_is_refused_by_key_and_value() {
    let without = |line: &str| SERVER.lines().filter(|found| !found.contains(line)).collect::<Vec<_>>().join("\n");
    for (text, told) in [
        (without("transforms.outbox.type"), "no transform has the type"),
        (without("table.include.list"), "table.include.list is missing"),
        (without("database.hostname"), "database.hostname is missing"),
        (SERVER.replace("sink.type=kafka", "sink.type=pulsar"), "debezium.sink.type is pulsar"),
        (
            SERVER.replace("postgresql.PostgresConnector", "mysql.MySqlConnector"),
            "connector.class is io.debezium.connector.mysql",
        ),
        (SERVER.replace("transforms=outbox", "transforms=outbox,mask"), "transforms.mask (no type)"),
        (SERVER.replace("format.value=simplestring", "format.value=avro"), "format.value is avro"),
        (SERVER.replace("outboxevent", "outbox.*"), "table.include.list has"),
        (SERVER.replace("tenant:header", "tenant:envelope"), "tenant:envelope"),
        (format!("{SERVER}debezium.transforms.outbox.route.topic.regex=(.*)x\n"), "route.topic.regex is (.*)x"),
        (
            format!("{SERVER}debezium.transforms.outbox.route.topic.replacement=a.$1\n"),
            "route.topic.replacement is a.$1",
        ),
        ("{\"config\": []}".to_owned(), "no object"),
        // It would be the name of a header, and TOML has no key of two lines.
        (SERVER.replace("tenant:header", "tenant:header:a\\nb"), "placement has the control character U+000A"),
        (SERVER.replace("outbox.table.fields", "outbox.a\\u0007b"), "has the control character U+0007"),
        (
            SERVER.replace("public\\\\.outboxevent", &format!("a.b{}", ",a.b".repeat(100))),
            "table.include.list has 101 tables, and 100 can be translated",
        ),
    ] {
        let error = refused(&text);
        assert!(error.contains(told), "{told}: {error}");
    }
}

/// As Debezium 3.6.1 was seen to do it: `tests/incumbent/converted.rs`.
#[test]
fn what_debezium_makes_of_expanded_json_and_of_null_is_said() {
    let null = "Debezium wrote the JSON text null";
    let said = |value: &str| {
        let text = SERVER.replace("debezium.format.value=simplestring", value);
        translated(&text).expect("it is translated").notes.join("\n")
    };
    let plain = said("debezium.format.value=simplestring");
    assert!(!plain.contains(null) && !plain.contains("tombstone"), "{plain}");
    let json = said("debezium.format.value=json");
    assert!(json.contains("was JSON") && json.contains(null), "{json}");
    let expanded = said("debezium.format.value=json\ndebezium.transforms.outbox.table.expand.json.payload=true");
    assert!(expanded.contains("without fields that are null") && !expanded.contains("was JSON"), "{expanded}");
    assert!(!expanded.contains("not translated") && expanded.contains(null), "{expanded}");
    let tombstones =
        said("debezium.format.value=json\ndebezium.transforms.outbox.route.tombstone.on.empty.payload=true");
    assert!(tombstones.contains("was JSON") && !tombstones.contains(null), "{tombstones}");
}
