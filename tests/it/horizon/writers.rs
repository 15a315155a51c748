//! Who holds the horizon back, from when, and what may pass meanwhile.

use std::time::Duration;

use outbox_relay::position::Timestamp;
use outbox_relay::source::Rule;
use tokio_postgres::Client;

use super::ROLES;
use crate::support::{CLOCK, Database, NOW, Reader, bookings, database, ordered};

const NONE: [&str; 0] = [];
const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

// Guarantee: horizon.other-tables
#[tokio::test]
async fn an_unrelated_open_transaction_does_not_delay_the_writers_rule() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(&owner, "CREATE TABLE other (n integer)").await;
        let unrelated = database.connect("postgres").await;
        run(&unrelated, "BEGIN; INSERT INTO other VALUES (1); SELECT FROM public.bookings").await;
        let reader = Reader::new(&database, role).await;
        assert_eq!(reader.shape.lock().await.rule, Rule::Writers);
        run(&owner, INSERT).await;
        let sighting = reader.settled(&[1]).await;
        assert_eq!(sighting.horizon.held_by, []);
    }
}

// Guarantee: horizon.transactions
#[tokio::test]
async fn the_transactions_rule_waits_for_every_open_transaction_and_names_it() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, NOW).await;
        let open = database.connect("postgres").await;
        run(&open, "SET application_name = 'report'; BEGIN; SELECT 1").await;
        let reader = Reader::new(&database, role).await;
        assert_eq!(reader.shape.lock().await.rule, Rule::Transactions);
        run(&owner, INSERT).await;
        let sighting = reader.settled(&NONE).await;
        let named = sighting.horizon.held_by.iter().any(|held| held.holder.application.as_deref() == Some("report"));
        assert!(named, "{:?}", sighting.horizon.held_by);
        run(&open, "COMMIT").await;
        reader.expect(&[1]).await;
    }
}

// Guarantee: horizon.first-insert
#[tokio::test]
async fn a_transaction_open_long_before_its_first_insert_holds_only_from_that_insert() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let reader = Reader::new(&database, role).await;
        let late = database.connect("postgres").await;
        run(&late, "BEGIN; SELECT FROM public.bookings").await;
        run(&owner, INSERT).await;
        // Row 1 is committed and watched past before the insert: it may pass, although the transaction is older.
        let before = reader.watched().await;
        run(&late, INSERT).await;
        run(&owner, INSERT).await;
        let sighting = reader.settled(&[1]).await;
        assert_eq!(sighting.horizon.held_by.len(), 1);
        assert!(sighting.horizon.held_by[0].bound >= Some(before.horizon.observed_at));
        run(&late, "COMMIT").await;
        reader.expect(&[1, 2, 3]).await;
    }
}

// Guarantee: horizon.late-commit
#[tokio::test]
async fn a_row_inserted_early_and_committed_late_is_not_skipped() {
    for (role, default) in ROLES.into_iter().flat_map(|role| [(role, CLOCK), (role, NOW)]) {
        let database = database().await;
        let owner = bookings(&database, default).await;
        let reader = Reader::new(&database, role).await;
        let early = database.connect("app").await;
        reader.settled(&NONE).await;
        run(&early, &format!("BEGIN; {INSERT}")).await;
        for _ in 0..3 {
            run(&owner, INSERT).await;
            reader.settled(&NONE).await;
        }
        run(&early, "COMMIT").await;
        reader.expect(&[1, 2, 3, 4]).await;
    }
}

// Guarantee: horizon.transactions
#[tokio::test]
async fn a_transaction_that_read_the_time_before_its_first_write_is_waited_for() {
    for (role, begin) in ROLES.into_iter().flat_map(|role| [(role, "BEGIN"), (role, "BEGIN; SELECT now()")]) {
        let database = database().await;
        let owner = bookings(&database, NOW).await;
        let reader = Reader::new(&database, role).await.window(Duration::ZERO).await;
        let trap = database.connect("app").await;
        run(&trap, begin).await;
        run(&owner, INSERT).await;
        reader.settled(&NONE).await;
        run(&trap, INSERT).await;
        run(&trap, "COMMIT").await;
        // The transaction began first, so its row comes first, although its id is the later one.
        reader.expect(&[2, 1]).await;
    }
}

/// Every order in which two scripts of these lengths can run.
fn interleavings(first: usize, second: usize) -> Vec<Vec<bool>> {
    if first == 0 || second == 0 {
        return vec![[vec![true; first], vec![false; second]].concat()];
    }
    let with = |head: bool, tails: Vec<Vec<bool>>| tails.into_iter().map(move |tail| [vec![head], tail].concat());
    with(true, interleavings(first - 1, second)).chain(with(false, interleavings(first, second - 1))).collect()
}

