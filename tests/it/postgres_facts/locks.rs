//! What `pg_locks` lists of a writer, from when to when.

use super::{background, pid, run, table, value, waits_for};

const ROUNDS: i64 = 100;

/// A writer's table lock by the fast path is listed like any other.
#[tokio::test]
async fn fast_path_lock_is_listed() {
    let (database, owner) = table("id bigint").await;
    let writer = database.connect("app").await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let listed =
        "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND mode = 'RowExclusiveLock' AND fastpath";
    assert_eq!(value::<i64>(&owner, listed).await, 1);
}

/// A lock that another session's strong request moves out of the fast path is listed at every instant of the move.
#[tokio::test(flavor = "multi_thread")]
async fn lock_moved_from_fast_path_stays_listed() {
    let (database, owner) = table("id bigint").await;
    let (writer, mut strong) = (database.connect("app").await, database.connect("app").await);
    let (writing, requesting) = (pid(&writer).await, pid(&strong).await);
    let look = format!(
        "SELECT count(*) FILTER (WHERE fastpath), count(*) FILTER (WHERE NOT fastpath) FROM pg_locks \
         WHERE relation = 't'::regclass AND mode = 'RowExclusiveLock' AND granted AND pid = {writing}"
    );
    let look = owner.prepare(&look).await.unwrap();
    let listed = async || {
        let row = owner.query_one(&look, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    for round in 0..ROUNDS {
        run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
        assert_eq!(listed().await, (1, 0), "round {round}: it does not begin on the fast path");
        let request = background(strong, "BEGIN; LOCK TABLE t IN SHARE MODE; COMMIT");
        loop {
            let (fast, main) = listed().await;
            assert!(fast + main > 0, "round {round}: not listed");
            if fast == 0 {
                break;
            }
        }
        waits_for(&owner, requesting, &[writing]).await;
        assert_eq!(listed().await, (0, 1));
        run(&writer, "COMMIT").await;
        (strong, _) = request.await.unwrap();
    }
}

/// A transaction's virtualxid lock is listed from BEGIN, before its first snapshot, to its end; it has no database.
#[tokio::test]
async fn virtualxid_lock_is_listed_from_begin_to_end() {
    let (database, owner) = table("id bigint").await;
    let session = database.connect("app").await;
    let pid = pid(&session).await;
    let listed = format!(
        "SELECT count(*) FROM pg_locks WHERE pid = {pid} AND locktype = 'virtualxid' AND mode = 'ExclusiveLock' AND granted \
         AND virtualxid = virtualtransaction AND database IS NULL"
    );
    let snapshot = format!("SELECT backend_xmin IS NOT NULL FROM pg_stat_activity WHERE pid = {pid}");
    assert_eq!(value::<i64>(&owner, &listed).await, 0);
    run(&session, "BEGIN ISOLATION LEVEL REPEATABLE READ").await;
    assert_eq!(value::<i64>(&owner, &listed).await, 1);
    assert!(!value::<bool>(&owner, &snapshot).await);
    run(&session, "SELECT count(*) FROM t").await;
    assert_eq!(value::<i64>(&owner, &listed).await, 1);
    assert!(value::<bool>(&owner, &snapshot).await);
    run(&session, "COMMIT").await;
    assert_eq!(value::<i64>(&owner, &listed).await, 0);
}

/// The lock of a row that stays is kept to the end of its transaction, whatever becomes of savepoints.
#[tokio::test]
async fn lock_of_kept_row_outlives_savepoint_rollback() {
    let (database, owner) = table("id bigint").await;
    let writer = database.connect("app").await;
    let listed =
        "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass AND mode = 'RowExclusiveLock' AND granted";
    run(&writer, "BEGIN; INSERT INTO t VALUES (1); SAVEPOINT s; INSERT INTO t VALUES (2); ROLLBACK TO s").await;
    assert_eq!(value::<i64>(&owner, listed).await, 1);
    run(&writer, "ROLLBACK; BEGIN; SAVEPOINT s; INSERT INTO t VALUES (1); RELEASE s").await;
    assert_eq!(value::<i64>(&owner, listed).await, 1);
    run(&writer, "COMMIT").await;
    assert_eq!(value::<i64>(&owner, listed).await, 0);
}
