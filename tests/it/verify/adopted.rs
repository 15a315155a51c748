//! What `cursor adopt` and moves to unusual instants mean for a comparison.

use rustix::process::Signal;

use super::{delivered, differences, insert, pass_over, put, verify};
use crate::support::{PATIENCE, Process, broker, eventually, outbox_relay, unique};

// Guarantee: verify.repair
#[tokio::test(flavor = "multi_thread")]
async fn rows_after_the_place_of_an_adopt_are_published_by_a_repair_and_rows_up_to_it_are_not() {
    let relay = delivered(5).await;
    let copy = unique("copy");
    broker().await.create_topic(&copy, 1, &[]).await.unwrap();
    put(&copy, &relay.records().await[..4]).await;
    // They are older than the adoption, and come after the place where it meets the cursor.
    insert(&relay.owner, 3).await;
    let text = relay.with_topic(&copy);
    for verb in [&["cursor", "pause", "events"][..], &["cursor", "adopt", "events", "--yes"]] {
        let (code, _, log) = outbox_relay(&text, verb).await;
        assert_eq!(code, Some(0), "{log}");
    }
    let mut replica = Process::spawn(&text, &["run"]);
    let adopted =
        "SELECT c.seek_applied = k.seek_seq FROM outbox.cursor AS c JOIN outbox.control AS k ON k.cursor = c.name";
    eventually(PATIENCE * 2, async || relay.owner.query_one(adopted, &[]).await.unwrap().get(0)).await;
    replica.signal(Signal::TERM);
    assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
    let stood = "SELECT detail -> 'position' ->> 'id' FROM outbox.operation WHERE verb = 'change applied'";
    assert_eq!(relay.owner.query_one(stood, &[]).await.unwrap().get::<_, &str>(0), "5");
    pass_over(&relay.owner, "events", 8).await;
    let (code, document, log) = verify(&text, &["events", "--repair"]).await;
    assert_eq!(code, Some(3), "{document}{log}");
    assert_eq!(differences(&document), [5, 6, 7, 8].map(|id| format!("not_in_topic {id}")));
    assert!(log.contains("3 rows would be published, marked as replayed: 6, 7, 8"), "{log}");
    let notes = document["notes"].to_string();
    assert!(notes.contains("--repair leaves out 1 rows") && notes.contains("`cursor adopt`"), "{notes}");
}

// Guarantee: verify.explained
#[tokio::test(flavor = "multi_thread")]
async fn moves_to_years_that_rfc_3339_does_not_have_are_read_by_verify_and_status() {
    let relay = delivered(3).await;
    insert(&relay.owner, 1).await;
    // A step that such a seek may answer.
    let step = "INSERT INTO outbox.operation (verb, cursor, detail) \
                VALUES ('clock stepped back', 'events', jsonb_build_object('from', now(), 'to', now()))";
    relay.owner.batch_execute(step).await.unwrap();
    for instant in ["10000-01-01 00:00:00Z", "294276-12-31 23:59:59.999999Z", "0044-03-15 12:00:00Z BC", "infinity"] {
        let far = format!("UPDATE bookings SET created_at = '{instant}' WHERE id = 4");
        relay.owner.batch_execute(&far).await.unwrap();
        // No replica runs: the next order takes its place.
        let (code, _, log) = outbox_relay(&relay.text, &["cursor", "seek", "events", "--after-id", "4", "--yes"]).await;
        assert_eq!(code, Some(0), "{instant}: {log}");
        let noted = format!(
            "SELECT (detail -> 'to' ->> 'created_at')::timestamptz = '{instant}' FROM outbox.operation \
             ORDER BY id DESC LIMIT 1"
        );
        assert!(relay.owner.query_one(&noted, &[]).await.unwrap().get::<_, bool>(0), "{instant}");
        let (code, document, log) = verify(&relay.text, &["events"]).await;
        assert_eq!(code, Some(0), "{instant}: {document}{log}");
        let (code, _, log) = outbox_relay(&relay.text, &["status"]).await;
        assert_eq!(code, Some(0), "{instant}: {log}");
    }
    // As older versions noted them.
    let older = "UPDATE outbox.operation SET detail = \
                 jsonb_set(detail, '{to,created_at}', '\"+10000-01-01T00:00:00.000000Z\"') WHERE verb = 'cursor seek'";
    relay.owner.batch_execute(older).await.unwrap();
    assert_eq!(verify(&relay.text, &["events"]).await.0, Some(0));
    assert_eq!(outbox_relay(&relay.text, &["status"]).await.0, Some(0));
    let garbled = "UPDATE outbox.operation SET detail = jsonb_set(detail, '{to,created_at}', '\"soon\"') WHERE id = \
                   (SELECT max(id) FROM outbox.operation)";
    relay.owner.batch_execute(garbled).await.unwrap();
    let (code, _, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("names an instant that cannot be read: \"soon\"") && log.contains("SELECT detail"), "{log}");
}