/// Runs two writers in every order, with a turn after each step, and gives what came and what should have.
async fn interleave(database: &Database, reader: &Reader, begin: &str) -> (Vec<String>, Vec<String>) {
    let writers = [database.connect("app").await, database.connect("app").await];
    let scripts = [[begin, INSERT, "COMMIT"], [begin, INSERT, "COMMIT"]];
    for order in interleavings(3, 3) {
        let mut next = [0, 0];
        for first in order {
            let writer = usize::from(!first);
            run(&writers[writer], scripts[writer][next[writer]]).await;
            next[writer] += 1;
            reader.turn().await.unwrap();
        }
    }
    let expected = ordered(&writers[0], "public.bookings").await;
    reader.watched().await;
    reader.turn().await.unwrap();
    (reader.delivered().await, expected)
}

// Guarantee: horizon.late-commit
#[tokio::test]
async fn two_writers_in_every_order_lose_nothing_under_both_defaults() {
    for (role, default) in ROLES.into_iter().flat_map(|role| [(role, CLOCK), (role, NOW)]) {
        for begin in ["BEGIN", "BEGIN; SELECT now()", "BEGIN; SAVEPOINT s"] {
            let database = database().await;
            bookings(&database, default).await;
            let reader = Reader::new(&database, role).await.window(Duration::ZERO).await;
            let (delivered, expected) = interleave(&database, &reader, begin).await;
            assert_eq!(expected.len(), 40);
            if default == CLOCK {
                assert_eq!(delivered, expected, "{role} {begin}");
            } else {
                // Anything open in the database delays this rule, so wait for the rest.
                assert!(expected.starts_with(&delivered), "{role} {begin}: {delivered:?}");
                reader.expect(&expected).await;
            }
        }
    }
}

// Guarantee: horizon.late-commit (negative control)
#[tokio::test]
async fn the_same_script_convicts_a_window_and_the_writers_rule_under_now() {
    for (default, rule) in [(CLOCK, Rule::Window), (NOW, Rule::Window), (NOW, Rule::Writers)] {
        let database = database().await;
        bookings(&database, default).await;
        let reader = Reader::new(&database, "relay").await.window(Duration::ZERO).await;
        reader.shape.lock().await.rule = rule;
        let (delivered, expected) = interleave(&database, &reader, "BEGIN").await;
        assert!(delivered.len() < expected.len(), "{rule:?} lost nothing: the script tells nothing apart");
    }
}

// Guarantee: horizon.unknown-start
#[tokio::test]
async fn a_writer_that_came_since_the_last_look_is_seen_with_its_start_and_held() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let idle = database.connect("app").await;
        let reader = Reader::new(&database, role).await;
        let before = reader.scan().await.horizon;
        assert_eq!(before.held_by, []);
        let fresh = database.connect("app").await;
        run(&idle, &format!("BEGIN; {INSERT}")).await;
        run(&fresh, &format!("BEGIN; {INSERT}")).await;
        let seen = reader.scan().await.horizon;
        assert_eq!(seen.held_by.len(), 2);
        for held in &seen.held_by {
            assert_eq!(held.holder.started.is_some(), role == "relay_stats");
            assert!(held.bound >= Some(before.observed_at) && held.bound < Some(seen.observed_at));
        }
        run(&owner, INSERT).await;
        reader.settled(&NONE).await;
        run(&fresh, "COMMIT").await;
        reader.settled(&NONE).await;
        run(&idle, "COMMIT").await;
        reader.expect(&[1, 2, 3]).await;
    }
}

// Guarantee: horizon.unknown-start
#[tokio::test]
async fn a_writer_already_there_at_the_first_look_holds_everything_back_unless_its_start_is_known() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(&owner, INSERT).await;
        Reader::new(&database, "relay").await.expect(&[1]).await; // row 1 is past the window now
        let writer = database.connect("app").await;
        run(&writer, &format!("BEGIN; {INSERT}")).await;
        let reader = Reader::new(&database, role).await;
        if role == "relay_stats" {
            reader.settled(&[1]).await;
        } else {
            let sighting = reader.settled(&NONE).await;
            assert_eq!(sighting.horizon.at, Timestamp::NEG_INFINITY);
            assert_eq!(sighting.horizon.held_by[0].bound, None);
        }
        run(&writer, "ROLLBACK").await;
        reader.expect(&[1]).await;
    }
}
