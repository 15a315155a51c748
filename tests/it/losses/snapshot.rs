//! Snapshots that are older than the lock of the table they read.
//!
//! A reading that waits for a lock must see the table as it is once the lock is granted. A snapshot that was taken
//! before shows a rewritten relation empty, and a detached partition as if it were still read.

use std::sync::Arc;

use outbox_relay::source::fetch::FetchError;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use super::{members, run};
use crate::support::{CLOCK, Database, PATIENCE, Reader, Replica, bookings, config, database, eventually};

/// Rows of small ids go into the child that inherits, as into a partition.
const INTO_CHILD: &str =
    "CREATE RULE small AS ON INSERT TO bookings WHERE NEW.id < 100 DO INSTEAD INSERT INTO a VALUES (NEW.*)";

/// Starts to read, and returns when the reading waits for the lock of a table.
async fn waiting(reader: &Arc<Reader>, owner: &Client) -> JoinHandle<Result<usize, FetchError>> {
    let sighting = reader.watched().await;
    let reader = Arc::clone(reader);
    let reading = tokio::spawn(async move { reader.read(&sighting).await });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks AS l JOIN pg_stat_activity AS a USING (pid) \
                 WHERE NOT l.granted AND l.mode = 'AccessShareLock' AND a.datname = current_database())";
    eventually(PATIENCE, || async { owner.query_one(waits, &[]).await.unwrap().get(0) }).await;
    reading
}

/// A reader that has delivered row 100 reads while `ddl` is open in another session, which then commits; rows 1 and 101
/// were committed before.
async fn read_across(database: &Database, owner: &Client, ddl: &str) -> Arc<Reader> {
    run(owner, "INSERT INTO bookings (id) VALUES (100)").await;
    let reader = Arc::new(Reader::new(database, "relay").await);
    // Its statements are prepared now: later, preparing would wait for the lock before the transaction begins.
    reader.settled(&[100]).await;
    run(owner, "INSERT INTO bookings (id) VALUES (1); INSERT INTO bookings (id) VALUES (101)").await;
    let changing = database.connect("postgres").await;
    run(&changing, &format!("BEGIN; {ddl}")).await;
    let reading = waiting(&reader, owner).await;
    run(&changing, "COMMIT").await;
    // It may refuse a table that is no longer the one that was scanned.
    match reading.await.unwrap() {
        Ok(_) | Err(FetchError::FamilyChanged) => {}
        Err(error) => panic!("{error}"),
    }
    reader
}

// Guarantee: horizon.rewrites
#[tokio::test]
async fn rows_of_rewritten_partition_are_delivered() {
    let database = database().await;
    let owner = members(&database, false).await;
    run(&owner, "CREATE ACCESS METHOD other TYPE TABLE HANDLER heap_tableam_handler").await;
    let reader = read_across(&database, &owner, "ALTER TABLE a SET ACCESS METHOD other").await;
    reader.expect(&[100, 1, 101]).await;
}

// Guarantee: horizon.rewrites
#[tokio::test]
async fn rows_of_rewritten_child_table_are_delivered() {
    let database = database().await;
    let owner = members(&database, true).await;
    run(&owner, INTO_CHILD).await;
    let rewrite = "ALTER TABLE a ADD COLUMN note double precision DEFAULT random()";
    let reader = read_across(&database, &owner, rewrite).await;
    reader.expect(&[100, 1, 101]).await;
}

// Guarantee: horizon.rewrites
#[tokio::test]
async fn partition_detached_while_read_halts_on_return() {
    let database = database().await;
    let owner = members(&database, false).await;
    // A role that may look into it is not to pass its rows: `identity/away.rs`.
    run(&owner, "REVOKE SELECT ON a FROM relay").await;
    let reader = read_across(&database, &owner, "ALTER TABLE bookings DETACH PARTITION a").await;
    reader.catalogue().await;
    reader.settled(&[100, 101]).await;
    run(&owner, "ALTER TABLE bookings ATTACH PARTITION a FOR VALUES FROM (MINVALUE) TO (100)").await;
    reader.catalogue().await;
    let error = reader.turn().await.unwrap_err();
    assert!(matches!(error, FetchError::AttachedBehind { .. }), "{error}");
}

