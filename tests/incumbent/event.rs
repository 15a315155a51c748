//! `format = "debezium"` publishes the change events that Debezium publishes of the same rows, but for what its documentation lists.

use std::collections::BTreeMap;

use outbox_testkit::postgres::password;
use serde_json::{Map, Value};

use crate::connect::Connect;
use crate::support::{PATIENCE, Process, broker, eventually, records, unique};
use crate::{connector_of, logical};

/// Columns whose values must be equal, and those that docs/SINKS.md lists as different.
const TABLE: &str = r#"CREATE TYPE public.mood AS ENUM ('fine', 'so "so", \ and on');
    CREATE TABLE public.bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        "Größe ""in"" \" text, vc varchar(20), ch char(5), i2 smallint, i4 integer, i8 bigint, bool boolean, uuid uuid,
        json json, jsonb jsonb, num numeric, scaled numeric(20, 5), tz timestamptz, tz3 timestamptz(3), tz0 timestamptz(0), ts timestamp, ts3 timestamp(3), ts0 timestamp(0), ts6 timestamp(6), date date,
        bytea bytea, f4 real, f8 double precision, "time" time, time3 time(3), mood public.mood, texts text[], ints integer[]);
    CREATE UNIQUE INDEX ON public.bookings (created_at, id)"#;
/// Of types that the relay writes itself: [`TABLE`] has others, and then PostgreSQL makes the object.
const COMMON: &str = r#"CREATE TABLE public.bookings (id bigint PRIMARY KEY, created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        "Größe ""in"" \" text, vc varchar(20), ch char(5), i2 smallint, i4 integer, i8 bigint, bool boolean, uuid uuid,
        json json, jsonb jsonb, num numeric, scaled numeric(20, 5), tz timestamptz, tz3 timestamptz(3), tz0 timestamptz(0), ts timestamp, ts3 timestamp(3), ts0 timestamp(0), ts6 timestamp(6), date date,
        bytea bytea);
    CREATE UNIQUE INDEX ON public.bookings (created_at, id)"#;

const ROWS: &str = r#"
    INSERT INTO public.bookings (id, "Größe ""in"" \", vc, ch, i2, i4, i8, bool, uuid, json, jsonb, num, scaled, tz, tz3, tz0, ts, ts3, ts0, ts6, date, bytea)
    VALUES
    (1, E'tab\t"quoted" \\ back ä€😀 \u2028 \x01', ' x ', 'ab', -32768, -2147483648, -9223372036854775808, true,
        '01890a5d-ac96-774b-bcce-b302099a8057', '{"b" : 1,  "a":[1.0, 1e2, 9007199254740993]}', '{"q": "\"", "n": [1.10, null]}',
        -123456789012345678901234567890.1234567890, 1, '2026-11-21 08:00:00.5+05:30', '2026-11-21 08:00:00.1239+00', '2026-11-21 23:59:59.9+00', '2026-03-29 02:30:00.000001', '2026-03-29 02:30:00.9876', '2026-03-29 02:30:00.9876', '2026-03-29 02:30',
        '2026-02-28', '\x00ff5c2200'),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (3, '', '', '', 32767, 2147483647, 9223372036854775807, false, '00000000-0000-0000-0000-000000000000', 'null', '"text"',
        'NaN', -0.00001, 'infinity', '1969-12-31 23:59:59.999+00', 'infinity', '1969-12-31 23:59:59.999999', '1969-12-31 23:59:59.999', '1969-12-31 23:59:59', '-infinity', '1969-12-31', ''),
    (4, 'null', '{}', '[]', 0, 0, 9007199254740993, true, 'ffffffff-ffff-ffff-ffff-ffffffffffff', ' [ ] ', '{}', 0.00, 1234.5,
        '-infinity', '0001-01-01 00:00:00+00', '-infinity', '0001-01-01', '0001-01-01', '0001-01-01', '0001-01-01', '0001-01-01', decode(repeat('ab', 100), 'hex')),
    (5, repeat('long "', 2000), 'x', 'x', 1, 1, 1, true, gen_random_uuid(), '1', '1', 1e20, 0, '9999-12-31 23:59:59.999999+00',
        '2026-11-21 08:00:00+00', '2026-11-21 08:00:00+00', '9999-12-31 23:59:59.999999', '9999-12-31', '9999-12-31', 'infinity', '9999-12-31', '\x01');
"#;
const MORE: &str = r#"
    INSERT INTO public.bookings (id, ts, ts3, date, f4, f8, "time", time3, mood, texts, ints) VALUES
    (10, 'infinity', 'infinity', 'infinity', 0.1, 0.1, '12:30:00.000001', '12:30:00.5', 'so "so", \ and on', '{a,NULL,"\""}', '{1,NULL,-3}'),
    (11, '-infinity', '-infinity', '-infinity', -1.5, 1e300, '00:00', '24:00', 'fine', '{}', '{}');
"#;

fn object(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("no object: {value}")).clone()
}

