//! What could let a row of a parked key pass, or hold it for ever.

use super::{Stage, book, http, no_key_is_parked, pairs, parked, refuse, refusing, stage, verb};
use crate::poison::limit;
use crate::support::outside::{get, halted, listener};
use crate::support::relays::parse;
use crate::support::{
    CLOCK, PATIENCE, Process, Replica, bookings, broker, config, database, eventually, kafka_relay, records, toml,
    unique,
};

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_a_parked_key_that_cannot_be_read_waits_with_the_others() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let relay = http(&receiver, "park_limit = 4").replace("rows = 50", "rows = 50\nmax_row_bytes = \"64KiB\"");
    let text = toml(&database, "relay", None, &relay);
    book(&owner, "a", &["bad", "2"]).await;
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || parked(&owner, "h").await.len() == 2).await;
    book(&owner, "a", &[&"x".repeat(100_000), "4"]).await;
    book(&owner, "c", &["5"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["5"]).await;
    eventually(PATIENCE, async || {
        parked(&owner, "h").await == pairs(&[("a", "1"), ("a", "2"), ("a", "3"), ("a", "4")])
    })
    .await;
    let open = async || {
        let rows = owner.query("SELECT message_id FROM outbox.dead_letter WHERE state = 'dead'", &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    assert_eq!(open().await, ["1"], "the row waits, and is no dead letter yet");
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || open().await == ["3"]).await;
    assert_eq!(receiver.accepted("h"), ["5", "1", "2"]);
    owner.execute("UPDATE bookings SET payload = 'small' WHERE id = 3", &[]).await.unwrap();
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["5", "1", "2", "3", "4"]).await;
    eventually(PATIENCE, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_parks_no_longer_lets_no_row_pass_those_that_are_parked() {
    let Stage { owner, receiver, text, replica, database: _database } = stage().await;
    replica.stop().await;
    let text = text.replace("on_poison = \"park_key\"", "on_poison = \"halt\"").replace("lane = \"customer\"\n", "");
    book(&owner, "a", &["7"]).await;
    book(&owner, "c", &["8"]).await;
    let replica = Replica::start(&parse(&text.replace("rows = 50", "rows = 1")), "r2");
    let (_, error) = halted(&owner, "h").await;
    assert_eq!((&error["class"], &error["code"]), (&"fatal".into(), &"keys_parked".into()), "{error}");
    assert_eq!(receiver.accepted("h"), ["1", "3"]);
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    verb(&text, &["cursor", "resume", "h"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "4", "6", "7", "8"]).await;
    eventually(PATIENCE, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
}

// Guarantee: parked.limits
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_full_and_released_is_sent_without_a_second_halt() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, "park_limit = 150")).replace("rows = 50", "rows = 200");
    let fill = "INSERT INTO bookings (customer, payload) SELECT 'a', CASE n WHEN 1 THEN 'bad' ELSE 'good' END FROM generate_series(1, 600) AS n";
    owner.batch_execute(fill).await.unwrap();
    let replica = Replica::start(&parse(&text), "r1");
    halted(&owner, "h").await;
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    verb(&text, &["cursor", "resume", "h"]).await;
    let all: Vec<String> = (1..=600).map(|n| n.to_string()).collect();
    eventually(PATIENCE * 4, async || receiver.accepted("h") == all).await;
    eventually(PATIENCE, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn rows_before_the_refused_one_that_a_seek_leads_back_to_come_before_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, ""));
    // Two of them at the same instant as the refused row.
    let insert = "INSERT INTO bookings (created_at, customer, payload) SELECT now() - t * interval '1 second', 'a', p \
                  FROM unnest(ARRAY[2, 1, 1, 1], ARRAY['1', '2', 'bad', '4']) WITH ORDINALITY AS u(t, p, n) ORDER BY n";
    owner.batch_execute(insert).await.unwrap();
    let replica = Replica::start(&parse(&text), "r1");
    let waiting = pairs(&[("a", "3"), ("a", "4")]);
    eventually(PATIENCE * 2, async || parked(&owner, "h").await == waiting).await;
    verb(&text, &["cursor", "seek", "h", "--beginning", "--yes"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "2", "1", "2"]).await;
    book(&owner, "c", &["5"]).await;
    eventually(PATIENCE, async || receiver.accepted("h").len() == 5).await;
    eventually(PATIENCE, async || parked(&owner, "h").await == waiting).await;
    receiver.answer(refuse("nothing"));
    verb(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "2", "1", "2", "5", "3", "4"]).await;
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn rows_of_one_instant_that_a_seek_leads_back_to_are_sent_in_their_order() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, "")).replace("rows = 50", "rows = 200");
    let insert = "INSERT INTO bookings (created_at, customer, payload) \
                  SELECT now(), 'a', CASE n WHEN 1 THEN 'bad' ELSE 'good' END FROM generate_series(1, 300) AS n";
    owner.batch_execute(insert).await.unwrap();
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || parked(&owner, "h").await.len() == 300).await;
    replica.stop().await;
    // A turn sends 100 of the released rows; the next reads 200 of all that the seek has led back to.
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    verb(&text, &["cursor", "seek", "h", "--beginning", "--yes"]).await;
    receiver.answer(refuse("nothing"));
    let replica = Replica::start(&parse(&text), "r2");
    eventually(PATIENCE * 4, async || receiver.accepted("h").contains(&"1".to_owned())).await;
    eventually(PATIENCE * 4, async || no_key_is_parked(&owner).await).await;
    let accepted = receiver.accepted("h");
    assert_eq!(accepted.last().map(String::as_str), Some("300"), "no older row comes behind the newest");
    replica.stop().await;
}

