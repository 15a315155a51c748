//! Relays that share the role of the application.
//!
//! A role that may not write the table still writes it through a `SECURITY DEFINER` function, so a session is not the
//! relay's own because its role is.

use std::time::Duration;

use tokio_postgres::Client;

use crate::support::{Database, NOW, Reader, bookings, database, sessions};

const NONE: [&str; 0] = [];
const INSERT: &str = "INSERT INTO public.bookings DEFAULT VALUES";

/// A table that `relay` may only read, and a function by which it writes.
async fn table(database: &Database) -> Client {
    let owner = bookings(database, NOW).await;
    let function = "CREATE FUNCTION public.book() RETURNS void LANGUAGE sql SECURITY DEFINER \
                    SET search_path = public AS 'INSERT INTO bookings DEFAULT VALUES'";
    owner.batch_execute(function).await.unwrap();
    owner
}

/// A session of the relay's role, of this name, is in a transaction while another row is committed; then it writes.
async fn writes_late(database: &Database, owner: &Client, name: &str, reader: &Reader) {
    let writer = sessions(database, "relay", name).open().await.unwrap();
    writer.batch_execute("BEGIN").await.unwrap();
    owner.batch_execute(INSERT).await.unwrap();
    reader.settled(&NONE).await;
    writer.batch_execute("SELECT public.book(); COMMIT").await.unwrap();
}

// Guarantee: horizon.shared-role
#[tokio::test]
async fn application_with_relay_role_is_not_lost() {
    let database = database().await;
    let owner = table(&database).await;
    let reader = Reader::new(&database, "relay").await.window(Duration::ZERO).await;
    assert!(reader.shape.lock().await.own_role_only_reads);
    reader.settled(&NONE).await;
    writes_late(&database, &owner, "shop", &reader).await;
    reader.expect(&[2, 1]).await;
}

// Guarantee: horizon.shared-role
#[tokio::test]
async fn relay_session_with_user_sql_is_not_lost() {
    let database = database().await;
    let owner = table(&database).await;
    let reader = Reader::new(&database, "relay").await.window(Duration::ZERO).await;
    reader.settled(&NONE).await;
    writes_late(&database, &owner, "outbox-relay/sql:other", &reader).await;
    reader.expect(&[2, 1]).await;
}

// Guarantee: horizon.shared-role
#[tokio::test]
async fn own_turn_of_other_replica_holds_nothing() {
    let database = database().await;
    let owner = table(&database).await;
    let reader = Reader::new(&database, "relay").await.window(Duration::ZERO).await;
    let turn = sessions(&database, "relay", "outbox-relay/other").open().await.unwrap();
    turn.batch_execute("BEGIN; SELECT FROM outbox.cursor").await.unwrap();
    owner.batch_execute(INSERT).await.unwrap();
    let sighting = reader.settled(&[1]).await;
    let pids: Vec<_> = sighting.horizon.held_by.iter().map(|held| held.holder.pid).collect();
    assert!(!pids.contains(&Some(turn.pid)), "{pids:?}");
}
