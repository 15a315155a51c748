//! Partitions that are detached, wait to be detached, or return.

use std::sync::Arc;

use outbox_relay::source::fetch::FetchError;
use tokio_postgres::Client;

use super::{members, run};
use crate::support::{Database, PATIENCE, Reader, Replica, config, database, eventually, outbox_relay, toml};

const DETACH: &str = "ALTER TABLE bookings DETACH PARTITION a CONCURRENTLY";
const ATTACH: &str = "ALTER TABLE bookings ATTACH PARTITION a FOR VALUES FROM (MINVALUE) TO (100)";

/// A role that may look into a member is not to pass its rows: `identity/away.rs`.
const THROUGH_ROOT: &str = "REVOKE SELECT ON a, b FROM relay";

/// A table with the row 100 in `b`, and a reader that has delivered it, and sees both members through the table only.
async fn delivered(database: &Database) -> (Client, Arc<Reader>) {
    let owner = members(database, false).await;
    run(&owner, THROUGH_ROOT).await;
    run(&owner, "INSERT INTO bookings (id) VALUES (100)").await;
    let reader = Arc::new(Reader::new(database, "relay").await);
    reader.settled(&[100]).await;
    (owner, reader)
}

// Guarantee: horizon.rewrites
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
    // No plan reads the partition now, and writers that came before may still write to it.
    reader.catalogue().await;
    let error = reader.turn().await.unwrap_err();
    assert!(matches!(error, FetchError::Away { .. }), "{error}");
    run(&earlier, "COMMIT").await;
    detaching.await.unwrap().unwrap();
    // No reader may take it for one that it has read.
    reader.settled(&[100, 101]).await;
    run(&owner, ATTACH).await;
    reader.catalogue().await;
    let error = reader.turn().await.unwrap_err();
    assert!(matches!(error, FetchError::AttachedBehind { .. }), "{error}");
}

// Guarantee: horizon.rewrites
#[tokio::test]
async fn partition_that_returns_halts_without_another_row() {
    let database = database().await;
    let owner = members(&database, false).await;
    run(&owner, THROUGH_ROOT).await;
    run(&owner, "INSERT INTO bookings (id) VALUES (100)").await;
    let relay = "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n";
    let replica = Replica::start(&config(&database, "relay", None, relay), "a");
    let at = async |id: &str| {
        let sql = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = $1)";
        owner.query_one(sql, &[&id]).await.unwrap().get::<_, bool>(0)
    };
    eventually(PATIENCE, || at("100")).await;
    run(&owner, "ALTER TABLE bookings DETACH PARTITION a").await;
    run(&owner, "INSERT INTO a (id) VALUES (1)").await;
    run(&owner, "INSERT INTO bookings (id) VALUES (101)").await;
    eventually(PATIENCE, || at("101")).await;
    // Its row lies below the position now, and no row follows that would begin a turn.
    run(&owner, ATTACH).await;
    let halted = "SELECT EXISTS (SELECT FROM outbox.cursor_status WHERE halted AND last_error ->> 'code' = 'partition_attached')";
    eventually(PATIENCE, || async { owner.query_one(halted, &[]).await.unwrap().get(0) }).await;
    replica.stop().await;
}

/// A table of two partitions that one cursor has read, and the text of a configuration with so many shards.
async fn before_reshard(database: &Database) -> (Client, impl Fn(u32) -> String) {
    let owner = database.connect("postgres").await;
    run(
        &owner,
        "CREATE TABLE bookings (id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp(), \
         customer text NOT NULL DEFAULT 'c', PRIMARY KEY (created_at, id)) PARTITION BY RANGE (id); \
         CREATE TABLE a PARTITION OF bookings FOR VALUES FROM (MINVALUE) TO (100); \
         CREATE TABLE b PARTITION OF bookings FOR VALUES FROM (100) TO (MAXVALUE); \
         GRANT SELECT ON bookings TO relay; INSERT INTO bookings (id) VALUES (1), (100)",
    )
    .await;
    let text = |shards: u32| {
        let relay = format!(
            "[[relay]]\nname = \"r\"\nshards = {shards}\nshard_key = \"customer\"\n[relay.source.stream]\n\
             table = \"public.bookings\"\n[relay.sink.stdout]\n"
        );
        toml(database, "postgres", None, &relay)
    };
    let (code, out, log) = outbox_relay(&text(2), &["migrate", "up", "--indexes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    let (code, _, log) = outbox_relay(&text(1), &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    (owner, text)
}

// Guarantee: horizon.rewrites
#[tokio::test]
async fn reshard_refuses_table_with_missing_partition() {
    let database = database().await;
    let (owner, text) = before_reshard(&database).await;
    // Away for an instant: a hand-over now would pass what is in it without a trace.
    run(&owner, "INSERT INTO bookings (id) VALUES (2); ALTER TABLE bookings DETACH PARTITION a").await;
    let (code, _, log) = outbox_relay(&text(2), &["cursor", "reshard", "r", "--timeout", "5s"]).await;
    assert!(code == Some(1) && log.contains("one that the cursors have read is missing"), "{log}");
    run(&owner, ATTACH).await;
    let (code, _, log) = outbox_relay(&text(1), &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, out, log) = outbox_relay(&text(2), &["cursor", "reshard", "r"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
}

#[tokio::test]
async fn reshard_accepts_table_with_dropped_partition() {
    let database = database().await;
    let (owner, text) = before_reshard(&database).await;
    run(&owner, "DROP TABLE a").await;
    let (code, out, log) = outbox_relay(&text(2), &["cursor", "reshard", "r", "--timeout", "5s"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
}

// Guarantee: horizon.rewrites
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
