//! Differences that a test has planted are found by id, and named as what they are.

use std::collections::BTreeSet;

use super::{delivered, delivered_after, delivered_by, differences, insert, put, verify, with};
use crate::support::{broker, kafka_relay, unique};

// Guarantee: verify.kinds
#[tokio::test(flavor = "multi_thread")]
async fn rows_below_a_position_moved_by_hand_are_named() {
    let relay = delivered(100).await;
    insert(&relay.owner, 50).await;
    let move_by_hand = "UPDATE outbox.cursor SET (position_created_at, position_id) = \
                        (SELECT created_at, id::text FROM bookings WHERE id = 103)";
    relay.owner.batch_execute(move_by_hand).await.unwrap();
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(3), "{log}");
    assert_eq!(differences(&document), ["not_in_topic 101", "not_in_topic 102", "not_in_topic 103"]);
    assert_eq!(document["rows"], serde_json::json!({ "table": 150, "delivered": 103, "topic": 100 }));
    assert_eq!(document["not_yet_due"], 47);
    assert!(document["differences"][0]["created_at"].as_str().unwrap().ends_with('Z'));
}

// Guarantee: verify.kinds
#[tokio::test(flavor = "multi_thread")]
async fn records_removed_from_a_copy_of_the_topic_are_named() {
    let relay = delivered_by(3_000, 2, |topic| kafka_relay("events", topic, "")).await;
    let copy = unique("copy");
    broker().await.create_topic(&copy, 2, &[]).await.unwrap();
    // A hundred, the first and the last among them.
    let lost: Vec<String> = (0..99).map(|n| 1 + n * 30).chain([3_000]).map(|n| n.to_string()).collect();
    let mut records = relay.records().await;
    records.retain(|record| !lost.iter().any(|id| id == record.id()));
    put(&copy, &records).await;
    let (code, document, log) = verify(&relay.with_topic(&copy), &["events"]).await;
    assert_eq!(code, Some(3), "{log}");
    assert_eq!(differences(&document), lost.iter().map(|id| format!("not_in_topic {id}")).collect::<Vec<_>>());
    let (_, document, _) = verify(&relay.with_topic(&copy), &["events", "--limit", "2"]).await;
    assert_eq!((differences(&document).len(), &document["differences_capped"]), (2, &true.into()));
    assert_eq!(document["counts"]["not_in_topic"], 100);
}

/// Rows that a cursor which was moved by hand has passed, and records that a copy of the topic lacks, both at random.
// Guarantee: verify.kinds
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_planted_losses_are_found_each_by_its_id_and_nothing_else_is() {
    let seed = std::env::var("OUTBOX_RELAY_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("OUTBOX_RELAY_SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let relay = delivered_by(2_000, 3, |topic| kafka_relay("events", topic, "")).await;
    let (mut rows, mut lost) = (2_000, BTreeSet::new());
    for _ in 0..25 {
        let (passed, others) = (2, random.u32(0..40));
        insert(&relay.owner, passed + others).await;
        let to = rows + passed;
        let move_by_hand = format!(
            "UPDATE outbox.cursor SET (position_created_at, position_id) = (SELECT created_at, id::text FROM bookings WHERE id = {to})"
        );
        relay.owner.batch_execute(&move_by_hand).await.unwrap();
        lost.extend(rows + 1..=to);
        rows += passed + others;
        super::drain(&relay.text).await;
    }
    let copy = unique("copy");
    broker().await.create_topic(&copy, 3, &[]).await.unwrap();
    let mut records = relay.records().await;
    while lost.len() < 100 {
        let record = records.remove(random.usize(..records.len()));
        lost.insert(record.id().parse().unwrap());
    }
    put(&copy, &records).await;
    let begun = std::time::Instant::now();
    let (code, document, log) = verify(&relay.with_topic(&copy), &["events", "--limit", "1000"]).await;
    println!("100 of {rows} found in {:?}", begun.elapsed());
    assert_eq!(code, Some(3), "{log}");
    let found: Vec<String> = differences(&document);
    assert_eq!(found.len(), 100, "{found:?}");
    let planted: BTreeSet<String> = lost.iter().map(|id| format!("not_in_topic {id}")).collect();
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), planted);
}

// Guarantee: verify.kinds
#[tokio::test(flavor = "multi_thread")]
async fn records_too_many_are_named_and_marked_or_foreign_ones_are_not() {
    let relay = delivered(10).await;
    let all = relay.records().await;
    let rolled_back = with(&all[9], "id", "4711");
    put(
        &relay.topic,
        &[all[3].clone(), rolled_back, with(&all[4], "replayed", "true"), with(&all[5], "relay", "other")],
    )
    .await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(3), "{log}");
    assert_eq!(differences(&document), ["not_in_table 4711", "twice 4"]);
    assert_eq!(document["differences"][0]["record"]["offset"], 11);
    relay.owner.batch_execute("DELETE FROM bookings WHERE id = 7").await.unwrap();
    let (_, document, _) = verify(&relay.text, &["events"]).await;
    assert_eq!(differences(&document), ["not_in_table 7", "not_in_table 4711", "twice 4"]);
}

