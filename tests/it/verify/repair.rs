//! `verify --repair` has the relay publish what the topic lacks.

use super::{delivered, differences, insert, verify};
use crate::support::outbox_relay;

// Guarantee: verify.repair
#[tokio::test(flavor = "multi_thread")]
async fn missing_rows_are_published_by_the_relay_after_a_dry_run() {
    let relay = delivered(5).await;
    insert(&relay.owner, 3).await;
    let moved = "UPDATE outbox.cursor SET (position_created_at, position_id) = (SELECT created_at, id::text FROM bookings WHERE id = 7)";
    relay.owner.batch_execute(moved).await.unwrap();
    let (code, document, log) = verify(&relay.text, &["events", "--repair"]).await;
    assert_eq!((code, differences(&document).len()), (Some(3), 2), "{log}");
    assert!(log.contains("2 rows would be published, marked as replayed: 6, 7") && log.contains("dry run"), "{log}");
    let letters = "SELECT count(*) FROM outbox.dead_letter";
    assert_eq!(relay.owner.query_one(letters, &[]).await.unwrap().get::<_, i64>(0), 0);

    let (code, _, log) = verify(&relay.text, &["events", "--repair", "--yes"]).await;
    assert_eq!(code, Some(3), "{log}");
    assert!(log.contains("2 of 2 will be published by the next turn"), "{log}");
    let noted = "SELECT verb, cursor, detail ->> 'letters' FROM outbox.operation";
    let noted = relay.owner.query_one(noted, &[]).await.unwrap();
    assert_eq!((noted.get(0), noted.get(1), noted.get(2)), ("verify repair", "events", "2"));
    super::drain(&relay.text).await;
    let records = relay.records().await;
    let replayed: Vec<&str> =
        records.iter().filter(|record| record.header("replayed") == Some("true")).map(|record| record.id()).collect();
    assert_eq!(replayed, ["6", "7"]);
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["rows"]["table"], 8);
}

// Guarantee: verify.repair
#[tokio::test(flavor = "multi_thread")]
async fn repair_without_the_right_names_the_grant() {
    let relay = delivered(2).await;
    let moved = "INSERT INTO bookings DEFAULT VALUES; UPDATE outbox.cursor SET (position_created_at, position_id) = \
                 (SELECT created_at, id::text FROM bookings WHERE id = 3); REVOKE INSERT ON outbox.dead_letter FROM relay";
    relay.owner.batch_execute(moved).await.unwrap();
    let (code, _, log) = outbox_relay(&relay.text, &["verify", "events", "--repair", "--yes"]).await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("GRANT INSERT, UPDATE ON outbox.dead_letter"), "{log}");
}
