//! The checker convicts a naive relay of each of the faults that lose rows in practice, and acquits one without them.

use std::time::Duration;

use outbox_relay::position::Timestamp;
use outbox_testkit::bookings::{self, CreatedAt, Layout, Load, Table, Writers};
use outbox_testkit::delivery::{Committed, Verdict, verdict};
use tokio_postgres::Client;

use crate::support::naive_relay::{Fault, NaiveRelay};
use crate::support::{Database, PATIENCE, database, eventually};

const IDS: &str = "SELECT id::text, (extract(epoch FROM created_at) * 1000000)::bigint FROM bookings AS b
    ORDER BY b.created_at, b.id";

async fn committed(client: &Client) -> Committed {
    let rows = client.query(IDS, &[]).await.unwrap();
    Committed::in_order(rows.iter().map(|row| (row.get(0), Timestamp::from_unix_micros(row.get(1)))).collect())
}

/// A database with a plain table of ids and times.
async fn plain() -> (Database, Client) {
    let database = database().await;
    let owner = database.connect("postgres").await;
    let table = "CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz DEFAULT clock_timestamp())";
    owner.batch_execute(table).await.unwrap();
    (database, owner)
}

async fn relay(database: &Database, table: &'static str, fault: Fault) -> NaiveRelay {
    NaiveRelay::new(database.connect("postgres").await, table, fault)
}

// Guarantee: checker.window
#[tokio::test]
async fn a_latency_window_as_the_only_horizon_loses_the_row_of_a_slow_writer() {
    let (database, owner) = plain().await;
    let mut faulty = relay(&database, "bookings", Fault::WindowOnly).await;
    let mut sound = relay(&database, "bookings", Fault::None).await;
    sound.turn().await;

    let mut slow = database.connect("postgres").await;
    let slow = slow.transaction().await.unwrap();
    slow.batch_execute("INSERT INTO bookings VALUES (1)").await.unwrap();
    owner.batch_execute("INSERT INTO bookings VALUES (2)").await.unwrap();
    faulty.turn_until_delivered(1).await;
    assert_eq!(sound.turn().await, 0, "a writer that was there before row 2 holds it back");
    slow.commit().await.unwrap();
    faulty.drain().await;
    sound.turn_until_delivered(2).await;

    let committed = committed(&owner).await;
    assert_eq!(faulty.report(&committed).lost, ["1"]);
    assert_eq!(verdict(&committed, &[&sound.report(&committed)], false), Verdict::Pass);
}

// Guarantee: checker.early-advance
#[tokio::test]
async fn an_advance_before_the_acknowledgement_loses_what_a_crash_leaves_unsent() {
    let (database, owner) = plain().await;
    owner.batch_execute("INSERT INTO bookings SELECT generate_series(1, 10)").await.unwrap();
    let committed = committed(&owner).await;
    for (fault, lost, duplicates) in [(Fault::AdvanceFirst, 6, 0), (Fault::None, 0, 4)] {
        let mut relay = relay(&database, "bookings", fault).await;
        eventually(PATIENCE, async || relay.turn_that_crashes_after(4).await == 4).await;
        relay.drain().await;
        let report = relay.report(&committed);
        assert_eq!((report.lost.len(), report.duplicates()), (lost, duplicates), "{fault:?}");
        assert!(report.out_of_order.is_empty() && report.holes.is_empty(), "{fault:?}");
    }
}

// Guarantee: checker.tie-break
#[tokio::test]
async fn created_at_without_a_tie_break_loses_rows_of_one_instant() {
    let (database, owner) = plain().await;
    owner.batch_execute("INSERT INTO bookings SELECT generate_series(1, 10), now()").await.unwrap();
    let committed = committed(&owner).await;
    for (fault, lost) in [(Fault::NoTieBreak, 6), (Fault::None, 0)] {
        let mut relay = relay(&database, "bookings", fault).await;
        relay.rows = 4;
        relay.turn_until_delivered(1).await;
        relay.drain().await;
        assert_eq!(relay.report(&committed).lost.len(), lost, "{fault:?}");
    }
}

// Guarantee: checker.ancestors
/// While a default is evaluated, an insert through the root holds no lock on the partition yet.
#[tokio::test]
async fn a_horizon_without_ancestors_locks_loses_a_row_inserted_through_the_root() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    // The default reads the clock, then waits: as a writer does that is not scheduled for a while.
    let table = "
        CREATE FUNCTION stamp() RETURNS timestamptz LANGUAGE plpgsql AS $$
            DECLARE stamped timestamptz := clock_timestamp();
            BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN stamped; END $$;
        CREATE TABLE bookings (id bigint PRIMARY KEY, created_at timestamptz DEFAULT stamp()) PARTITION BY RANGE (id);
        CREATE TABLE bookings_all PARTITION OF bookings FOR VALUES FROM (MINVALUE) TO (MAXVALUE)";
    owner.batch_execute(table).await.unwrap();
    let mut faulty = relay(&database, "bookings_all", Fault::NoAncestors).await;
    let mut sound = relay(&database, "bookings_all", Fault::None).await;
    faulty.turn().await;
    sound.turn().await;

    owner.batch_execute("SELECT pg_advisory_lock(1)").await.unwrap();
    let slow = database.connect("postgres").await;
    let slow = tokio::spawn(async move { slow.batch_execute("INSERT INTO bookings VALUES (1)").await });
    let waiting = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    eventually(PATIENCE, || async { !owner.query(waiting, &[]).await.unwrap().is_empty() }).await;
    owner.batch_execute("INSERT INTO bookings VALUES (2, clock_timestamp())").await.unwrap();
    faulty.turn_until_delivered(1).await;
    assert_eq!(sound.turn().await, 0, "the root's lock holds row 2 back");
    owner.batch_execute("SELECT pg_advisory_unlock(1)").await.unwrap();
    slow.await.unwrap().unwrap();
    faulty.drain().await;
    sound.turn_until_delivered(2).await;

    let committed = committed(&owner).await;
    assert_eq!(faulty.report(&committed).lost, ["1"]);
    assert_eq!(verdict(&committed, &[&sound.report(&committed)], false), Verdict::Pass);
}

// Guarantee: checker.window
#[tokio::test]
async fn the_writer_storm_convicts_a_latency_window_and_acquits_the_writers_horizon() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    Table { created_at: CreatedAt::ClockTimestamp, layout: Layout::Ranges }.create(&owner).await.unwrap();
    let mut faulty = relay(&database, "bookings", Fault::WindowOnly).await;
    let mut sound = relay(&database, "bookings", Fault::None).await;
    let load = Load {
        writers: 16,
        rows_per_second: Some(2_000.0),
        payload: 100..=10_000,
        longest_pause: Duration::from_millis(200),
        seed: 3,
    };
    let writers = Writers::start(&database.url("app"), load).await.unwrap();
    while writers.committed() < 5_000 {
        faulty.turn().await;
        sound.turn().await;
    }
    let written = writers.stop().await.unwrap();
    faulty.drain().await;

    let committed = bookings::committed(&owner).await.unwrap();
    written.agrees_with(&committed).unwrap();
    sound.turn_until_delivered(committed.len()).await;
    let report = faulty.report(&committed);
    println!("latency window: lost {} of {}", report.lost.len(), committed.len());
    assert!(!report.lost.is_empty());
    assert_eq!(verdict(&committed, &[&sound.report(&committed)], false), Verdict::Pass);
}