// Guarantee: horizon.rewrite-idle
#[tokio::test]
async fn reading_that_waited_for_rewrite_is_not_idle() {
    let database = database().await;
    let owner = members(&database, true).await;
    let rewrite = "ALTER TABLE bookings ADD COLUMN note double precision DEFAULT random()";
    run(&owner, "INSERT INTO bookings (id) VALUES (100)").await;
    let reader = Arc::new(Reader::new(&database, "relay").await);
    reader.settled(&[100]).await;
    run(&owner, "INSERT INTO bookings (id) VALUES (101)").await;
    let changing = database.connect("postgres").await;
    run(&changing, &format!("BEGIN; {rewrite}")).await;
    let reading = waiting(&reader, &owner).await;
    run(&changing, "COMMIT").await;
    // An idle turn would be remembered: the relay would stay quiet until another row comes.
    assert_eq!(reading.await.unwrap().unwrap(), 1);
}

// Guarantee: horizon.rewrite-idle
#[tokio::test]
async fn relay_delivers_row_after_rewrite_without_another_row() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relay = "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n";
    let replica = Replica::start(&config(&database, "relay", None, relay), "a");
    run(&owner, "INSERT INTO bookings DEFAULT VALUES").await;
    let at = async |id: i32| {
        let sql = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = $1)";
        owner.query_one(sql, &[&id.to_string()]).await.unwrap().get::<_, bool>(0)
    };
    eventually(PATIENCE, || at(1)).await;
    let changing = database.connect("postgres").await;
    run(&changing, "BEGIN; INSERT INTO bookings DEFAULT VALUES").await;
    run(&changing, "ALTER TABLE bookings ADD COLUMN note double precision DEFAULT random(); COMMIT").await;
    eventually(PATIENCE, || at(2)).await;
    replica.stop().await;
}

/// What a table that stands alone is asked is less than what a family is asked, and tells of every relative all the same.
// Guarantee: horizon.rewrites
#[tokio::test]
async fn table_that_stood_alone_is_not_read_once_it_has_a_relative() {
    let relatives = [
        "ALTER TABLE a INHERIT bookings",
        "ALTER TABLE leaf INHERIT a; ALTER TABLE a INHERIT bookings",
        "ALTER TABLE bookings INHERIT a",
        "ALTER TABLE root ATTACH PARTITION bookings DEFAULT",
    ];
    for ddl in relatives {
        let database = database().await;
        let owner = database.connect("postgres").await;
        let columns = "id bigint NOT NULL, created_at timestamptz NOT NULL DEFAULT clock_timestamp()";
        let sql = format!(
            "CREATE TABLE bookings ({columns}, PRIMARY KEY (created_at, id)); CREATE TABLE a (LIKE bookings INCLUDING ALL); \
             CREATE TABLE leaf (LIKE bookings INCLUDING ALL); CREATE TABLE root ({columns}) PARTITION BY RANGE (id); \
             GRANT SELECT ON bookings, a, leaf, root TO relay"
        );
        run(&owner, &sql).await;
        run(&owner, "INSERT INTO bookings (id) VALUES (1)").await;
        let reader = Reader::new(&database, "relay").await;
        reader.settled(&[1]).await;
        run(&owner, &format!("INSERT INTO bookings (id) VALUES (2); {ddl}")).await;
        let error = reader.turn().await.unwrap_err();
        assert!(matches!(error, FetchError::FamilyChanged), "{ddl}: {error}");
        assert_eq!(reader.delivered().await, ["1"], "{ddl}");
    }
}
