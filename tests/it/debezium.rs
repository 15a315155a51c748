//! `format = "debezium"`: rows as the change events that consumers of Debezium read. A real Debezium beside it: `make test-incumbent`.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::kafka_sink::{arrived, configured};
use crate::support::{CLOCK, Replica, bookings, broker, database, unique};

/// A relay named by its topic, with these lines of its source and sink.
fn relay(topic: &str, source: &str, sink: &str) -> String {
    format!(
        "[[relay]]\nname = \"{topic}\"\n[relay.source.stream]\ntable = \"public.bookings\"\n{source}\n[relay.sink.kafka]\n\
         topic = \"{topic}\"\nkey = \"customer\"\nformat = \"debezium\"\n{sink}\n"
    )
}

async fn topics<const N: usize>(names: [&str; N]) -> [String; N] {
    let topics = names.map(unique);
    for topic in &topics {
        broker().await.create_topic(topic, 1, &[]).await.unwrap();
    }
    topics
}

/// The records' values; each must be JSON.
async fn events(topic: &str, count: usize) -> Vec<Value> {
    let records = arrived(topic, count).await;
    assert_eq!(records.len(), count);
    records.iter().map(|record| serde_json::from_str(&record.text()).unwrap()).collect()
}

// Guarantee: delivery.debezium
#[tokio::test(flavor = "multi_thread")]
async fn rows_arrive_in_order_as_inserts_with_the_relays_key_and_headers() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let rows =
        "INSERT INTO bookings (customer, payload) SELECT 'c ' || n % 3, 'p' || n FROM generate_series(1, 300) AS n";
    owner.batch_execute(rows).await.unwrap();
    let [whole, some] = topics(["dbz-row", "dbz-columns"]).await;
    let columns = "payload = { columns = [\"id\", \"payload\"] }\nheaders = { who = \"customer\" }\n\
                   [relay.sink.kafka.debezium]\nname = \"shop\"";
    let relays = [relay(&whole, "", ""), relay(&some, "", columns)].concat();
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    for (topic, name) in [(&whole, whole.as_str()), (&some, "shop")] {
        let records = arrived(topic, 300).await;
        for (n, (record, event)) in (1..).zip(records.iter().zip(events(topic, 300).await)) {
            assert_eq!(
                (record.id(), record.key.as_deref()),
                (n.to_string().as_str(), Some(format!("c {}", n % 3).as_str()))
            );
            assert_eq!(record.header("relay"), Some(topic.as_str()));
            assert_eq!(record.header("who").is_some(), name == "shop");
            assert_eq!(
                (&event["op"], &event["before"], &event["transaction"]),
                (&json!("c"), &Value::Null, &Value::Null)
            );
            assert_eq!((&event["after"]["id"], &event["after"]["payload"]), (&json!(n), &json!(format!("p{n}"))));
            assert_eq!(event["after"].as_object().unwrap().len(), if name == "shop" { 2 } else { 4 });
            let source = &event["source"];
            for (member, value) in [
                ("connector", "postgresql"),
                ("name", name),
                ("snapshot", "false"),
                ("db", database.name.as_str()),
                ("schema", "public"),
                ("table", "bookings"),
            ] {
                assert_eq!(source[member], value, "{member}");
            }
            let created_at =
                outbox_relay::position::Timestamp::parse_rfc3339(record.header("created_at").unwrap()).unwrap();
            let micros = source["ts_us"].as_i64().unwrap();
            assert_eq!((micros, source["ts_ms"].as_i64()), (created_at.unix_micros(), Some(micros / 1_000)));
            assert!(event["ts_us"].as_i64().unwrap() >= micros, "published after it was created: {event}");
        }
    }
    replica.stop().await;
}

/// Values that are easily written in another way, as SQL, for the columns of [`HOSTILE`].
const ROWS: &[[&str; 9]] = &[
    ["NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL"],
    [
        "E'\"quoted\" \\\\ \\x01\\x1f\\x7f\\t\\n \u{2028} \u{1f980}'",
        "'-123456789012345678901234567890.1234567890'",
        "'{\"q\": \"\\\"\", \"n\": [1.10, null, 12345678901234567890.10]}'",
        "'{\"a\" :  1,\t\"a\": 2}'",
        "'2026-11-21 08:00:00.5+05:30'",
        "'2026-03-29 02:30:00.000001'",
        "'2026-02-28'",
        "'\\x00ff5c2200'",
        "-9223372036854775808",
    ],
    [
        "''",
        "'NaN'",
        "'null'",
        "'\"\\u0001\"'",
        "'infinity'",
        "'infinity'",
        "'0044-03-15 BC'",
        "''",
        "9223372036854775807",
    ],
    [
        "repeat(E'\\x01\"', 3000)",
        "'0.00'",
        "('[' || repeat('\"\\\"\", ', 500) || '1]')::jsonb",
        "' [ ] '",
        "'-infinity'",
        "'-infinity'",
        "'1969-12-31'",
        "decode(repeat('ab', 1000), 'hex')",
        "9007199254740993",
    ],
    [
        "'null'",
        "1e200",
        "'{}'",
        "'0'",
        "'0044-03-15 12:00:00.5 BC'",
        "'4713-01-01 BC'",
        "'12345-01-02'",
        "'\\x01'",
        "0",
    ],
    [
        "' '",
        "-0.00001",
        "'\"\"'",
        "'\"\"'",
        "'12345-01-02 03:04:05.678+00'",
        "'294276-12-31 23:59:59'",
        "'0001-01-01'",
        "'\\x0102'",
        "-1",
    ],
];
const HOSTILE: &str = "ALTER TABLE bookings ADD num numeric, ADD \"b \"\" \\ ü\" jsonb, ADD doc json, ADD tz timestamptz, ADD ts timestamp, \
                       ADD tz2 timestamptz(2), ADD tz0 timestamptz(0), ADD ts3 timestamp(3), ADD ts0 timestamp(0), \
                       ADD date date, ADD bin bytea, ADD int8 bigint, ADD t integer, ADD kept boolean NOT NULL DEFAULT true";