/// The events by id.
async fn events(topic: &str) -> BTreeMap<i64, Value> {
    let records = records(&broker().await.bootstrap_servers(), topic).await;
    let events = records.iter().map(|record| serde_json::from_str::<Value>(&record.text()).unwrap());
    events.map(|event| (event["after"]["id"].as_i64().unwrap(), event)).collect()
}

/// What both publish of these rows: Debezium, then the relay.
async fn both(table: &str, rows: &str) -> [BTreeMap<i64, Value>; 2] {
    let database = logical().await;
    let owner = database.connect("postgres").await;
    owner.batch_execute(table).await.unwrap();
    let (prefix, ours) = (unique("event"), unique("event-ours"));
    let theirs = format!("{prefix}.public.bookings");
    for topic in [&theirs, &ours] {
        broker().await.create_topic(topic, 1, &[]).await.unwrap();
    }
    let more = "decimal.handling.mode=string\n\
                key.converter=org.apache.kafka.connect.json.JsonConverter\nkey.converter.schemas.enable=false\n\
                value.converter=org.apache.kafka.connect.json.JsonConverter\nvalue.converter.schemas.enable=false\n";
    let connector = connector_of(&database, "public.bookings", more)
        .await
        .replace("topic.prefix=app", &format!("topic.prefix={prefix}"));
    let _debezium = Connect::start(&database, &connector).await;
    owner.batch_execute(rows).await.unwrap();
    let count: i64 = owner.query_one("SELECT count(*) FROM public.bookings", &[]).await.unwrap().get(0);
    let toml = format!(
        "[postgres]\nurl = \"postgresql://postgres:{}@127.0.0.1:{}/{}?sslmode=disable\"\n[kafka]\nbootstrap_servers = \"{}\"\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n[[relay]]\nname = \"events\"\n\
         [relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.kafka]\ntopic = \"{ours}\"\nkey = \"id\"\nformat = \"debezium\"\n\
         [relay.sink.kafka.debezium]\nname = \"{prefix}\"\n",
        password("postgres"),
        database.postgres.port(),
        database.name,
        broker().await.bootstrap_servers()
    );
    let mut relay = Process::spawn(&toml, &["run"]);
    for topic in [&theirs, &ours] {
        let all =
            async || records(&broker().await.bootstrap_servers(), topic).await.len() == usize::try_from(count).unwrap();
        eventually(PATIENCE * 6, all).await;
    }
    relay.signal(rustix::process::Signal::TERM);
    assert_eq!(relay.wait().await, Some(0), "{}", relay.log());
    [events(&theirs).await, events(&ours).await]
}

/// What Debezium 3.6 makes of an infinite `date`: its days do not fit into 32 bits.
fn is_no_day(value: &Value) -> bool {
    value.as_i64().is_some_and(|days| (-2_147_480_000..-2_147_470_000).contains(&days))
}

/// Compares member by member, so that a difference has its name.
fn compare([theirs, ours]: [BTreeMap<i64, Value>; 2]) {
    assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>());
    let mut different = Vec::new();
    for (id, theirs) in &theirs {
        let ours = &ours[id];
        let mut judge = |place: &str, theirs: &Map<String, Value>, ours: &Map<String, Value>, listed: &[&str]| {
            assert_eq!(theirs.keys().collect::<Vec<_>>(), ours.keys().collect::<Vec<_>>(), "{place}");
            for (name, value) in theirs.iter().filter(|(name, _)| !listed.contains(&name.as_str())) {
                // What docs/SINKS.md says of values that are no number and no day.
                let is_listed = *value == "NAN" && ours[name] == "NaN" || is_no_day(value) && ours[name].is_null();
                if ours[name] != *value && !is_listed {
                    different.push(format!("{id} {place}{name}: Debezium {value}, the relay {}", ours[name]));
                }
            }
        };
        judge("", &object(theirs), &object(ours), &["after", "source", "ts_ms", "ts_us", "ts_ns"]);
        judge("after.", &object(&theirs["after"]), &object(&ours["after"]), &[]);
        let log = ["version", "ts_ms", "ts_us", "ts_ns", "sequence", "txId", "lsn"];
        judge("source.", &object(&theirs["source"]), &object(&ours["source"]), &log);
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}

// Guarantee: delivery.debezium
#[tokio::test(flavor = "multi_thread")]
async fn events_of_the_relay_are_those_of_debezium_where_it_makes_the_object() {
    compare(both(COMMON, ROWS).await);
}

// Guarantee: delivery.debezium
#[tokio::test(flavor = "multi_thread")]
async fn events_of_the_relay_are_those_of_debezium_where_postgresql_makes_the_object() {
    compare(both(TABLE, &format!("{ROWS}{MORE}")).await);
}
