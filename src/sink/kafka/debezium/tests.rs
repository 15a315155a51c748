//! The bytes of events.

use serde_json::json;

use super::*;

fn envelope(name: &str, origin: Origin<'_>) -> Envelope {
    Envelope::new(&Debezium { name: Some(name.to_owned()) }, "relay").of(origin)
}

fn event(envelope: &Envelope, created_at: Timestamp, after: &str, now: i64) -> Value {
    let value = Change { envelope, created_at }.value_at(after.as_bytes(), now);
    serde_json::from_slice(&value).expect("JSON")
}

#[test]
fn an_event_has_the_members_of_debezium() {
    let envelope = envelope("app", Origin { database: "shop", schema: "public", table: "bookings" });
    let created_at = Timestamp::from_unix_micros(1_764_230_400_123_456);
    let version = concat!("outbox-relay/", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        event(&envelope, created_at, "{\"id\":1}", 1_764_230_401_000_001_999),
        json!({
            "before": null,
            "after": {"id": 1},
            "source": {
                "version": version, "connector": "postgresql", "name": "app", "ts_ms": 1_764_230_400_123_i64, "snapshot": "false",
                "db": "shop", "sequence": null, "ts_us": 1_764_230_400_123_456_i64, "ts_ns": 1_764_230_400_123_456_000_i64,
                "schema": "public", "table": "bookings", "txId": null, "lsn": null, "xmin": null, "origin": null, "origin_lsn": null
            },
            "transaction": null,
            "op": "c",
            "ts_ms": 1_764_230_401_000_i64, "ts_us": 1_764_230_401_000_001_i64, "ts_ns": 1_764_230_401_000_001_999_i64
        })
    );
}

#[test]
fn names_are_escaped_and_the_name_of_a_relay_is_the_default() {
    let hostile = "a \"b\" \\ \n \u{2028} {x} ü";
    let origin = Origin { database: hostile, schema: hostile, table: hostile };
    let envelope = Envelope::new(&Debezium::default(), hostile).of(origin);
    let event = event(&envelope, Timestamp::from_unix_micros(-1), "{}", 0);
    let source = &event["source"];
    for member in ["name", "db", "schema", "table"] {
        assert_eq!(source[member], hostile);
    }
    assert_eq!((&source["ts_ms"], &source["ts_us"], &source["ts_ns"]), (&json!(-1), &json!(-1), &json!(-1_000)));
}

#[test]
fn instants_at_the_ends_of_time_are_numbers_that_fit() {
    let envelope = envelope("app", Origin::default());
    for created_at in [Timestamp::INFINITY, Timestamp::NEG_INFINITY] {
        let event = event(&envelope, created_at, "{}", i64::MAX);
        assert!(event["source"]["ts_ns"].is_i64() && event["ts_ns"] == i64::MAX, "{event}");
    }
}

#[test]
fn a_value_takes_one_block_of_memory() {
    let envelope = envelope("app", Origin { database: "d", schema: "s", table: "t" });
    let after = "x".repeat(1_000_000);
    let value =
        Change { envelope: &envelope, created_at: Timestamp::NEG_INFINITY }.value_at(after.as_bytes(), i64::MAX);
    assert!(value.capacity() < after.len() + 1_000, "{}", value.capacity());
}