// Guarantee: parked.kept
#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_that_are_deleted_or_truncated_by_hand_release_their_keys() {
    let Stage { owner, receiver, replica, database: _database, .. } = stage().await;
    owner.batch_execute("DELETE FROM outbox.dead_letter WHERE message_id = '5'").await.unwrap();
    eventually(PATIENCE * 2, async || parked(&owner, "h").await == pairs(&[("a", "2"), ("a", "4"), ("a", "6")])).await;
    owner.batch_execute("TRUNCATE outbox.dead_letter").await.unwrap();
    eventually(PATIENCE * 2, async || receiver.accepted("h") == ["1", "3", "4", "6"]).await;
    eventually(PATIENCE, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
}

// Guarantee: failures.dead-letter-topic
#[tokio::test(flavor = "multi_thread")]
async fn a_released_row_that_is_refused_is_copied_to_the_topic_of_dead_letters_as_well() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let (topic, dead) = (unique("parked"), unique("dead"));
    broker().await.create_topic(&topic, 1, &[("max.message.bytes", "2000")]).await.unwrap();
    broker().await.create_topic(&dead, 1, &[]).await.unwrap();
    let servers = broker().await.bootstrap_servers();
    let relays = kafka_relay("k", &topic, &format!("on_poison = \"park_key\"\ndead_letter_topic = \"{dead}\""));
    let text = toml(&database, "relay", Some(&servers), &relays);
    let large = "x".repeat(5000);
    book(&owner, "a", &[&large, "2", &large, "4"]).await;
    let replica = Replica::start(&config(&database, "relay", Some(&servers), &relays), "r1");
    eventually(PATIENCE * 4, async || parked(&owner, "k").await.len() == 4).await;
    verb(&text, &["dead-letter", "discard", "--cursor", "k", "--yes"]).await;
    eventually(PATIENCE * 4, async || parked(&owner, "k").await == pairs(&[("a", "3"), ("a", "4")])).await;
    let copies = async || records(&servers, &dead).await.iter().map(|copy| copy.id().to_owned()).collect::<Vec<_>>();
    eventually(PATIENCE, async || copies().await == ["1", "3"]).await;
    limit(&topic, "1000000").await;
    verb(&text, &["dead-letter", "redrive", "--cursor", "k", "--yes"]).await;
    eventually(PATIENCE * 4, async || no_key_is_parked(&owner).await).await;
    replica.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_released_row_that_is_refused_counts_as_a_dead_letter() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, ""));
    book(&owner, "a", &["bad", "bad"]).await;
    let mut replica = Process::spawn(&text, &["run", "--replica-id", "r1"]);
    let url = format!("{}/metrics", listener(&replica).await);
    let counted = async |rows: u8| {
        let line = format!("outbox_relay_dead_lettered_rows_total{{cursor=\"h\",sink=\"http\"}} {rows}\n");
        get(&url).await.1.contains(&line)
    };
    eventually(PATIENCE * 2, async || counted(1).await && parked(&owner, "h").await.len() == 2).await;
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    eventually(PATIENCE * 2, async || parked(&owner, "h").await == pairs(&[("a", "2")])).await;
    eventually(PATIENCE, async || counted(2).await).await;
    replica.signal(rustix::process::Signal::TERM);
    replica.wait().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn rows_between_a_full_key_that_is_released_and_a_row_that_cannot_be_read_are_not_passed() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = refusing("bad");
    let text = toml(&database, "relay", None, &http(&receiver, "park_limit = 100"));
    let fill = "INSERT INTO bookings (customer, payload) SELECT 'a', CASE n WHEN 1 THEN 'bad' ELSE 'good' END FROM generate_series(1, 20) AS n";
    owner.batch_execute(fill).await.unwrap();
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || parked(&owner, "h").await.len() == 20).await;
    replica.stop().await;
    book(&owner, "a", &["21"]).await;
    book(&owner, "c", &["22", "23"]).await;
    book(&owner, "d", &[&"x".repeat(100_000)]).await;
    book(&owner, "e", &["25"]).await;
    verb(&text, &["dead-letter", "discard", "--cursor", "h", "--yes"]).await;
    // More rows of the key wait than may, and a turn sends five of them: the next one reads new rows while it is full.
    let full =
        text.replace("park_limit = 100", "park_limit = 3").replace("rows = 50", "rows = 5\nmax_row_bytes = \"64KiB\"");
    let replica = Replica::start(&parse(&full), "r2");
    let all: std::collections::BTreeSet<String> = (2..=25).filter(|n| *n != 24).map(|n: u32| n.to_string()).collect();
    let ends = tokio::time::timeout(PATIENCE * 2, async {
        while receiver.accepted("h").len() < all.len() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    });
    let _what_has_come_tells_more = ends.await;
    assert_eq!(receiver.accepted("h").into_iter().collect::<std::collections::BTreeSet<_>>(), all);
    assert_eq!(receiver.accepted("h").len(), all.len(), "none twice");
    let of_a: Vec<u32> = receiver.accepted("h").iter().map(|id| id.parse().unwrap()).filter(|id| *id < 22).collect();
    assert!(of_a.is_sorted(), "{of_a:?}");
    let dead = "SELECT message_id FROM outbox.dead_letter WHERE state = 'dead'";
    let letters: Vec<String> = owner.query(dead, &[]).await.unwrap().iter().map(|row| row.get(0)).collect();
    assert_eq!(letters, ["24"]);
    replica.stop().await;
}

