//! Partitions that are detached, wait to be detached, or return.

use std::sync::Arc;

use outbox_relay::source::fetch::FetchError;
use tokio_postgres::Client;

use super::{members, run};
use crate::support::{Database, PATIENCE, Reader, database, eventually};

const DETACH: &str = "ALTER TABLE bookings DETACH PARTITION a CONCURRENTLY";
const ATTACH: &str = "ALTER TABLE bookings ATTACH PARTITION a FOR VALUES FROM (MINVALUE) TO (100)";

/// A table with the row 100 in `b`, and a reader that has delivered it.
async fn delivered(database: &Database) -> (Client, Arc<Reader>) {
    let owner = members(database, false).await;
    run(&owner, "INSERT INTO bookings (id) VALUES (100)").await;
    let reader = Arc::new(Reader::new(database, "relay").await);
    reader.settled(&[100]).await;
    (owner, reader)
}

#[tokio::test]
async fn partition_pending_detach_halts_on_return() {
    let database = database().await;
    let (owner, reader) = delivered(&database).await;
    // Row 1 is in the partition; the detachment waits for a session that has read the table.
    run(&owner, "INSERT INTO bookings (id) VALUES (1)").await;
    let earlier = database.connect("postgres").await;
    run(&earlier, "BEGIN; SELECT FROM bookings").await;
    let detaching = database.connect("postgres").await;
    let detaching = tokio::spawn(async move { detaching.batch_execute(DETACH).await });
    let pending = "SELECT EXISTS (SELECT FROM pg_inherits WHERE inhdetachpending)";
    eventually(PATIENCE, || async { owner.query_one(pending, &[]).await.unwrap().get(0) }).await;
    run(&owner, "INSERT INTO bookings (id) VALUES (101)").await;
    // No plan reads the partition now, and no reader may take it for one that it has read.
    reader.catalogue().await;
    reader.settled(&[100, 101]).await;
    run(&earlier, "COMMIT").await;
    detaching.await.unwrap().unwrap();
    run(&owner, ATTACH).await;
    reader.catalogue().await;
    let error = reader.turn().await.unwrap_err();
    assert!(matches!(error, FetchError::AttachedBehind { .. }), "{error}");
}

#[tokio::test]
async fn partition_attached_between_pages_ends_reading() {
    let database = database().await;
    let (owner, reader) = delivered(&database).await;
    run(&owner, "INSERT INTO bookings (id) VALUES (1)").await;
    run(&owner, "ALTER TABLE bookings DETACH PARTITION a").await;
    run(&owner, "INSERT INTO bookings (id) SELECT generate_series(101, 180)").await;
    reader.catalogue().await;
    let sighting = reader.watched().await;
    // The first page has 16 rows. The second cannot be given before the first is taken.
    let attached = async || run(&owner, ATTACH).await;
    let error = reader.read_in_pages(&sighting, attached).await.unwrap_err();
    assert!(matches!(error, FetchError::FamilyChanged), "{error}");
    let rows = reader.delivered().await;
    let expected: Vec<String> = (100..100 + rows.len()).map(|id| id.to_string()).collect();
    assert_eq!(rows, expected, "a prefix, without a row of the new partition");
    assert!(rows.len() < 81, "{}", rows.len());
    reader.catalogue().await;
    let error = reader.turn().await.unwrap_err();
    assert!(matches!(error, FetchError::AttachedBehind { .. }), "{error}");
}
