//! What `pg_stat_activity` shows, to whom, and how fresh it is.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_postgres::{Client, Row};

use super::{pid, run, table, value};
use crate::support::{PATIENCE, eventually};

const SHOWN: &str = "SELECT state, xact_start IS NOT NULL, query_start IS NOT NULL, application_name, \
     datid = (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_stat_activity WHERE pid = $1";

async fn shown(client: &Client, pid: i32) -> Row {
    client.query_one(SHOWN, &[&pid]).await.unwrap()
}

/// Without `pg_read_all_stats` other roles' state and times are NULL, their database and application name are not.
#[tokio::test]
async fn activity_of_other_roles_is_hidden_without_privilege() {
    let (database, _owner) = table("id bigint").await;
    let writer = database.connect("app").await;
    run(&writer, "SET application_name = 'shop'; BEGIN; INSERT INTO t VALUES (1)").await;
    let writing = pid(&writer).await;
    for (role, readable) in [("relay", false), ("relay_stats", true), ("app", true)] {
        let row = shown(&database.connect(role).await, writing).await;
        let state: Option<String> = row.get(0);
        assert_eq!(state.as_deref(), readable.then_some("idle in transaction"), "{role}");
        assert_eq!((row.get(1), row.get(2)), (readable, readable), "{role}");
        assert_eq!((row.get::<_, &str>(3), row.get(4)), ("shop", true), "{role}");
    }
}

/// A session with `track_activities` off shows the state "disabled", and no time of its message.
#[tokio::test]
async fn activity_is_disabled_without_track_activities() {
    let (database, owner) = table("id bigint").await;
    let writer = database.connect("postgres").await;
    run(&writer, "SET track_activities = off").await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let row = shown(&owner, pid(&writer).await).await;
    assert_eq!((row.get(0), row.get(1), row.get(2)), (Some("disabled"), false, false));
}

/// Inside a transaction the first look at activity is kept: what began since is not shown. Autocommit looks again.
#[tokio::test]
async fn activity_is_cached_within_transaction() {
    let (database, owner) = table("id bigint").await;
    let writer = database.connect("app").await;
    let writing = pid(&writer).await;
    run(&owner, "BEGIN ISOLATION LEVEL READ COMMITTED").await;
    assert!(!shown(&owner, writing).await.get::<_, bool>(1));
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    assert!(!shown(&owner, writing).await.get::<_, bool>(1));
    let locks = format!("SELECT count(*) FROM pg_locks WHERE pid = {writing} AND mode = 'RowExclusiveLock'");
    assert_eq!(value::<i64>(&owner, &locks).await, 1, "locks are never cached");
    run(&owner, "COMMIT").await;
    assert!(shown(&owner, writing).await.get::<_, bool>(1));
}

/// A session that connected after the first look of a transaction has no row of activity in it, and its locks are listed.
#[tokio::test]
async fn session_newer_than_cached_activity_has_none() {
    let (database, owner) = table("id bigint").await;
    run(&owner, "BEGIN; SELECT count(*) FROM pg_stat_activity").await;
    let writer = database.connect("app").await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (1)").await;
    let row = owner
        .query_one(
            "SELECT l.pid, a.pid IS NULL FROM pg_locks AS l LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid \
             WHERE l.relation = 't'::regclass AND l.mode = 'RowExclusiveLock'",
            &[],
        )
        .await
        .unwrap();
    assert_eq!((row.get(0), row.get(1)), (pid(&writer).await, true));
}

/// `xact_start` equals `now()` of the transaction, to the microsecond.
#[tokio::test]
async fn xact_start_equals_now() {
    let (database, owner) = table("at timestamptz").await;
    let writer = database.connect("app").await;
    run(&writer, "BEGIN; INSERT INTO t VALUES (now())").await;
    let stamp: String = value(&writer, "SELECT at::text FROM t").await;
    let start = format!("SELECT xact_start::text FROM pg_stat_activity WHERE pid = {}", pid(&writer).await);
    assert_eq!(value::<String>(&owner, &start).await, stamp);
}

/// A session whose client has not proved who it is has a transaction and no activity of its database, for
/// `authentication_timeout` at most.
#[tokio::test]
async fn session_that_signs_in_has_transaction_without_activity() {
    let (database, owner) = table("id bigint").await;
    let running = "SELECT l.pid FROM pg_locks AS l WHERE l.locktype = 'virtualxid' AND l.pid <> pg_backend_pid() \
                   AND NOT EXISTS (SELECT FROM pg_stat_activity AS a WHERE a.pid = l.pid AND a.datid IS NOT NULL)";
    let port: i32 = value(&owner, "SELECT current_setting('port')::integer").await;
    let mut stranger = TcpStream::connect(("127.0.0.1", u16::try_from(port).unwrap())).await.unwrap();
    let parameters = format!("user\0app\0database\0{}\0\0", database.name);
    let length = u32::try_from(parameters.len() + 8).unwrap();
    // The protocol's version 3.0.
    let startup = [&length.to_be_bytes()[..], &196_608_u32.to_be_bytes(), parameters.as_bytes()].concat();
    stranger.write_all(&startup).await.unwrap();
    // It asks for a proof.
    assert_eq!(stranger.read_u8().await.unwrap(), b'R');
    let pids = async || owner.query(running, &[]).await.unwrap().iter().map(|row| row.get(0)).collect::<Vec<i32>>();
    let found = pids().await;
    assert!(!found.is_empty(), "a transaction is listed");
    drop(stranger);
    eventually(PATIENCE, async || !pids().await.iter().any(|pid| found.contains(pid))).await;
}