// Guarantee: parked.order
#[tokio::test(flavor = "multi_thread")]
async fn parked_keys_are_locked_before_their_rows() {
    let Stage { owner, receiver, text, replica, database } = stage().await;
    // As `dead-letter discard` begins: the key, and then the row that it waits for.
    let mut other = database.connect("postgres").await;
    let releasing = other.transaction().await.unwrap();
    releasing.batch_execute("SELECT FROM outbox.parked_key WHERE key = 'a' FOR UPDATE").await.unwrap();
    // A turn that comes upon the parked rows again.
    let seek = {
        let text = text.clone();
        tokio::spawn(async move { verb(&text, &["cursor", "seek", "h", "--beginning", "--yes"]).await })
    };
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND usename = 'relay' \
                 AND datname = current_database()";
    eventually(PATIENCE * 2, async || owner.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) >= 1).await;
    let rows = "SELECT FROM outbox.parked WHERE cursor = 'h' AND key = 'a' FOR UPDATE NOWAIT";
    releasing.batch_execute(rows).await.expect("the turn waits for the key, and has locked none of its rows");
    releasing.commit().await.unwrap();
    seek.await.unwrap();
    book(&owner, "c", &["7"]).await;
    eventually(PATIENCE * 2, async || receiver.accepted("h").last().is_some_and(|id| id == "7")).await;
    assert_eq!(parked(&owner, "h").await, pairs(&[("a", "2"), ("a", "4"), ("a", "6"), ("b", "5")]));
    replica.stop().await;
}
