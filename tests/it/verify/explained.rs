//! Rows that the topic lacks for a reason that is recorded are counted, and are no difference.

use rustix::process::Signal;

use super::{delivered, delivered_by, differences, insert, pass_over, seek_and_stay_paused, verify};
use crate::support::{Process, kafka_relay, outbox_relay};

/// Has a replica move the paused cursor after the row with this id, once `before` is done.
async fn seek_while_paused(text: &str, id: &str, before: impl Future<Output = ()>) {
    let mut replica = Process::spawn(text, &["run"]);
    let done = async |args: &[&str]| {
        let (code, _, log) = outbox_relay(text, args).await;
        assert_eq!(code, Some(0), "{log}");
    };
    done(&["cursor", "pause", "events"]).await;
    before.await;
    done(&["cursor", "seek", "events", "--after-id", id, "--yes"]).await;
    done(&["cursor", "resume", "events"]).await;
    replica.signal(Signal::TERM);
    assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_and_skipped_rows_are_no_differences() {
    let more = "on_poison = \"dead_letter\"";
    let relay = delivered_by(3, 1, |topic| kafka_relay("events", topic, more)).await;
    let poison =
        "INSERT INTO bookings (customer, payload) VALUES ('c', 'before'), ('c', repeat('x', 2000000)), ('c', 'after')";
    relay.owner.batch_execute(poison).await.unwrap();
    super::drain(&relay.text).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["rows"], serde_json::json!({ "table": 6, "delivered": 5, "topic": 5 }));
    assert_eq!(document["explained"], serde_json::json!({ "dead_letter": 1 }));
    seek_while_paused(&relay.text, "8", insert(&relay.owner, 4)).await;
    super::drain(&relay.text).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["explained"], serde_json::json!({ "dead_letter": 1, "skipped": 2 }));
    assert_eq!(document["rows"], serde_json::json!({ "table": 10, "delivered": 7, "topic": 7 }));
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn rows_sent_again_by_a_seek_are_not_twice_and_former_names_are_known() {
    let relay = delivered(5).await;
    seek_while_paused(&relay.text, "2", async {}).await;
    super::drain(&relay.text).await;
    assert_eq!(relay.records().await.len(), 8);
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    let text = relay.text.replace("name = \"events\"", "name = \"renamed\"");
    let (code, _, log) = outbox_relay(&text, &["cursor", "rename", "events", "renamed", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    insert(&relay.owner, 2).await;
    super::drain(&text).await;
    let (code, document, log) = verify(&text, &["renamed"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["rows"]["topic"], 10);
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn rows_before_the_relays_start_are_not_due() {
    let relay = delivered_by(4, 1, |topic| kafka_relay("events", topic, "start = \"now\"")).await;
    insert(&relay.owner, 3).await;
    super::drain(&relay.text).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["explained"], serde_json::json!({ "before_start": 4 }));
    assert_eq!(document["rows"], serde_json::json!({ "table": 7, "delivered": 3, "topic": 3 }));
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn rows_in_flight_of_at_most_once_are_unknown() {
    let more = "guarantee = \"at_most_once\"";
    let relay = delivered_by(5, 1, |topic| kafka_relay("events", topic, more)).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["rows"]["topic"]), (Some(0), &5.into()), "{document}{log}");
    insert(&relay.owner, 2).await;
    let killed = "UPDATE outbox.cursor SET (position_created_at, position_id, token) = (SELECT b.created_at, b.id::text, \
                  jsonb_build_object('token', 'x', 'by', 'r', 'rows', jsonb_build_array(to_jsonb(b))) \
                  FROM (SELECT id::text, created_at FROM bookings WHERE id = 6) AS b)";
    relay.owner.batch_execute(killed).await.unwrap();
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["explained"], serde_json::json!({ "unknown": 1 }));
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn rows_before_a_cursor_that_an_operator_made_are_not_due() {
    let relay = delivered(0).await;
    relay.owner.batch_execute("DELETE FROM outbox.cursor").await.unwrap();
    insert(&relay.owner, 4).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["not_yet_due"]), (Some(0), &4.into()), "no cursor yet: {document}{log}");
    let (code, _, log) = outbox_relay(&relay.text, &["cursor", "create", "events", "--now"]).await;
    assert_eq!(code, Some(0), "{log}");
    insert(&relay.owner, 2).await;
    super::drain(&relay.text).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["explained"], serde_json::json!({ "before_start": 4 }));
    assert_eq!(document["rows"]["topic"], 2);
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn rows_in_flight_and_outside_of_the_range_are_not_due() {
    let relay = delivered(5).await;
    insert(&relay.owner, 5).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, &document["not_yet_due"]), (Some(0), &5.into()), "{document}{log}");
    let cut =
        "SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') FROM bookings WHERE id = 3";
    let at: String = relay.owner.query_one(cut, &[]).await.unwrap().get(0);
    let (code, document, log) = verify(&relay.text, &["events", "--since", &at]).await;
    assert_eq!((code, &document["rows"]["topic"]), (Some(0), &3.into()), "{document}{log}");
    let (code, document, log) = verify(&relay.text, &["events", "--until", &at]).await;
    assert_eq!((code, &document["rows"]["topic"]), (Some(0), &2.into()), "{document}{log}");
    assert!(differences(&document).is_empty());
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_wait_behind_a_dead_letter_of_their_key_are_not_counted_as_delivered() {
    let more = "on_poison = \"park_key\"";
    let relay = delivered_by(3, 1, |topic| kafka_relay("events", topic, more)).await;
    for rows in ["('p', 'before'), ('p', repeat('x', 2000000))", "('p', 'after'), ('q', 'other'), ('p', 'last')"] {
        let sql = format!("INSERT INTO bookings (customer, payload) VALUES {rows}");
        relay.owner.batch_execute(&sql).await.unwrap();
        super::drain(&relay.text).await;
    }
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["rows"], serde_json::json!({ "table": 8, "delivered": 5, "topic": 5 }));
    assert_eq!(document["explained"], serde_json::json!({ "dead_letter": 1, "parked": 2 }));
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_a_later_seek_led_back_over_are_missing_if_they_do_not_come() {
    let relay = delivered(5).await;
    insert(&relay.owner, 4).await;
    let (code, _, log) = outbox_relay(&relay.text, &["cursor", "seek", "events", "--after-id", "8", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    super::drain(&relay.text).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["explained"], serde_json::json!({ "skipped": 3 }));
    seek_and_stay_paused(&relay, "6").await;
    pass_over(&relay.owner, "events", 9).await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), ["not_in_topic 7", "not_in_topic 8"]);
    assert_eq!(document["explained"], serde_json::json!({ "skipped": 1 }));
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn skip_that_met_the_cursor_elsewhere_excuses_no_row() {
    let relay = delivered(5).await;
    insert(&relay.owner, 2).await;
    let (code, _, log) = outbox_relay(&relay.text, &["cursor", "skip", "events", "--id", "6", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    pass_over(&relay.owner, "events", 7).await;
    super::drain(&relay.text).await;
    let noted = "SELECT detail ->> 'moved' FROM outbox.operation WHERE verb = 'change applied'";
    assert_eq!(relay.owner.query_one(noted, &[]).await.unwrap().get::<_, &str>(0), "false");
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), ["not_in_topic 6", "not_in_topic 7"]);
}
