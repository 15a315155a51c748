//! When a transaction's snapshot is taken, and which statements take none.

use tokio_postgres::error::SqlState;

use super::{background, pid, run, table, value, waits_for};

const READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
const COUNT: &str = "SELECT count(*) FROM t";

/// BEGIN takes no snapshot; the first statement that needs one does, and the transaction keeps it.
#[tokio::test]
async fn repeatable_read_snapshot_begins_with_first_query() {
    let (database, owner) = table("id bigint").await;
    let reader = database.connect("relay").await;
    run(&reader, READING).await;
    run(&owner, "INSERT INTO t VALUES (1)").await;
    assert_eq!(value::<i64>(&reader, COUNT).await, 1);
    run(&owner, "INSERT INTO t VALUES (2)").await;
    assert_eq!(value::<i64>(&reader, COUNT).await, 1);
}

/// LOCK TABLE … IN ACCESS SHARE MODE takes no snapshot, by either protocol.
#[tokio::test]
async fn lock_table_takes_no_snapshot() {
    let (database, owner) = table("id bigint").await;
    let reader = database.connect("relay").await;
    let lock = reader.prepare("LOCK TABLE t IN ACCESS SHARE MODE").await.unwrap();
    for rows in [1_i64, 3] {
        run(&reader, READING).await;
        if rows == 1 {
            run(&reader, "LOCK TABLE t IN ACCESS SHARE MODE").await;
        } else {
            reader.execute(&lock, &[]).await.unwrap();
        }
        run(&owner, "INSERT INTO t VALUES (1)").await;
        assert_eq!(value::<i64>(&reader, COUNT).await, rows);
        run(&owner, "INSERT INTO t VALUES (2)").await;
        assert_eq!(value::<i64>(&reader, COUNT).await, rows, "the snapshot did not stay");
        run(&reader, "COMMIT").await;
    }
}

/// LOCK TABLE that waited for an ACCESS EXCLUSIVE lock lets the transaction see what its holder committed.
#[tokio::test(flavor = "multi_thread")]
async fn snapshot_after_lock_table_wait_sees_committed_rewrite() {
    let (database, owner) = table("id bigint").await;
    run(&owner, "INSERT INTO t VALUES (1)").await;
    let (reader, altering) = (database.connect("relay").await, database.connect("postgres").await);
    let (reading, holding) = (pid(&reader).await, pid(&altering).await);
    run(&altering, "BEGIN; ALTER TABLE t ADD COLUMN r float8 DEFAULT random(); INSERT INTO t VALUES (2)").await;
    let rows = background(reader, format!("{READING}; LOCK TABLE t IN ACCESS SHARE MODE; {COUNT}; COMMIT"));
    waits_for(&owner, reading, &[holding]).await;
    run(&altering, "COMMIT").await;
    assert_eq!(rows.await.unwrap().1, ["2"]);
}

/// LOCK TABLE locks partitions and children at every depth, and needs SELECT on the root only.
#[tokio::test]
async fn lock_table_recurses_with_select_on_root_only() {
    let (database, owner) = table("id bigint").await;
    run(
        &owner,
        "CREATE TABLE child () INHERITS (t); CREATE TABLE grandchild () INHERITS (child); \
         CREATE TABLE root (id bigint) PARTITION BY RANGE (id); \
         CREATE TABLE branch PARTITION OF root FOR VALUES FROM (0) TO (9) PARTITION BY RANGE (id); \
         CREATE TABLE leaf PARTITION OF branch FOR VALUES FROM (0) TO (9); \
         GRANT SELECT ON root TO relay; REVOKE ALL ON t FROM PUBLIC; GRANT SELECT ON t TO relay",
    )
    .await;
    let reader = database.connect("relay").await;
    let refused = reader.query("SELECT FROM leaf", &[]).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
    run(&reader, &format!("{READING}; LOCK TABLE t, root IN ACCESS SHARE MODE")).await;
    let locked: Vec<String> = value(
        &owner,
        "SELECT array_agg(relation::regclass::text ORDER BY relation::regclass::text) FROM pg_locks \
         WHERE mode = 'AccessShareLock' AND granted AND pid <> pg_backend_pid() AND relation >= 16384 \
           AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
    )
    .await;
    assert_eq!(locked, ["branch", "child", "grandchild", "leaf", "root", "t"]);
}

/// A weaker right does not do: without SELECT on the root LOCK TABLE is refused, whatever may be read of its children.
#[tokio::test]
async fn lock_table_without_select_on_root_is_refused() {
    let (database, owner) = table("id bigint").await;
    run(&owner, "CREATE TABLE child () INHERITS (t); GRANT SELECT ON child TO relay; REVOKE ALL ON t FROM PUBLIC")
        .await;
    let reader = database.connect("relay").await;
    let lock = format!("{READING}; LOCK TABLE t IN ACCESS SHARE MODE");
    let refused = reader.batch_execute(&lock).await.unwrap_err();
    assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE));
}

/// Writers do not wait for a reader's ACCESS SHARE lock, nor the reader for theirs.
#[tokio::test]
async fn access_share_lock_conflicts_with_no_writer() {
    let (database, owner) = table("id bigint").await;
    let (reader, writer) = (database.connect("relay").await, database.connect("app").await);
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    run(&reader, &format!("SET lock_timeout = '10s'; {READING}; LOCK TABLE t IN ACCESS SHARE MODE")).await;
    run(
        &writer,
        "SET LOCAL lock_timeout = '10s'; UPDATE t SET id = 2; DELETE FROM t; INSERT INTO t VALUES (3); COMMIT",
    )
    .await;
    assert_eq!(value::<i64>(&owner, COUNT).await, 1);
    assert_eq!(value::<i64>(&reader, COUNT).await, 1);
}

/// `xmin` names the version of a row: every transaction that changes the row changes it, and nothing else does, not even a
/// freeze. What a running turn records of its progress rests on it.
#[tokio::test]
async fn xmin_changes_with_every_transaction_that_updates_the_row_and_with_nothing_else() {
    const XMIN: &str = "SELECT xmin::text FROM t";
    let (database, owner) = table("id bigint PRIMARY KEY, x int").await;
    run(&owner, "INSERT INTO t VALUES (1, 0)").await;
    let mut seen: Vec<String> = vec![value(&owner, XMIN).await];
    for sql in ["UPDATE t SET x = x", "UPDATE t SET x = 1", "BEGIN; SAVEPOINT s; UPDATE t SET x = 2; RELEASE s; COMMIT"]
    {
        run(&owner, sql).await;
        let xmin: String = value(&owner, XMIN).await;
        assert!(!seen.contains(&xmin), "{sql}");
        seen.push(xmin);
    }
    let last = seen.pop();
    let other = database.connect("app").await;
    run(&other, "BEGIN; SELECT FROM t FOR UPDATE; COMMIT; BEGIN; SELECT FROM t FOR KEY SHARE; COMMIT").await;
    run(&owner, "BEGIN; UPDATE t SET x = 3; ROLLBACK").await;
    run(&owner, "VACUUM (FREEZE) t").await;
    assert_eq!(Some(value::<String>(&owner, XMIN).await), last, "a lock, a rollback or a freeze changed it");
}
