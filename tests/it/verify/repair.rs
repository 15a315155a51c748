//! `verify --repair` has the relay publish what the topic lacks.

use outbox_relay::position::Timestamp;
use outbox_relay::verify::decide::Kind;
use outbox_relay::verify::repair::repair;
use outbox_relay::verify::{Difference, Range, Report};
use tokio_postgres::Client;

use super::{Delivered, delivered, differences, drain, insert, pass_over, verify};
use crate::support::{PATIENCE, eventually, outbox_relay};

/// Rows 6 and 7 are passed and were never sent.
async fn lost() -> Delivered {
    let relay = delivered(5).await;
    insert(&relay.owner, 3).await;
    pass_over(&relay.owner, "events", 7).await;
    relay
}

/// The ids of the records that an operator had sent again.
async fn replayed(relay: &Delivered) -> Vec<String> {
    let records = relay.records().await;
    let marked = records.iter().filter(|record| record.header("replayed") == Some("true"));
    marked.map(|record| record.id().to_owned()).collect()
}

async fn clock(owner: &Client) -> Timestamp {
    owner.query_one("SELECT clock_timestamp()", &[]).await.unwrap().get(0)
}

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
async fn two_repairs_at_the_same_time_have_each_row_sent_once() {
    let relay = lost().await;
    // Both have compared before either may write.
    let writer = &relay.owner;
    writer.batch_execute("BEGIN; LOCK TABLE outbox.dead_letter IN EXCLUSIVE MODE").await.unwrap();
    let waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'outbox.dead_letter'::regclass AND NOT granted \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let both_write = async {
        eventually(PATIENCE * 3, async || writer.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 2).await;
        writer.batch_execute("COMMIT").await.unwrap();
    };
    let args = ["events", "--repair", "--yes"];
    let (one, other, ()) = tokio::join!(verify(&relay.text, &args), verify(&relay.text, &args), both_write);
    let mut ordered = Vec::new();
    for (code, document, log) in [one, other] {
        assert_eq!(code, Some(3), "{document}{log}");
        assert_eq!(differences(&document), ["not_in_topic 6", "not_in_topic 7"], "{log}");
        let told =
            log.lines().find_map(|line| line.strip_suffix(" of 2 will be published by the next turn of a replica"));
        ordered.push(told.unwrap_or_else(|| panic!("{log}")).to_owned());
    }
    ordered.sort();
    assert_eq!(ordered, ["events: 0", "events: 2"], "each operator is told how many rows the order is for");
    for _ in 0..2 {
        drain(&relay.text).await;
    }
    assert_eq!(replayed(&relay).await, ["6", "7"]);
}

// Guarantee: verify.repair
#[tokio::test(flavor = "multi_thread")]
async fn order_of_a_repair_that_another_has_carried_out_meanwhile_is_not_repeated() {
    let mut relay = lost().await;
    let began = clock(&relay.owner).await;
    let rows = "SELECT id::text, created_at FROM bookings WHERE id IN (6, 7) ORDER BY id";
    let found = relay.owner.query(rows, &[]).await.unwrap().into_iter().map(|row| Difference {
        id: row.get(0),
        created_at: Some(row.get(1)),
        kind: Kind::NotInTopic,
        record: None,
        cursor: Some("events".to_owned()),
        transaction: None,
        withheld: None,
    });
    let range = Range { since: Timestamp::NEG_INFINITY, until: began };
    let report = Report { topic: relay.topic.clone(), differences: found.collect(), ..Report::empty("events", range) };

    // Another operator's order is given and carried out after this comparison began.
    let (code, _, log) = verify(&relay.text, &["events", "--repair", "--yes"]).await;
    assert_eq!(code, Some(3), "{log}");
    drain(&relay.text).await;
    assert_eq!(replayed(&relay).await, ["6", "7"]);
    let again = repair(&mut relay.owner, "public.bookings", (&report, began), "second").await.unwrap();
    drain(&relay.text).await;
    assert_eq!((again, replayed(&relay).await), (0, vec!["6".to_owned(), "7".to_owned()]));
    // A comparison that began after they were sent, and does not find them, has them sent once more.
    let later = clock(&relay.owner).await;
    let again = repair(&mut relay.owner, "public.bookings", (&report, later), "second").await.unwrap();
    drain(&relay.text).await;
    assert_eq!((again, replayed(&relay).await.len()), (2, 4));
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