// Guarantee: verify.order
#[tokio::test(flavor = "multi_thread")]
async fn first_records_out_of_order_are_named_and_repeated_blocks_are_twice() {
    let relay = delivered(10).await;
    let all = relay.records().await;
    let copy = unique("copy");
    broker().await.create_topic(&copy, 1, &[]).await.unwrap();
    // 1 2 4 3 5 6, then a block again, then the rest: a kill.
    let order = [0, 1, 3, 2, 4, 5, 4, 5, 6, 7, 8, 9];
    put(&copy, &order.map(|n: usize| all[n].clone())).await;
    let (code, document, log) = verify(&relay.with_topic(&copy), &["events"]).await;
    assert_eq!(code, Some(3), "{log}");
    assert_eq!(differences(&document), ["out_of_order 3", "twice 5", "twice 6"]);
    // A late row says that it is late.
    let late = unique("late");
    broker().await.create_topic(&late, 1, &[]).await.unwrap();
    let mut records: Vec<_> = (0..10).map(|n: usize| all[n].clone()).collect();
    let first = records.remove(0);
    records.push(with(&first, "late", "true"));
    put(&late, &records).await;
    let (code, document, log) = verify(&relay.with_topic(&late), &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
}

// Guarantee: verify.kinds
#[tokio::test(flavor = "multi_thread")]
async fn lost_row_is_named_first_among_thousands_of_repeats() {
    let relay = delivered(2_000).await;
    let mut records = relay.records().await;
    let copy = unique("copy");
    broker().await.create_topic(&copy, 1, &[]).await.unwrap();
    records.remove(1_233);
    for _ in 0..3 {
        put(&copy, &records).await;
    }
    let (code, document, log) = verify(&relay.with_topic(&copy), &["events"]).await;
    assert_eq!(code, Some(3), "{log}");
    assert_eq!(differences(&document)[0], "not_in_topic 1234");
    assert_eq!(document["counts"], serde_json::json!({ "not_in_topic": 1, "twice": 1999 }));
    assert_eq!((differences(&document).len(), &document["differences_capped"]), (100, &true.into()));
}

// Guarantee: verify.ids
#[tokio::test(flavor = "multi_thread")]
async fn ids_of_every_type_are_compared_as_texts() {
    for (kind, make) in [
        ("uuid", "('00000000-0000-4000-8000-00000000000' || n)::uuid"),
        ("text", "'Größe ' || n"),
        ("smallint", "n"),
        ("varchar", "'a''b\"' || n"),
    ] {
        let relay = delivered(0).await;
        relay
            .owner
            .batch_execute(&format!(
                "DROP TABLE bookings; CREATE TABLE public.bookings (id {kind} PRIMARY KEY, \
                 created_at timestamptz NOT NULL DEFAULT clock_timestamp(), customer text DEFAULT 'c', payload text); \
                 CREATE INDEX ON public.bookings (created_at, id); GRANT SELECT ON public.bookings TO relay; \
                 INSERT INTO bookings (id) SELECT {make} FROM generate_series(1, 9) AS n; DELETE FROM outbox.cursor"
            ))
            .await
            .unwrap();
        super::drain(&relay.text).await;
        let (code, document, log) = verify(&relay.text, &["events"]).await;
        assert_eq!((code, &document["rows"]["topic"]), (Some(0), &9.into()), "{kind} {document}{log}");
        let copy = unique("copy");
        broker().await.create_topic(&copy, 1, &[]).await.unwrap();
        let mut records = relay.records().await;
        let lost = records.remove(4);
        put(&copy, &records).await;
        let (code, document, log) = verify(&relay.with_topic(&copy), &["events"]).await;
        assert_eq!(code, Some(3), "{log}");
        assert_eq!(differences(&document), [format!("not_in_topic {}", lost.id())]);
    }
}

// Guarantee: verify.topics
#[tokio::test(flavor = "multi_thread")]
async fn shards_and_topics_of_rows_are_compared_as_one() {
    let prefix = unique("of");
    let topics = ["c0", "c1", "c2"].map(|customer| format!("{prefix}.{customer}"));
    for topic in &topics {
        broker().await.create_topic(topic, 1, &[]).await.unwrap();
    }
    let index = "CREATE INDEX ON bookings (((COALESCE(hashtextextended(customer::text COLLATE \"C\", 0), 0) & 2147483647) % 3), \
                 created_at, id)";
    let relay = delivered_after(index, 300, 1, |_| {
        kafka_relay("events", &format!("{prefix}.{{{{ customer }}}}"), "shards = 3\nshard_key = \"customer\"")
    })
    .await;
    let (code, document, log) = verify(&relay.text, &["events"]).await;
    assert_eq!(code, Some(0), "{document}{log}");
    assert_eq!(document["rows"], serde_json::json!({ "table": 300, "delivered": 300, "topic": 300 }));
    relay.owner.batch_execute("DELETE FROM bookings WHERE id = 8").await.unwrap();
    let (code, document, _) = verify(&relay.text, &["events"]).await;
    assert_eq!((code, differences(&document)), (Some(3), vec!["not_in_table 8".to_owned()]));
}
