//! Rows that became visible below the position after the last turn are still to come late: no difference, and nothing to repair.

use serde_json::json;

use super::{Delivered, SWEPT, delivered_after, differences, drain, insert_late, verify};
use crate::support::{kafka_relay, outbox_relay};

/// A relay whose late rows are found by their transactions, and which has delivered five rows; `more` is added below `[[relay]]`.
async fn swept(more: &str) -> Delivered {
    delivered_after(SWEPT, 5, 1, |topic| kafka_relay("events", topic, more)).await
}

async fn does(relay: &Delivered, args: &[&str]) {
    let (code, _, log) = outbox_relay(&relay.text, args).await;
    assert_eq!(code, Some(0), "{log}");
}

/// The headers `late` and `replayed` of each record that a row has.
async fn marks(relay: &Delivered, id: &str) -> Vec<[bool; 2]> {
    let records = relay.records().await;
    let of_row = records.iter().filter(|record| record.id() == id);
    of_row.map(|record| ["late", "replayed"].map(|name| record.header(name) == Some("true"))).collect()
}

async fn letters(relay: &Delivered) -> i64 {
    relay.owner.query_one("SELECT count(*) FROM outbox.dead_letter", &[]).await.unwrap().get(0)
}

// Guarantee: verify.late-to-come
#[tokio::test(flavor = "multi_thread")]
async fn late_row_of_a_paused_cursor_is_still_to_come_and_comes_once() {
    let relay = swept("").await;
    does(&relay, &["cursor", "pause", "events"]).await;
    let late = insert_late(&relay.owner).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, differences(&document)), (Some(0), vec![]), "{document}{log}");
    assert_eq!(document["explained"], json!({ "late_to_come": 1 }));
    assert_eq!((&document["late_to_come"][0]["id"], &document["ok"]), (&late.as_str().into(), &true.into()));
    assert_eq!(document["rows"], json!({ "table": 6, "delivered": 5, "topic": 5 }));
    let (code, out, _) = outbox_relay(&relay.text, &["verify", "events"]).await;
    assert_eq!(code, Some(0), "{out}");
    assert!(out.starts_with("events: equal\n") && out.contains("6 rows, 5 delivered, 1 late_to_come\n"), "{out}");
    assert!(out.contains(&format!("still to come late: {late}. ")) && out.contains("cursor resume events"), "{out}");

    let (code, _, log) = verify(&relay.text, &["events", "--repair", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("events: nothing to publish"), "{log}");
    assert_eq!(letters(&relay).await, 0);
    does(&relay, &["cursor", "resume", "events"]).await;
    for _ in 0..2 {
        drain(&relay.text).await;
    }
    assert_eq!(marks(&relay, &late).await, [[true, false]]);
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["explained"]), (Some(0), &json!({})), "{document}{log}");
    assert_eq!(document["rows"], json!({ "table": 6, "delivered": 6, "topic": 6 }));
}

// Guarantee: verify.late-to-come
#[tokio::test(flavor = "multi_thread")]
async fn late_row_that_became_a_dead_letter_is_counted_as_that_alone() {
    let relay = swept("on_late_row = \"halt\"").await;
    insert_late(&relay.owner).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["explained"]), (Some(0), &json!({ "late_to_come": 1 })), "{document}{log}");
    let (code, _, log) = outbox_relay(&relay.text, &["run", "--once"]).await;
    assert_eq!(code, Some(1), "{log}");
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["explained"]), (Some(0), &json!({ "dead_letter": 1 })), "{document}{log}");
    assert_eq!(document["rows"], json!({ "table": 6, "delivered": 5, "topic": 5 }));
}

// Guarantee: verify.late-to-come
#[tokio::test(flavor = "multi_thread")]
async fn restored_row_that_no_sweep_finds_is_missing() {
    let relay = swept("").await;
    let restored = "INSERT INTO bookings (created_at, customer, payload, txid) \
                    SELECT created_at - interval '1 microsecond', customer, payload, \
                    (pg_current_xact_id()::text::bigint + 1000000)::text::xid8 FROM bookings WHERE id = 2";
    relay.owner.batch_execute(restored).await.unwrap();
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, differences(&document)), (Some(3), vec!["not_in_topic 6".to_owned()]), "{document}{log}");
    assert_eq!((&document["explained"], &document["late_to_come"]), (&json!({}), &json!([])));
}

// Guarantee: verify.repair
#[tokio::test(flavor = "multi_thread")]
async fn repaired_row_is_not_found_late_by_a_sweep() {
    let relay = swept("").await;
    let late = insert_late(&relay.owner).await;
    // As a replica of an older version leaves it: of its advance no snapshot is known.
    relay.owner.batch_execute("UPDATE outbox.cursor SET swept_at = NULL").await.unwrap();
    let (code, document, log) = verify(&relay.text, &["events", "--repair", "--yes"]).await;
    assert_eq!((code, differences(&document)), (Some(3), vec![format!("not_in_topic {late}")]), "{document}{log}");
    assert!(log.contains(&format!("1 rows would be published, marked as late: {late}")), "{log}");
    let known = "SELECT d.error ->> 'late' = b.txid::text \
                 FROM outbox.dead_letter AS d JOIN bookings AS b ON b.id::text = d.message_id";
    assert!(relay.owner.query_one(known, &[]).await.unwrap().get::<_, bool>(0));
    // And then a snapshot that does not see the row counts again.
    relay.owner.batch_execute("UPDATE outbox.cursor SET swept_at = advanced_at").await.unwrap();
    for _ in 0..2 {
        drain(&relay.text).await;
    }
    assert_eq!((marks(&relay, &late).await, letters(&relay).await), (vec![[true, false]], 1));
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
}
