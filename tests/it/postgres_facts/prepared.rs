//! Prepared transactions: what remains of their session, and by what they are known. Servers of their own: a prepared
//! transaction is seen by every database of its server.

use outbox_testkit::postgres::{Options, Postgres};
use tokio_postgres::Client;

use super::{pid, run, value};

/// The writers of `t`: virtual transaction, and process.
async fn writers(owner: &Client) -> Vec<(String, Option<i32>)> {
    let sql = "SELECT virtualtransaction, pid FROM pg_locks \
               WHERE relation = 't'::regclass AND mode = 'RowExclusiveLock' AND granted";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn server() -> (Postgres, Client, Client) {
    let postgres = Postgres::start(Options::default()).await.unwrap();
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    run(&owner, "CREATE TABLE t (id bigint)").await;
    let writer = postgres.connect("postgres", "postgres").await.unwrap();
    (postgres, owner, writer)
}

/// PREPARE TRANSACTION keeps the virtual transaction id and the table's lock, without a process; its virtualxid lock goes.
#[tokio::test]
async fn prepared_transaction_keeps_virtual_id_and_lock() {
    let (postgres, owner, writer) = server().await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let before = writers(&owner).await;
    assert_eq!(before[0].1, Some(pid(&writer).await));
    run(&writer, "PREPARE TRANSACTION 'p'").await;
    assert_eq!(writers(&owner).await, [(before[0].0.clone(), None)]);
    let own = format!(
        "SELECT count(*) FROM pg_locks WHERE virtualtransaction = '{}' AND locktype = 'virtualxid'",
        before[0].0
    );
    assert_eq!(value::<i64>(&owner, &own).await, 0);
    run(&owner, "ROLLBACK PREPARED 'p'").await;
    assert_eq!(writers(&owner).await, []);
    postgres.stop().await.unwrap();
}

/// `pg_prepared_xacts` gives a prepared transaction's database; its xid joins the `transactionid` lock in `pg_locks`.
#[tokio::test]
async fn prepared_transactions_database_is_found_by_xid() {
    let (postgres, owner, writer) = server().await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let virtual_id = writers(&owner).await[0].0.clone();
    run(&writer, "PREPARE TRANSACTION 'p'").await;
    run(&owner, "CREATE DATABASE other").await;
    let elsewhere = postgres.connect("postgres", "other").await.unwrap();
    let sql = "SELECT l.virtualtransaction, p.database::text FROM pg_locks AS l \
               JOIN pg_prepared_xacts AS p ON p.transaction = l.transactionid \
               WHERE l.locktype = 'transactionid' AND l.pid IS NULL AND l.granted";
    for session in [&owner, &elsewhere] {
        let row = session.query_one(sql, &[]).await.unwrap();
        assert_eq!((row.get(0), row.get(1)), (virtual_id.clone(), "postgres".to_owned()));
    }
    run(&owner, "ROLLBACK PREPARED 'p'").await;
    postgres.stop().await.unwrap();
}

/// The session of a prepared transaction goes on: `xact_start` of its process is then that of a later transaction.
#[tokio::test]
async fn session_of_prepared_transaction_may_begin_another() {
    let (postgres, owner, writer) = server().await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let process = pid(&writer).await;
    let start = format!(
        "SELECT (extract(epoch FROM xact_start) * 1000000)::bigint FROM pg_stat_activity WHERE pid = {process}"
    );
    let first: i64 = value(&owner, &start).await;
    run(&writer, "PREPARE TRANSACTION 'p'").await;
    assert_eq!(value::<Option<i64>>(&owner, &start).await, None);
    run(&writer, "BEGIN; INSERT INTO t VALUES (2)").await;
    assert!(value::<i64>(&owner, &start).await > first);
    let mut both = writers(&owner).await;
    both.sort_by_key(|writer| writer.1);
    assert_eq!(both.iter().map(|writer| writer.1).collect::<Vec<_>>(), [None, Some(process)]);
    assert_ne!(both[0].0, both[1].0);
    run(&writer, "ROLLBACK").await;
    run(&writer, "ROLLBACK PREPARED 'p'").await;
    postgres.stop().await.unwrap();
}

/// What COMMIT PREPARED commits is visible before its table lock is gone from `pg_locks`.
#[tokio::test(flavor = "multi_thread")]
async fn prepared_commit_is_visible_when_its_lock_goes() {
    let (postgres, owner, writer) = server().await;
    let relation: u32 = value(&owner, "SELECT 't'::regclass::oid").await;
    let held = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = $1 AND mode = 'RowExclusiveLock')";
    let held = owner.prepare(held).await.unwrap();
    let seen = owner.prepare("SELECT EXISTS (SELECT FROM t WHERE id = $1)").await.unwrap();
    let mut writer = writer;
    for id in 1..=100_i64 {
        run(&writer, &format!("BEGIN; INSERT INTO t VALUES ({id}); PREPARE TRANSACTION 'p'")).await;
        assert!(owner.query_one(&held, &[&relation]).await.unwrap().get::<_, bool>(0));
        let commit = super::background(writer, "COMMIT PREPARED 'p'");
        while owner.query_one(&held, &[&relation]).await.unwrap().get(0) {}
        assert!(owner.query_one(&seen, &[&id]).await.unwrap().get::<_, bool>(0), "round {id}");
        (writer, _) = commit.await.unwrap();
    }
    postgres.stop().await.unwrap();
}

/// While a transaction is being prepared its lock is listed at every instant.
#[tokio::test(flavor = "multi_thread")]
async fn lock_is_listed_throughout_prepare() {
    let (postgres, owner, writer) = server().await;
    let relation: u32 = value(&owner, "SELECT 't'::regclass::oid").await;
    let holders = "SELECT count(DISTINCT virtualtransaction), bool_or(pid IS NULL) FROM pg_locks \
                   WHERE relation = $1 AND mode = 'RowExclusiveLock' AND granted";
    let holders = owner.prepare(holders).await.unwrap();
    let mut writer = writer;
    for round in 0..100 {
        run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
        let prepare = super::background(writer, "PREPARE TRANSACTION 'p'");
        loop {
            let row = owner.query_one(&holders, &[&relation]).await.unwrap();
            assert_eq!(row.get::<_, i64>(0), 1, "round {round}");
            if row.get(1) {
                break;
            }
        }
        (writer, _) = prepare.await.unwrap();
        run(&writer, "ROLLBACK PREPARED 'p'").await;
    }
    postgres.stop().await.unwrap();
}

/// After a restart a prepared transaction has its lock still, and another virtual transaction id.
#[tokio::test]
async fn prepared_transaction_has_new_virtual_id_after_restart() {
    let (mut postgres, owner, writer) = server().await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let before = writers(&owner).await[0].0.clone();
    run(&writer, "PREPARE TRANSACTION 'p'").await;
    postgres.restart().await.unwrap();
    let owner = postgres.connect("postgres", "postgres").await.unwrap();
    let after = writers(&owner).await;
    assert_eq!(after.len(), 1);
    assert!(after[0].1.is_none() && after[0].0 != before, "{before}, {after:?}");
    run(&owner, "ROLLBACK PREPARED 'p'").await;
    postgres.stop().await.unwrap();
}
