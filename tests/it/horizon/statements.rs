//! Whatever statement writes, and whatever becomes of its savepoints: it holds from its first write to its end.

use std::time::Duration;

use futures_util::SinkExt;
use tokio_postgres::Client;

use super::ROLES;
use crate::support::{CLOCK, Reader, bookings, database, ordered};

const NONE: [&str; 0] = [];

async fn run(client: &Client, sql: &str) {
    client.batch_execute(sql).await.unwrap();
}

/// Statements that leave one more row behind, as `app`.
const STATEMENTS: [&str; 10] = [
    "INSERT INTO bookings DEFAULT VALUES",
    "INSERT INTO bookings (customer) SELECT 's' FROM generate_series(1, 1)",
    "WITH written AS (INSERT INTO bookings DEFAULT VALUES RETURNING id) SELECT id FROM written",
    "INSERT INTO bookings (customer) VALUES ('c') ON CONFLICT DO NOTHING",
    "INSERT INTO bookings (customer) VALUES ('c') ON CONFLICT (id) DO UPDATE SET payload = 'again'",
    "MERGE INTO bookings AS b USING (VALUES (-1)) AS v (id) ON b.id = v.id WHEN NOT MATCHED THEN INSERT (customer) VALUES ('m')",
    "SAVEPOINT s; INSERT INTO bookings DEFAULT VALUES; RELEASE SAVEPOINT s",
    "INSERT INTO bookings DEFAULT VALUES; SAVEPOINT s; INSERT INTO bookings DEFAULT VALUES; ROLLBACK TO SAVEPOINT s",
    "SAVEPOINT s; INSERT INTO bookings DEFAULT VALUES; ROLLBACK TO SAVEPOINT s; INSERT INTO bookings DEFAULT VALUES",
    "DO $$ BEGIN INSERT INTO bookings DEFAULT VALUES; BEGIN INSERT INTO bookings DEFAULT VALUES; RAISE division_by_zero; \
     EXCEPTION WHEN division_by_zero THEN NULL; END; END $$",
];

// Guarantee: horizon.statements
#[tokio::test]
async fn every_kind_of_writing_statement_holds_until_its_transaction_ends() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        run(&owner, "GRANT UPDATE (payload) ON bookings TO app").await;
        let version: i32 =
            owner.query_one("SELECT current_setting('server_version_num')::integer", &[]).await.unwrap().get(0);
        let reader = Reader::new(&database, role).await;
        let writer = database.connect("app").await;
        for statement in STATEMENTS {
            if version < 150_000 && statement.starts_with("MERGE") {
                continue;
            }
            let before = ordered(&owner, "bookings").await;
            reader.expect(&before).await;
            run(&writer, &format!("BEGIN; {statement}")).await;
            run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
            assert_eq!(reader.settled(&before).await.horizon.held_by.len(), 1, "{statement}");
            run(&writer, "COMMIT").await;
            let after = ordered(&owner, "bookings").await;
            assert_eq!(after.len(), before.len() + 2, "{statement}");
            reader.expect(&after).await;
        }
    }
}

// Guarantee: horizon.statements
#[tokio::test]
async fn a_rolled_back_writer_holds_until_it_ends_and_leaves_nothing() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;
        let writer = database.connect("app").await;
        run(&writer, "BEGIN; INSERT INTO bookings DEFAULT VALUES").await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        reader.settled(&NONE).await;
        run(&writer, "ROLLBACK").await;
        reader.expect(&[2]).await;
    }
}

// Guarantee: horizon.statements
#[tokio::test]
async fn a_copy_holds_while_it_streams() {
    for role in ROLES {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;
        let writer = database.connect("app").await;
        let mut copy = Box::pin(writer.copy_in("COPY bookings (customer) FROM STDIN").await.unwrap());
        copy.send(&b"first\n"[..]).await.unwrap();
        copy.flush().await.unwrap();
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        assert_eq!(reader.settled(&NONE).await.horizon.held_by.len(), 1);
        copy.send(&b"second\n"[..]).await.unwrap();
        assert_eq!(copy.as_mut().finish().await.unwrap(), 2);
        let expected = ordered(&owner, "bookings").await;
        assert_eq!(expected.len(), 3);
        reader.expect(&expected).await;
    }
}

// Guarantee: horizon.backfill
#[tokio::test]
async fn a_backfill_counts_as_a_writer_and_is_named() {
    for (role, backfill) in ROLES.into_iter().flat_map(|role| {
        [
            (role, "UPDATE bookings SET payload = 'x' WHERE false"),
            (role, "DELETE FROM bookings WHERE customer = 'none'"),
        ]
    }) {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let reader = Reader::new(&database, role).await;
        reader.settled(&NONE).await;
        let writer = database.connect("postgres").await;
        run(&writer, &format!("SET application_name = 'backfill'; BEGIN; {backfill}")).await;
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        let held = reader.settled(&NONE).await.horizon.held_by;
        let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].holder.pid, Some(pid));
        assert_eq!(held[0].holder.application.as_deref(), Some("backfill"));
        run(&writer, "COMMIT").await;
        reader.expect(&[1]).await;
    }
}

// Guarantee: horizon.statements
#[tokio::test]
async fn readers_and_row_lockers_hold_nothing() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
    let other = database.connect("postgres").await;
    run(&other, "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM bookings FOR UPDATE").await;
    Reader::new(&database, "relay").await.expect(&[1]).await;
}

/// Writes single rows and pairs, committed late, for a while, with a turn after each step; gives what came and what
/// should have.
async fn rows_of_precision(digits: i32, role: &str, unit: bool) -> (Vec<String>, Vec<String>) {
    let database = database().await;
    let owner = bookings(&database, &format!("timestamptz({digits}) NOT NULL DEFAULT clock_timestamp()")).await;
    let reader = Reader::new(&database, role).await.window(Duration::ZERO).await;
    assert_eq!(
        reader.shape.lock().await.margin.precision,
        Duration::from_micros(10_u64.pow(6 - digits.unsigned_abs()))
    );
    if !unit {
        reader.shape.lock().await.margin.precision = Duration::ZERO;
    }
    let writer = database.connect("app").await;
    let end = std::time::Instant::now() + Duration::from_millis(if digits == 0 { 2_300 } else { 400 });
    while std::time::Instant::now() < end {
        run(&writer, "BEGIN; INSERT INTO bookings DEFAULT VALUES").await;
        // This one has the later id and may have the same rounded time.
        run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
        reader.turn().await.unwrap();
        run(&writer, "INSERT INTO bookings DEFAULT VALUES").await;
        reader.turn().await.unwrap();
        run(&writer, "COMMIT").await;
        reader.turn().await.unwrap();
    }
    let expected = ordered(&owner, "bookings").await;
    reader.watched().await;
    reader.turn().await.unwrap();
    (reader.delivered().await, expected)
}

// Guarantee: horizon.precision
#[tokio::test]
async fn rows_of_every_precision_are_read_once_and_in_order() {
    for (role, digits) in ROLES.into_iter().flat_map(|role| (0..=6).map(move |digits| (role, digits))) {
        let (delivered, expected) = rows_of_precision(digits, role, true).await;
        assert!(delivered == expected, "{role}, {digits} digits: {} of {}", delivered.len(), expected.len());
    }
}

// Guarantee: horizon.precision (negative control)
#[tokio::test]
async fn without_a_unit_of_the_precision_the_same_rows_are_lost() {
    let (delivered, expected) = rows_of_precision(0, "relay_stats", false).await;
    assert!(delivered.len() < expected.len(), "nothing was lost: the script tells nothing apart");
}
