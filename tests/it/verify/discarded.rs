//! Rows whose dead letters an operator gave up are known by the notes of that when retention has removed the letters.

use super::{Delivered, delivered_by, differences, pass_over, seek_and_stay_paused, verify};
use crate::support::{database, kafka_relay, outbox_relay, toml};

const PRUNE: &str = "SELECT outbox.prune_dead_letters('0', 100)";

/// A relay that has delivered rows 1 to 3 and 5; the dead letter of row 4 was given up.
async fn given_up() -> Delivered {
    let relay = delivered_by(3, 1, |topic| kafka_relay("events", topic, "on_poison = \"dead_letter\"")).await;
    let rows = "INSERT INTO bookings (customer, payload) VALUES ('c', repeat('x', 2000000)), ('c', 'after')";
    relay.owner.batch_execute(rows).await.unwrap();
    super::drain(&relay.text).await;
    let (code, _, log) = outbox_relay(&relay.text, &["dead-letter", "discard", "--cursor", "events", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    relay
}

// Guarantee: verify.explained
// Guarantee: verify.repair
#[tokio::test(flavor = "multi_thread")]
async fn row_that_was_given_up_is_not_missing_once_its_letter_is_pruned() {
    let relay = given_up().await;
    for reason in ["dead_letter", "discarded"] {
        let (code, document, log) = verify(&relay.text, &["events", "--repair", "--yes"]).await;
        assert_eq!(code, Some(0), "{document}{log}");
        assert_eq!(document["explained"], serde_json::json!({ reason: 1 }));
        assert_eq!(document["rows"], serde_json::json!({ "table": 5, "delivered": 4, "topic": 4 }));
        assert!(log.contains("events: nothing to publish"), "{log}");
        relay.owner.batch_execute(PRUNE).await.unwrap();
        let letters = relay.owner.query_one("SELECT count(*) FROM outbox.dead_letter", &[]).await.unwrap();
        assert_eq!(letters.get::<_, i64>(0), 0);
    }
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn row_that_was_given_up_and_comes_again_by_a_seek_is_missing_if_it_does_not_come() {
    let relay = given_up().await;
    relay.owner.batch_execute(PRUNE).await.unwrap();
    seek_and_stay_paused(&relay, "3").await;
    pass_over(&relay.owner, "events", 5).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), ["not_in_topic 4"]);
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_large_discard_are_all_noted_and_each_note_has_a_bound() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let letters = "INSERT INTO outbox.dead_letter (cursor, source, created_at, message_id, sink, target, fields, field_values, error, \
                   dead_lettered_by) SELECT 'r', 'public.t', now(), n::text, 'http', 'x', '{}', '{}', '{}', 'x' \
                   FROM generate_series(1, 2500) AS n";
    owner.batch_execute(letters).await.unwrap();
    let text = toml(&database, "relay", None, "");
    let (code, out, log) = outbox_relay(&text, &["dead-letter", "discard", "--cursor", "r", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(out.ends_with("2500 of 2500: given up\n"), "{log}");
    let noted = "SELECT count(*), max(jsonb_array_length(detail -> 'rows')), sum(jsonb_array_length(detail -> 'rows')), \
                 sum(jsonb_array_length(detail -> 'ids')) FROM outbox.operation WHERE verb = 'dead-letter discard'";
    let noted = owner.query_one(noted, &[]).await.unwrap();
    let (notes, rows, ids): (i64, i64, i64) = (noted.get(0), noted.get(2), noted.get(3));
    assert_eq!((notes, noted.get::<_, i32>(1), rows, ids), (3, 1000, 2500, 2500));
}
