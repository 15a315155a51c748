//! One message of the simple protocol that holds several transactions: whose time `now()` is, and what is seen of it.

use tokio_postgres::Client;

use super::{background, pid, run, table, value};
use crate::support::{PATIENCE, eventually};

/// Waits until `session` waits for the advisory lock of this key.
async fn at_gate(observer: &Client, session: i32, key: i32) {
    let waits = format!(
        "SELECT count(*) FROM pg_locks WHERE pid = {session} AND locktype = 'advisory' AND objid = {key} AND NOT granted"
    );
    eventually(PATIENCE, async || value::<i64>(observer, &waits).await == 1).await;
}

/// The `xact_start` of a session, in microseconds.
async fn started(observer: &Client, session: i32) -> Option<i64> {
    let sql = format!(
        "SELECT (extract(epoch FROM xact_start) * 1000000)::bigint FROM pg_stat_activity WHERE pid = {session}"
    );
    value(observer, &sql).await
}

const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
const STAMP: &str = "INSERT INTO t SELECT (extract(epoch FROM now()) * 1000000)::bigint";

/// Each transaction of one message has the message's time as `now()`, and `xact_start` shows it: a look at the clock may
/// be later, at which that transaction did not exist yet.
#[tokio::test(flavor = "multi_thread")]
async fn now_of_every_transaction_is_its_messages_time() {
    let (database, owner) = table("at bigint").await;
    let writer = database.connect("app").await;
    let writing = pid(&writer).await;
    run(&owner, "SELECT pg_advisory_lock(1), pg_advisory_lock(2)").await;
    let gate = |key: i32| format!("SELECT pg_advisory_lock_shared({key}), pg_advisory_unlock_shared({key})");
    let message = format!("BEGIN; {STAMP}; {}; COMMIT; BEGIN; {}; {STAMP}; COMMIT; {STAMP}", gate(1), gate(2));
    let writes = background(writer, message);
    at_gate(&owner, writing, 1).await;
    let first = started(&owner, writing).await.unwrap();
    let looked: i64 = value(&owner, CLOCK).await;
    run(&owner, "SELECT pg_advisory_unlock(1)").await;
    at_gate(&owner, writing, 2).await;
    // The first transaction has ended, so this one began after the look.
    assert_eq!(value::<i64>(&owner, "SELECT count(*) FROM t").await, 1);
    assert_eq!(started(&owner, writing).await, Some(first));
    run(&owner, "SELECT pg_advisory_unlock(2)").await;
    writes.await.unwrap();
    let stamps: Vec<i64> = value(&owner, "SELECT array_agg(at) FROM t").await;
    assert_eq!(stamps, [first; 3]);
    assert!(first < looked, "stamped {first}, absent at {looked}");
}

/// Between two transactions of a message its session is active without `xact_start`, and `query_start` is the message's
/// time: never idle, never later.
#[tokio::test(flavor = "multi_thread")]
async fn session_between_transactions_is_active_since_its_message() {
    let (database, owner) = table("at bigint").await;
    let mut writer = database.connect("app").await;
    let writing = pid(&writer).await;
    let message = format!("{STAMP}; {}", "BEGIN; COMMIT; ".repeat(20_000));
    let look = format!(
        "SELECT state, (extract(epoch FROM query_start) * 1000000)::bigint, \
                (extract(epoch FROM xact_start) * 1000000)::bigint FROM pg_stat_activity WHERE pid = {writing}"
    );
    let look = owner.prepare(&look).await.unwrap();
    let (mut inside, mut between) = (0, 0);
    for _ in 0..200 {
        let ends = background(writer, message.clone());
        let mut seen = Vec::new();
        while !ends.is_finished() {
            let row = owner.query_one(&look, &[]).await.unwrap();
            seen.push((row.get::<_, String>(0), row.get::<_, i64>(1), row.get::<_, Option<i64>>(2)));
        }
        (writer, _) = ends.await.unwrap();
        let came: i64 = value(&owner, "SELECT max(at) FROM t").await;
        // The first looks may come before the message, and the last ones after its end.
        let mut seen: Vec<_> = seen.into_iter().skip_while(|(_, since, _)| *since != came).collect();
        while seen.pop_if(|(state, _, _)| state == "idle").is_some() {}
        for (state, since, transaction) in seen {
            assert_eq!((state.as_str(), since), ("active", came));
            assert!(transaction.is_none_or(|start| start == came), "{transaction:?}, and the message came at {came}");
            inside += i32::from(transaction.is_some());
            between += i32::from(transaction.is_none());
        }
        if inside > 0 && between > 0 {
            return;
        }
    }
    panic!("seen inside a transaction {inside} times, between two {between} times");
}

/// A transaction that a procedure begins by COMMIT has its own time: `now()` and `xact_start` are later than the message.
#[tokio::test(flavor = "multi_thread")]
async fn transaction_after_commit_in_procedure_has_own_now() {
    let (database, owner) = table("at bigint").await;
    run(
        &owner,
        &format!(
            "CREATE PROCEDURE two() LANGUAGE plpgsql AS $$ BEGIN {STAMP}; PERFORM pg_advisory_lock(1); \
             COMMIT; {STAMP}; PERFORM pg_advisory_lock(2); COMMIT; END $$; \
             SELECT pg_advisory_lock(1), pg_advisory_lock(2)"
        ),
    )
    .await;
    let writer = database.connect("app").await;
    let writing = pid(&writer).await;
    let calls = background(writer, "CALL two()");
    at_gate(&owner, writing, 1).await;
    let first = started(&owner, writing).await.unwrap();
    let between: i64 = value(&owner, CLOCK).await;
    run(&owner, "SELECT pg_advisory_unlock(1)").await;
    at_gate(&owner, writing, 2).await;
    let second = started(&owner, writing).await.unwrap();
    run(&owner, "SELECT pg_advisory_unlock(2)").await;
    calls.await.unwrap();
    assert!(first < between && between <= second, "{first}, {between}, {second}");
    let stamps: Vec<i64> = value(&owner, "SELECT array_agg(at ORDER BY at) FROM t").await;
    assert_eq!(stamps, [first, second]);
}
