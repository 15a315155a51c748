//! Partitions that are attached and detached beside a transaction that reads the root.

use tokio_postgres::Client;

use super::{background, pid, run, table, value, waits_for};
use crate::support::Database;

const REPEATABLE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const ATTACH: &str = "ALTER TABLE root ATTACH PARTITION leaf FOR VALUES FROM (0) TO (10)";
const COUNT: &str = "SELECT count(*) FROM root";

/// A root with a leaf of no row, and a table of one row that may be attached.
async fn partitioned() -> (Database, Client) {
    let (database, owner) = table("id bigint").await;
    run(
        &owner,
        "CREATE TABLE root (id bigint) PARTITION BY RANGE (id); \
         CREATE TABLE other PARTITION OF root FOR VALUES FROM (10) TO (20); \
         CREATE TABLE leaf (id bigint); INSERT INTO leaf VALUES (1); GRANT SELECT ON root TO relay",
    )
    .await;
    (database, owner)
}

/// ATTACH PARTITION does not wait for a reader's lock on the root, and a later plan of the reader's transaction reads the
/// partition, although its snapshot's `pg_inherits` has no such row; `pg_partition_tree()` shows it.
#[tokio::test]
async fn attached_partition_is_read_under_older_snapshot() {
    let (database, owner) = partitioned().await;
    let reader = database.connect("relay").await;
    run(&reader, &format!("{REPEATABLE}; LOCK TABLE root IN ACCESS SHARE MODE")).await;
    assert_eq!(value::<i64>(&reader, COUNT).await, 0);
    run(&owner, &format!("SET lock_timeout = '10s'; {ATTACH}")).await;
    assert_eq!(value::<i64>(&reader, "SELECT count(id) FROM root").await, 1, "planned after the attach");
    let catalogued = "SELECT count(*) FROM pg_inherits WHERE inhparent = 'root'::regclass";
    assert_eq!(value::<i64>(&reader, catalogued).await, 1, "by the transaction's snapshot");
    let tree = "SELECT count(*) FROM pg_partition_tree('root') WHERE isleaf";
    assert_eq!(value::<i64>(&reader, tree).await, 2, "by the catalogue's own snapshot");
}

/// A kept plan whose locks are held already may still be the one from before the attach; after `pg_partition_tree()` has
/// shown the partition, the statement reads it. So a tree looked at after the rows covers them, one before does not.
#[tokio::test]
async fn kept_plan_reads_partition_once_tree_shows_it() {
    let (database, owner) = partitioned().await;
    let reader = database.connect("relay").await;
    run(&reader, &format!("SET plan_cache_mode = 'force_generic_plan'; {REPEATABLE}")).await;
    let statement = reader.prepare(COUNT).await.unwrap();
    assert_eq!(reader.query_one(&statement, &[]).await.unwrap().get::<_, i64>(0), 0);
    run(&owner, ATTACH).await;
    let tree = "SELECT count(*) FROM pg_partition_tree('root') WHERE isleaf";
    assert_eq!(value::<i64>(&reader, tree).await, 2);
    assert_eq!(reader.query_one(&statement, &[]).await.unwrap().get::<_, i64>(0), 1);
}

/// A portal that was opened before the attach goes on without the partition.
#[tokio::test]
async fn open_portal_does_not_read_partition_attached_since() {
    let (database, owner) = partitioned().await;
    run(&owner, "INSERT INTO root VALUES (11), (12)").await;
    let mut reader = database.connect("relay").await;
    let transaction = reader.transaction().await.unwrap();
    let portal = transaction.bind("SELECT id FROM root", &[]).await.unwrap();
    assert_eq!(transaction.query_portal(&portal, 1).await.unwrap().len(), 1);
    run(&owner, ATTACH).await;
    assert_eq!(transaction.query_portal(&portal, 0).await.unwrap().len(), 1);
}

/// Plain DETACH PARTITION waits for a reader's lock on the root; so do DROP and TRUNCATE of a leaf for the lock on it.
#[tokio::test(flavor = "multi_thread")]
async fn plain_detach_waits_for_reader_of_root() {
    let (database, owner) = partitioned().await;
    run(&owner, ATTACH).await;
    for ddl in ["TRUNCATE leaf", "ALTER TABLE root DETACH PARTITION leaf", "DROP TABLE other"] {
        let (reader, altering) = (database.connect("relay").await, database.connect("postgres").await);
        let (reading, waiting) = (pid(&reader).await, pid(&altering).await);
        run(&reader, &format!("{REPEATABLE}; LOCK TABLE root IN ACCESS SHARE MODE")).await;
        let altered = background(altering, ddl);
        waits_for(&owner, waiting, &[reading]).await;
        run(&reader, &format!("{COUNT}; COMMIT")).await;
        altered.await.unwrap();
    }
}

/// A child by inheritance that is added does not wait for a reader either, and a later plan reads it.
#[tokio::test]
async fn added_child_is_read_under_older_snapshot() {
    let (database, owner) = partitioned().await;
    let reader = database.connect("relay").await;
    run(&reader, &format!("{REPEATABLE}; LOCK TABLE t IN ACCESS SHARE MODE")).await;
    assert_eq!(value::<i64>(&reader, "SELECT count(*) FROM t").await, 0);
    run(&owner, "SET lock_timeout = '10s'; ALTER TABLE leaf INHERIT t").await;
    assert_eq!(value::<i64>(&reader, "SELECT count(id) FROM t").await, 1);
    let catalogued = "SELECT count(*) FROM pg_inherits WHERE inhparent = 't'::regclass";
    assert_eq!(value::<i64>(&reader, catalogued).await, 0);
}

/// A child by inheritance may leave while a reader holds the root alone; LOCK TABLE holds the child as well, and it waits.
#[tokio::test(flavor = "multi_thread")]
async fn leaving_child_waits_for_lock_table_of_root() {
    let (database, owner) = partitioned().await;
    run(&owner, "ALTER TABLE leaf INHERIT t").await;
    let (reader, altering) = (database.connect("relay").await, database.connect("postgres").await);
    let (reading, waiting) = (pid(&reader).await, pid(&altering).await);
    run(&reader, &format!("{REPEATABLE}; LOCK TABLE t IN ACCESS SHARE MODE")).await;
    let altered = background(altering, "ALTER TABLE leaf NO INHERIT t");
    waits_for(&owner, waiting, &[reading]).await;
    assert_eq!(value::<i64>(&reader, "SELECT count(*) FROM t").await, 1);
    run(&reader, "COMMIT").await;
    altered.await.unwrap();
}
