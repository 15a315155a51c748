//! What a query sees of a table that was rewritten while it waited for the table's lock.

use tokio_postgres::Client;

use super::{background, pid, run, table, value, waits_for};
use crate::support::Database;

const COUNT: &str = "SELECT count(*) FROM t";
const REPEATABLE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Rewrites, and a swap by name, whose rows are new rows to every older snapshot.
const REWRITES: [&str; 4] = [
    "ALTER TABLE t ADD COLUMN r float8 DEFAULT random()",
    "ALTER TABLE t ALTER COLUMN n TYPE bigint",
    "ALTER TABLE t SET ACCESS METHOD second_heap",
    "ALTER TABLE t RENAME TO old; CREATE TABLE t (LIKE old); GRANT SELECT ON t TO relay; INSERT INTO t SELECT * FROM old",
];

/// A table of one row, and a second access method to move it to.
async fn one_row() -> (Database, Client) {
    let (database, owner) = table("id bigint, n integer").await;
    run(
        &owner,
        "INSERT INTO t VALUES (1, 1); CREATE ACCESS METHOD second_heap TYPE TABLE HANDLER heap_tableam_handler",
    )
    .await;
    (database, owner)
}

/// The first column of what `read` gives when it waits for `rewrite`, as one message of the simple protocol.
async fn read_during(database: &Database, rewrite: &str, read: &str) -> Vec<String> {
    let observer = database.connect("postgres").await;
    let (reader, altering) = (database.connect("relay").await, database.connect("postgres").await);
    let (reading, holding) = (pid(&reader).await, pid(&altering).await);
    run(&reader, "PREPARE counted AS SELECT count(*) FROM t").await;
    run(&altering, &format!("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE; {rewrite}")).await;
    let read = background(reader, read);
    waits_for(&observer, reading, &[holding]).await;
    run(&altering, "COMMIT").await;
    read.await.unwrap().1
}

/// A REPEATABLE READ query takes its snapshot, then waits for its lock: a rewrite in between shows it an empty table.
#[tokio::test(flavor = "multi_thread")]
async fn repeatable_read_query_sees_rewritten_table_empty() {
    for rewrite in REWRITES {
        let (database, _owner) = one_row().await;
        let rows = read_during(&database, rewrite, &format!("{REPEATABLE}; {COUNT}; COMMIT; {COUNT}")).await;
        assert_eq!(rows, ["0", "1"], "{rewrite}");
    }
}

/// A statement prepared before behaves like a new one: its snapshot in REPEATABLE READ is older than its lock.
#[tokio::test(flavor = "multi_thread")]
async fn prepared_repeatable_read_query_sees_rewritten_table_empty() {
    let (database, _owner) = one_row().await;
    assert_eq!(extended_during(&database, REPEATABLE, "auto", REWRITES[0]).await, 0);
}

/// CLUSTER and VACUUM FULL keep each row's own transaction: an older snapshot sees the rows.
#[tokio::test(flavor = "multi_thread")]
async fn repeatable_read_query_sees_clustered_table_whole() {
    let (database, owner) = one_row().await;
    run(&owner, "CREATE INDEX by_id ON t (id)").await;
    let rows = read_during(&database, "CLUSTER t USING by_id", &format!("{REPEATABLE}; {COUNT}; COMMIT")).await;
    assert_eq!(rows, ["1"]);
}

/// A READ COMMITTED query of the simple protocol takes its snapshot after its lock: it sees a rewritten table whole.
#[tokio::test(flavor = "multi_thread")]
async fn read_committed_query_sees_rewritten_table_whole() {
    for rewrite in REWRITES {
        let (database, _owner) = one_row().await;
        assert_eq!(read_during(&database, rewrite, COUNT).await, ["1"], "{rewrite}");
    }
}

/// A statement executed by the extended protocol in READ COMMITTED does, too, whether its plan is generic or custom.
#[tokio::test(flavor = "multi_thread")]
async fn prepared_read_committed_query_sees_rewritten_table_whole() {
    for mode in ["force_generic_plan", "force_custom_plan"] {
        for rewrite in REWRITES {
            let (database, _owner) = one_row().await;
            let begin = "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY";
            assert_eq!(extended_during(&database, begin, mode, rewrite).await, 1, "{mode}, {rewrite}");
        }
    }
}

/// SQL's own EXECUTE takes its snapshot before the lock in READ COMMITTED, too: the relay does not use it.
#[tokio::test(flavor = "multi_thread")]
async fn sql_execute_sees_rewritten_table_empty() {
    let (database, _owner) = one_row().await;
    assert_eq!(read_during(&database, REWRITES[0], "EXECUTE counted").await, ["0"]);
}

/// What a statement that was prepared before counts when it waits for `rewrite`.
async fn extended_during(database: &Database, begin: &str, mode: &str, rewrite: &str) -> i64 {
    let observer = database.connect("postgres").await;
    let (reader, altering) = (database.connect("relay").await, database.connect("postgres").await);
    let (reading, holding) = (pid(&reader).await, pid(&altering).await);
    run(&reader, &format!("SET plan_cache_mode = '{mode}'")).await;
    let statement = reader.prepare("SELECT count(*) FROM t WHERE id >= $1").await.unwrap();
    assert_eq!(reader.query_one(&statement, &[&0_i64]).await.unwrap().get::<_, i64>(0), 1);
    run(&reader, begin).await;
    run(&altering, &format!("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE; {rewrite}")).await;
    let rows = tokio::spawn(async move { reader.query_one(&statement, &[&0_i64]).await.unwrap().get(0) });
    waits_for(&observer, reading, &[holding]).await;
    run(&altering, "COMMIT").await;
    let _: i64 = value(&observer, COUNT).await;
    rows.await.unwrap()
}
