//! DETACH PARTITION … CONCURRENTLY while it is pending: the catalogue and a plan differ.

use tokio_postgres::Client;

use super::{background, pid, run, table, value, waits_for};
use crate::support::Database;

const REPEATABLE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const DETACH: &str = "ALTER TABLE root DETACH PARTITION leaf CONCURRENTLY";
const COUNT: &str = "SELECT count(*) FROM root";
const TREE: &str = "SELECT count(*) FROM pg_partition_tree('root') WHERE isleaf";
const PENDING: &str = "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = 'leaf'::regclass";

/// A root with one row in each of two leaves.
async fn partitioned() -> (Database, Client) {
    let (database, owner) = table("id bigint").await;
    run(
        &owner,
        "CREATE TABLE root (id bigint) PARTITION BY RANGE (id); \
         CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (10); \
         CREATE TABLE other PARTITION OF root FOR VALUES FROM (10) TO (20); \
         INSERT INTO root VALUES (1), (11); GRANT SELECT ON root TO relay",
    )
    .await;
    (database, owner)
}

/// Two transactions with a lock on the root, and a DETACH … CONCURRENTLY that waits for them to end: in READ COMMITTED,
/// and in REPEATABLE READ with a snapshot that is older than the detach.
struct Pending {
    committed: Client,
    repeatable: Client,
    detaching: tokio::task::JoinHandle<(Client, Vec<String>)>,
}

async fn pending(database: &Database, owner: &Client) -> Pending {
    pending_of(database, owner, 2).await
}

/// The same of a root with so many rows.
async fn pending_of(database: &Database, owner: &Client, rows: i64) -> Pending {
    let (committed, repeatable) = (database.connect("relay").await, database.connect("relay").await);
    for (session, begin) in [(&committed, "BEGIN ISOLATION LEVEL READ COMMITTED"), (&repeatable, REPEATABLE)] {
        run(session, begin).await;
        assert_eq!(value::<i64>(session, COUNT).await, rows);
    }
    let detach = database.connect("postgres").await;
    let detaching = pid(&detach).await;
    let detach = background(detach, DETACH);
    // It waits for one of them after the other.
    waits_for(owner, detaching, &[pid(&committed).await, pid(&repeatable).await]).await;
    Pending { committed, repeatable, detaching: detach }
}

impl Pending {
    async fn end(self) {
        run(&self.committed, "COMMIT").await;
        run(&self.repeatable, "COMMIT").await;
        self.detaching.await.unwrap();
    }
}

/// A transaction with an older snapshot still writes to the pending leaf through the root, without any lock before that: an empty leaf
/// says nothing while it is pending.
#[tokio::test(flavor = "multi_thread")]
async fn older_snapshot_writes_to_pending_leaf_through_root() {
    let (database, owner) = partitioned().await;
    let writer = database.connect("postgres").await;
    run(&writer, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!(value::<i64>(&writer, "SELECT 1::bigint").await, 1);
    run(&owner, "DELETE FROM leaf").await;
    let pending = pending_of(&database, &owner, 1).await;
    let locks = "SELECT count(*) FROM pg_locks WHERE relation = 'leaf'::regclass AND mode = 'RowExclusiveLock'";
    assert_eq!(value::<i64>(&owner, locks).await, 0);
    run(&writer, "INSERT INTO root VALUES (2); COMMIT").await;
    assert_eq!(value::<i64>(&owner, "SELECT count(*) FROM leaf").await, 1);
    assert_eq!(value::<i64>(&owner, COUNT).await, 1, "the root shows the other leaf's row only");
    pending.end().await;
}

/// The leaf is still in `pg_inherits`, marked as pending, and new queries on the root do not read it.
#[tokio::test(flavor = "multi_thread")]
async fn pending_leaf_is_catalogued_and_not_read() {
    let (database, owner) = partitioned().await;
    let pending = pending(&database, &owner).await;
    assert!(value::<bool>(&owner, PENDING).await);
    assert_eq!(value::<i64>(&owner, TREE).await, 1, "pg_partition_tree() leaves it out as plans do");
    assert_eq!(value::<i64>(&owner, COUNT).await, 1);
    assert_eq!(value::<i64>(&pending.committed, COUNT).await, 1, "in a transaction that read it before, too");
    pending.end().await;
    let left = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'root'::regclass";
    assert_eq!(value::<i64>(&owner, left).await, 1);
}

/// A snapshot that is older than the detach reads the pending leaf, also by a plan that is made later.
#[tokio::test(flavor = "multi_thread")]
async fn pending_leaf_is_read_by_older_snapshot() {
    let (database, owner) = partitioned().await;
    let pending = pending(&database, &owner).await;
    assert_eq!(value::<i64>(&pending.repeatable, "SELECT count(id) FROM root").await, 2);
    assert_eq!(value::<i64>(&pending.repeatable, TREE).await, 2, "pg_partition_tree() shows what plans read");
    assert!(!value::<bool>(&pending.repeatable, PENDING).await, "its snapshot of the catalogue is the older one");
    pending.end().await;
}

/// LOCK TABLE on the root then SELECT: a snapshot taken after the detach began does not read the leaf, locked or not.
#[tokio::test(flavor = "multi_thread")]
async fn pending_leaf_is_not_read_after_lock_table() {
    let (database, owner) = partitioned().await;
    let pending = pending(&database, &owner).await;
    let reader = database.connect("relay").await;
    run(&reader, &format!("{REPEATABLE}; LOCK TABLE root IN ACCESS SHARE MODE")).await;
    assert_eq!(value::<i64>(&reader, COUNT).await, 1);
    assert!(value::<bool>(&reader, PENDING).await);
    run(&reader, "COMMIT").await;
    pending.end().await;
}

/// A cancelled detach stays pending, refuses to be attached again, and ends by FINALIZE, which removes the catalogue's row.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_detach_stays_pending_until_finalize() {
    let (database, owner) = partitioned().await;
    let reader = database.connect("relay").await;
    run(&reader, &format!("BEGIN; {COUNT}")).await;
    let detach = database.connect("postgres").await;
    let detaching = pid(&detach).await;
    let cancelled = tokio::spawn(async move { detach.batch_execute(DETACH).await.is_err() });
    waits_for(&owner, detaching, &[pid(&reader).await]).await;
    run(&owner, &format!("SELECT pg_cancel_backend({detaching})")).await;
    assert!(cancelled.await.unwrap());
    run(&reader, "COMMIT").await;
    assert!(value::<bool>(&owner, PENDING).await);
    assert_eq!(value::<i64>(&reader, COUNT).await, 1, "its rows stay unread when nothing is under way");
    assert!(owner.batch_execute("ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (0) TO (10)").await.is_err());
    run(&owner, "ALTER TABLE root DETACH PARTITION leaf FINALIZE").await;
    assert_eq!(value::<i64>(&owner, "SELECT count(*) FROM pg_inherits WHERE inhrelid = 'leaf'::regclass").await, 0);
    run(&owner, "ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (0) TO (10)").await;
    assert_eq!(value::<i64>(&reader, COUNT).await, 2);
}

/// A row that is written to a pending leaf directly commits, and no query on the root reads it.
#[tokio::test(flavor = "multi_thread")]
async fn row_written_to_pending_leaf_is_not_read() {
    let (database, owner) = partitioned().await;
    let pending = pending(&database, &owner).await;
    run(&owner, "INSERT INTO leaf VALUES (2)").await;
    assert_eq!(value::<i64>(&owner, COUNT).await, 1);
    assert!(owner.batch_execute("INSERT INTO root VALUES (3)").await.is_err(), "no partition of the root takes it");
    pending.end().await;
}