// Guarantee: delivery.debezium
#[tokio::test(flavor = "multi_thread")]
async fn hostile_values_are_the_same_json_whether_the_relay_or_postgresql_makes_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let mut sql = format!("{HOSTILE};");
    for row in ROWS {
        let [text, num, jsonb, doc, tz, ts, date, bin, int8] = row;
        let _ = write!(
            sql,
            "INSERT INTO bookings (payload, num, \"b \"\" \\ ü\", doc, tz, tz2, tz0, ts, ts3, ts0, date, bin, int8) VALUES \
             ({text}, {num}, {jsonb}, {doc}, {tz}, {tz}, {tz}, {ts}, {ts}, {ts}, {date}, {bin}, {int8});"
        );
    }
    owner.batch_execute(&sql).await.unwrap();
    let [here, there] = topics(["dbz-here", "dbz-there"]).await;
    // With a filter PostgreSQL makes the object.
    let relays = [relay(&here, "", ""), relay(&there, "where = { kept = true }", "")].concat();
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    let (made_here, made_there) = (events(&here, ROWS.len()).await, events(&there, ROWS.len()).await);
    for (here, there) in made_here.iter().zip(&made_there) {
        assert_eq!(here["after"], there["after"], "left: the relay's, right: PostgreSQL's");
    }
    let after = |row: usize| &made_here[row]["after"];
    assert_eq!(after(0)["num"], Value::Null);
    assert_eq!(after(1)["payload"], "\"quoted\" \\ \u{1}\u{1f}\u{7f}\t\n \u{2028} \u{1f980}");
    assert_eq!(after(1)["num"], "-123456789012345678901234567890.1234567890");
    assert_eq!(after(1)["tz"], "2026-11-21T02:30:00.500000Z");
    assert_eq!((&after(1)["ts"], &after(1)["ts3"]), (&json!(1_774_751_400_000_001_i64), &json!(1_774_751_400_000_i64)));
    assert_eq!(
        (&after(1)["tz2"], &after(1)["tz0"]),
        (&json!("2026-11-21T02:30:00.50Z"), &json!("2026-11-21T02:30:01Z"))
    );
    assert_eq!((&after(1)["date"], &after(1)["bin"]), (&json!(20_512), &json!("AP9cIgA=")));
    assert_eq!((&after(2)["int8"], &after(2)["num"]), (&json!(i64::MAX), &json!("NaN")));
    assert_eq!(after(2)["b \" \\ ü"], "null");
    let inner: Value = serde_json::from_str(after(1)["b \" \\ ü"].as_str().unwrap()).unwrap();
    assert_eq!(inner["q"], "\"");
    replica.stop().await;
}

// Guarantee: delivery.debezium
#[tokio::test(flavor = "multi_thread")]
async fn altered_and_added_columns_are_in_the_next_event_as_they_are_now() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD kept boolean NOT NULL DEFAULT true; INSERT INTO bookings (payload) VALUES ('1.50')").await.unwrap();
    let [here, there] = topics(["dbz-here", "dbz-there"]).await;
    let relays = [relay(&here, "", ""), relay(&there, "where = { kept = true }", "")].concat();
    let replica = Replica::start(&configured(&database, &relays).await, "r1");
    for topic in [&here, &there] {
        assert_eq!(events(topic, 1).await[0]["after"]["payload"], "1.50");
    }
    let alter = "BEGIN; ALTER TABLE bookings ALTER payload TYPE timestamp(3) USING '2026-01-01', ADD added jsonb; \
                 INSERT INTO bookings (payload, added) VALUES ('1970-01-01 00:00:01', '{}'); COMMIT";
    owner.batch_execute(alter).await.unwrap();
    for topic in [&here, &there] {
        let after = &events(topic, 2).await[1]["after"];
        assert_eq!((&after["payload"], &after["added"]), (&json!(1_000), &json!("{}")));
    }
    owner
        .batch_execute("BEGIN; ALTER TABLE bookings DROP added; INSERT INTO bookings (customer) VALUES ('c'); COMMIT")
        .await
        .unwrap();
    for topic in [&here, &there] {
        assert_eq!(events(topic, 3).await[2]["after"].get("added"), None);
    }
    replica.stop().await;
}
