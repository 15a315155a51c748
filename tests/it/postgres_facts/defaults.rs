//! When a column's default is evaluated, and which locks its writer holds then.

use super::{background, pid, run, table, value};
use crate::support::{Database, PATIENCE, eventually};
use tokio_postgres::Client;

/// A function that waits while key 7 is held, then reads the clock.
const STAMP: &str = "CREATE FUNCTION stamp() RETURNS timestamptz LANGUAGE plpgsql VOLATILE AS $$ BEGIN \
     PERFORM pg_advisory_xact_lock_shared(7); RETURN clock_timestamp(); END $$";

/// The tables that a session holds for writing while it waits in `stamp()` for `sql`.
async fn held_while_stamping(database: &Database, gate: &Client, sql: &str) -> Vec<String> {
    run(gate, "SELECT pg_advisory_lock(7)").await;
    let writer = database.connect("postgres").await;
    let writing = pid(&writer).await;
    let insert = background(writer, sql);
    let waits =
        format!("SELECT count(*) FROM pg_locks WHERE pid = {writing} AND locktype = 'advisory' AND NOT granted");
    eventually(PATIENCE, async || value::<i64>(gate, &waits).await == 1).await;
    let held = format!(
        "SELECT array_agg(relation::regclass::text ORDER BY relation::regclass::text) FROM pg_locks \
         WHERE pid = {writing} AND mode = 'RowExclusiveLock' AND granted AND locktype = 'relation'"
    );
    let held: Option<Vec<String>> = value(gate, &held).await;
    run(gate, "SELECT pg_advisory_unlock(7)").await;
    insert.await.unwrap();
    held.unwrap_or_default()
}

/// Whatever statement inserts, it holds the table's lock when the default reads the clock.
#[tokio::test(flavor = "multi_thread")]
async fn table_lock_is_held_before_default_is_evaluated() {
    let (database, owner) = table("id bigint").await;
    run(&owner, STAMP).await;
    run(&owner, "ALTER TABLE t ADD COLUMN created_at timestamptz DEFAULT stamp()").await;
    for sql in [
        "INSERT INTO t VALUES (1)",
        "PREPARE p AS INSERT INTO t VALUES (2); EXECUTE p",
        "MERGE INTO t USING (VALUES (3)) AS v (id) ON t.id = v.id WHEN NOT MATCHED THEN INSERT (id) VALUES (v.id)",
        "WITH w AS (INSERT INTO t VALUES (4) RETURNING id) SELECT id FROM w",
        "UPDATE t SET created_at = DEFAULT WHERE id = 1",
        "COPY t (id) FROM PROGRAM 'echo 5'",
    ] {
        assert_eq!(held_while_stamping(&database, &owner, sql).await, ["t"], "{sql}");
    }
    assert_eq!(value::<i64>(&owner, "SELECT count(*) FROM t WHERE created_at IS NOT NULL").await, 5);
}

/// An insert through a partitioned root holds the root's lock alone when the default reads the clock.
#[tokio::test(flavor = "multi_thread")]
async fn insert_through_root_locks_only_root_before_default() {
    let (database, owner) = table("id bigint").await;
    run(
        &owner,
        &format!(
            "{STAMP}; CREATE TABLE root (id bigint, created_at timestamptz DEFAULT stamp()) PARTITION BY RANGE (id); \
             CREATE TABLE leaf PARTITION OF root FOR VALUES FROM (0) TO (9)"
        ),
    )
    .await;
    assert_eq!(held_while_stamping(&database, &owner, "INSERT INTO root VALUES (1)").await, ["root"]);
    assert_eq!(held_while_stamping(&database, &owner, "INSERT INTO leaf VALUES (1)").await, ["leaf"]);
}
