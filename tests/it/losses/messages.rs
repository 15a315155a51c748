//! One client message that holds several transactions.
//!
//! `now()` is the instant at which the message came, also in its second transaction. A relay that bounds that transaction
//! by the last scan without it passes rows stamped since the message came, and then loses its row.

use std::time::Duration;

use outbox_relay::source::Rule;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::support::{Database, NOW, PATIENCE, Reader, bookings, database, eventually};

const NONE: [&str; 0] = [];
const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";

/// Waits until one session waits for this advisory lock.
async fn waits_for(gate: &Client, key: i64) {
    let waiting = "SELECT count(*) = 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid = $1::bigint::oid \
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    eventually(PATIENCE, || async { gate.query_one(waiting, &[&key]).await.unwrap().get(0) }).await;
}

/// Sends one message of two transactions, each of which waits for an advisory lock of the gate: 7, then 8.
async fn message(database: &Database, gate: &Client, second: &str) -> JoinHandle<()> {
    gate.batch_execute("SELECT pg_advisory_lock(7), pg_advisory_lock(8)").await.unwrap();
    let writer = database.connect("app").await;
    let wait = |key| format!("SELECT pg_advisory_lock_shared({key}), pg_advisory_unlock_shared({key})");
    let sql = format!("BEGIN; {}; COMMIT; BEGIN; {}; {INSERT}; {second}", wait(7), wait(8));
    let sending = tokio::spawn(async move { writer.batch_execute(&sql).await.unwrap() });
    waits_for(gate, 7).await;
    sending
}

async fn unlock(gate: &Client, key: i64) {
    assert!(gate.query_one("SELECT pg_advisory_unlock($1::bigint)", &[&key]).await.unwrap().get::<_, bool>(0));
}

// Guarantee: horizon.messages
#[tokio::test]
async fn second_transaction_of_message_is_not_lost() {
    let database = database().await;
    let owner = bookings(&database, NOW).await;
    let reader = Reader::new(&database, "relay_stats").await.window(Duration::ZERO).await;
    reader.settled(&NONE).await;
    let gate = database.connect("postgres").await;
    let sending = message(&database, &gate, "COMMIT").await;
    // Stamped after the message came, and committed before its second transaction began.
    owner.batch_execute(INSERT).await.unwrap();
    reader.settled(&NONE).await;
    unlock(&gate, 7).await;
    waits_for(&gate, 8).await;
    reader.settled(&NONE).await;
    unlock(&gate, 8).await;
    sending.await.unwrap();
    reader.expect(&[2, 1]).await;
}

// Guarantee: horizon.prepared-unseen
#[tokio::test]
async fn second_transaction_prepared_unseen_is_not_lost() {
    let database = database().await;
    let owner = bookings(&database, NOW).await;
    let reader = Reader::new(&database, "relay_stats").await.window(Duration::ZERO).await;
    reader.settled(&NONE).await;
    let gate = database.connect("postgres").await;
    let gid = format!("message_{}", database.name);
    let sending = message(&database, &gate, &format!("PREPARE TRANSACTION '{gid}'")).await;
    owner.batch_execute(INSERT).await.unwrap();
    reader.settled(&NONE).await;
    // No scan sees the second transaction before it is prepared and its session gone.
    unlock(&gate, 7).await;
    unlock(&gate, 8).await;
    sending.await.unwrap();
    reader.settled(&NONE).await;
    owner.batch_execute(&format!("COMMIT PREPARED '{gid}'")).await.unwrap();
    reader.expect(&[2, 1]).await;
}

// Guarantee: horizon.messages
#[tokio::test]
async fn transaction_without_reported_start_is_not_lost() {
    let database = database().await;
    let owner = bookings(&database, NOW).await;
    let reader = Reader::new(&database, "relay_stats").await.window(Duration::ZERO).await;
    reader.settled(&NONE).await;
    // Activity is reported again in the middle of the transaction, without its start. A walsender never reports one.
    let writer = database.connect("postgres").await;
    writer.batch_execute("BEGIN; SET LOCAL track_activities = off").await.unwrap();
    writer.batch_execute("SET LOCAL track_activities = on").await.unwrap();
    writer.batch_execute("SELECT 1").await.unwrap();
    let pid: i32 = writer.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let shown = "SELECT state = 'idle in transaction' AND xact_start IS NULL FROM pg_stat_activity WHERE pid = $1";
    assert!(owner.query_one(shown, &[&pid]).await.unwrap().get::<_, bool>(0));
    owner.batch_execute(INSERT).await.unwrap();
    for _ in 0..3 {
        reader.settled(&NONE).await;
        writer.batch_execute("SELECT 1").await.unwrap();
    }
    writer.batch_execute(&format!("{INSERT}; COMMIT")).await.unwrap();
    reader.expect(&[2, 1]).await;
}

// Guarantee: horizon.messages
#[tokio::test]
async fn message_of_procedure_with_commits_is_not_lost() {
    let database = database().await;
    let owner = bookings(&database, NOW).await;
    let procedure = "CREATE PROCEDURE steps() LANGUAGE plpgsql AS $$ BEGIN \
         PERFORM pg_advisory_lock_shared(7), pg_advisory_unlock_shared(7); COMMIT; \
         PERFORM pg_advisory_lock_shared(8), pg_advisory_unlock_shared(8); INSERT INTO public.bookings DEFAULT VALUES; END $$";
    owner.batch_execute(procedure).await.unwrap();
    let reader = Reader::new(&database, "relay_stats").await.window(Duration::ZERO).await;
    reader.settled(&NONE).await;
    let gate = database.connect("postgres").await;
    gate.batch_execute("SELECT pg_advisory_lock(7), pg_advisory_lock(8)").await.unwrap();
    let writer = database.connect("postgres").await;
    let sending = tokio::spawn(async move { writer.batch_execute("CALL steps()").await.unwrap() });
    waits_for(&gate, 7).await;
    unlock(&gate, 7).await;
    waits_for(&gate, 8).await;
    // The second transaction's now() is of its own begin: the row below is stamped after it.
    owner.batch_execute(INSERT).await.unwrap();
    reader.settled(&NONE).await;
    unlock(&gate, 8).await;
    sending.await.unwrap();
    reader.expect(&[2, 1]).await;
}

#[tokio::test]
async fn session_without_activity_holds_everything() {
    let database = database().await;
    let owner = bookings(&database, NOW).await;
    owner.batch_execute(INSERT).await.unwrap();
    let silent = database.connect("postgres").await;
    silent.batch_execute("SET track_activities = off").await.unwrap();
    let reader = Reader::new(&database, "relay_stats").await;
    let pid: i32 = silent.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let sighting = reader.settled(&NONE).await;
    let held = sighting.horizon.held_by.iter().find(|held| held.holder.pid == Some(pid)).unwrap();
    assert_eq!((held.bound, held.reason(Rule::Transactions)), (None, "unknown_start"));
    drop(silent);
    reader.expect(&[1]).await;
}
