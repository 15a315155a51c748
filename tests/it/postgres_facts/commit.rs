//! When a commit can be seen, and what it undoes.

use outbox_testkit::postgres::{Options, Postgres};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::{background, pid, run, table, value, waits_for};
use crate::support::{PATIENCE, eventually};

const ROUNDS: i64 = 200;

/// A session that was given a lock of an ended transaction sees what that transaction committed.
#[tokio::test(flavor = "multi_thread")]
async fn commit_is_visible_before_waiter_gets_its_lock() {
    let (database, owner) = table("id bigint PRIMARY KEY").await;
    let (writer, mut waiter) = (database.connect("app").await, database.connect("app").await);
    let (writing, waiting) = (pid(&writer).await, pid(&waiter).await);
    for id in 1..=ROUNDS {
        run(&writer, &format!("BEGIN; INSERT INTO t VALUES ({id})")).await;
        let lock = background(waiter, "BEGIN; LOCK TABLE t IN SHARE MODE; SELECT count(*) FROM t; COMMIT");
        waits_for(&owner, waiting, &[writing]).await;
        run(&writer, "COMMIT").await;
        let rows;
        (waiter, rows) = lock.await.unwrap();
        assert_eq!(rows, [id.to_string()], "the lock was granted before the row could be seen");
    }
}

/// A snapshot taken after `pg_locks` no longer lists a transaction's table lock sees what it committed.
#[tokio::test(flavor = "multi_thread")]
async fn commit_is_visible_when_its_lock_is_gone() {
    let (database, owner) = table("id bigint PRIMARY KEY").await;
    let relation: u32 = value(&owner, "SELECT 't'::regclass::oid").await;
    let held = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = $1 AND mode = 'RowExclusiveLock')";
    let held = owner.prepare(held).await.unwrap();
    let seen = owner.prepare("SELECT EXISTS (SELECT FROM t WHERE id = $1)").await.unwrap();
    let mut writer = database.connect("app").await;
    for id in 1..=ROUNDS {
        run(&writer, &format!("BEGIN; INSERT INTO t VALUES ({id})")).await;
        assert!(owner.query_one(&held, &[&relation]).await.unwrap().get::<_, bool>(0));
        let commit = background(writer, "COMMIT");
        while owner.query_one(&held, &[&relation]).await.unwrap().get(0) {}
        let visible: bool = owner.query_one(&seen, &[&id]).await.unwrap().get(0);
        assert!(visible, "round {id}: the lock was gone before the row could be seen");
        (writer, _) = commit.await.unwrap();
    }
}

/// A commit that waits for a synchronous standby cannot be seen yet, and keeps its locks; then both change.
#[tokio::test(flavor = "multi_thread")]
async fn commit_awaiting_standby_keeps_locks_and_stays_invisible() {
    let settings = vec![("synchronous_standby_names".to_owned(), "absent".to_owned())];
    let postgres = Postgres::start(Options { settings, ..Options::default() }).await.unwrap();
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    run(&owner, "SET synchronous_commit = local; CREATE TABLE t (id bigint)").await;
    let writer = postgres.connect("postgres", "postgres").await.unwrap();
    let writing = pid(&writer).await;
    let commit = background(writer, "BEGIN; INSERT INTO t VALUES (1); COMMIT");
    let waits = format!("SELECT wait_event = 'SyncRep' IS TRUE FROM pg_stat_activity WHERE pid = {writing}");
    eventually(PATIENCE, async || value(&owner, &waits).await).await;
    let locks =
        format!("SELECT count(*) FROM pg_locks WHERE pid = {writing} AND mode = 'RowExclusiveLock' AND granted");
    let seen = "SELECT count(*) FROM t";
    assert_eq!((value::<i64>(&owner, seen).await, value::<i64>(&owner, &locks).await), (0, 1));
    // Ends the wait, not the commit: PostgreSQL warns that the standby may not have it.
    run(&owner, &format!("SELECT pg_cancel_backend({writing})")).await;
    commit.await.unwrap();
    assert_eq!((value::<i64>(&owner, seen).await, value::<i64>(&owner, &locks).await), (1, 0));
    postgres.stop().await.unwrap();
}

/// COMMIT after a failed statement of the same pipeline rolls back, and reports no error.
#[tokio::test]
async fn pipelined_commit_after_failed_statement_rolls_back() {
    let (database, owner) = table("id bigint PRIMARY KEY").await;
    let writer = database.connect("app").await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let (failed, commit) =
        tokio::join!(biased; writer.batch_execute("INSERT INTO t VALUES (1)"), writer.batch_execute("COMMIT"));
    assert_eq!(failed.unwrap_err().code(), Some(&SqlState::UNIQUE_VIOLATION));
    commit.unwrap();
    assert_eq!(value::<i64>(&owner, "SELECT count(*) FROM t").await, 0);
}

/// COMMIT after an UPDATE of 0 rows commits: only an error undoes what came before it.
#[tokio::test]
async fn pipelined_commit_after_empty_update_commits() {
    let (database, owner) = table("id bigint PRIMARY KEY").await;
    let writer = database.connect("app").await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let update = writer.execute("UPDATE t SET id = 3 WHERE id = 2", &[]);
    let (updated, commit) = tokio::join!(biased; update, writer.batch_execute("COMMIT"));
    assert_eq!(updated.unwrap(), 0);
    commit.unwrap();
    assert_eq!(value::<i64>(&owner, "SELECT count(*) FROM t").await, 1);
}

/// An error raised in a statement undoes its data-modifying CTE, and a COMMIT sent with it rolls back.
#[tokio::test]
async fn error_in_data_modifying_cte_undoes_it() {
    let (database, owner) = table("id bigint PRIMARY KEY, n integer NOT NULL DEFAULT 0").await;
    run(&owner, "INSERT INTO t VALUES (1)").await;
    let writer = database.connect("app").await;
    let sql = "WITH moved AS (UPDATE t SET n = n + 1 WHERE id = $1 RETURNING id) \
               SELECT 1 / (SELECT count(*) FROM moved)";
    let statement = writer.prepare(sql).await.unwrap();
    for (id, n) in [(1_i64, 1_i32), (2, 1)] {
        run(&writer, "BEGIN; INSERT INTO t VALUES (0) ON CONFLICT DO NOTHING").await;
        let parameters: [&(dyn ToSql + Sync); 1] = [&id];
        let moved = writer.query(&statement, &parameters);
        let (moved, commit) = tokio::join!(biased; moved, writer.batch_execute("COMMIT"));
        let code = moved.err().and_then(|error| error.code().cloned());
        assert_eq!(code, (id == 2).then_some(SqlState::DIVISION_BY_ZERO));
        commit.unwrap();
        assert_eq!(value::<i32>(&owner, "SELECT n FROM t WHERE id = 1").await, n);
        run(&owner, "DELETE FROM t WHERE id = 0").await;
    }
}
