//! The row of a process: written at its start, when what it reports changes, and at its end, by itself or by another.

use rustix::process::Signal;

use super::{CLOCK, PATIENCE, bookings, database, eventually, refuses, row, start, stdout_relay};
use crate::support::outside::printed;

// Guarantee: failures.replica-row
#[tokio::test]
async fn replica_row_reports_relays_start_and_stop() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let before = "SELECT count(*) FROM outbox.replica WHERE started_at BETWEEN now() - interval '1 minute' AND clock_timestamp() \
                  AND id = 'r1' AND version = $1";
    let mut process = start(&database, &stdout_relay("rows", ""), "r1");
    eventually(PATIENCE, async || row(&owner, "r1").await.is_some()).await;
    assert_eq!(owner.query_one(before, &[&env!("CARGO_PKG_VERSION")]).await.unwrap().get::<_, i64>(0), 1);
    let (stopped, relays) = row(&owner, "r1").await.unwrap();
    assert!(!stopped);
    assert_eq!((&relays[0]["name"], &relays[0]["refused"]), (&"rows".into(), &serde_json::Value::Null));
    assert_eq!(relays[0]["config_hash"].as_str().unwrap().len(), 16);
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
    assert_eq!(row(&owner, "r1").await.unwrap(), (true, relays));
}

#[tokio::test]
async fn once_writes_its_row_and_its_stop() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let toml = crate::support::toml(&database, "relay", None, &stdout_relay("rows", ""));
    let (code, _, log) = crate::support::outbox_relay(&toml, &["run", "--once", "--replica-id", "job"]).await;
    assert_eq!(code, Some(0), "{log}");
    assert!(row(&owner, "job").await.unwrap().0);
}

// Guarantee: failures.replica-row
#[tokio::test]
async fn killed_replica_is_marked_stopped_by_another() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let relay = stdout_relay("rows", "");
    let mut killed = start(&database, &relay, "killed");
    eventually(PATIENCE, async || row(&owner, "killed").await.is_some()).await;
    killed.signal(Signal::KILL);
    killed.wait().await;
    let sessions = "SELECT count(*) FROM pg_stat_activity \
                    WHERE application_name = 'outbox-relay/killed' AND datname = current_database()";
    eventually(PATIENCE, async || owner.query_one(sessions, &[]).await.unwrap().get::<_, i64>(0) == 0).await;
    // What ended two days ago is of no interest to anyone.
    let old = "INSERT INTO outbox.replica (id, version, started_at, seen_at, stopped_at) SELECT 'old', '0', t, t, t \
               FROM (SELECT now() - interval '2 days') AS o (t)";
    owner.batch_execute(old).await.unwrap();
    let _other = start(&database, &relay, "other");
    eventually(PATIENCE * 2, async || row(&owner, "killed").await.is_some_and(|(stopped, _)| stopped)).await;
    eventually(PATIENCE * 2, async || row(&owner, "old").await.is_none()).await;
    let seen = "SELECT seen_at <= stopped_at FROM outbox.replica WHERE id = 'killed'";
    assert!(owner.query_one(seen, &[]).await.unwrap().get::<_, bool>(0));
    assert!(!row(&owner, "other").await.unwrap().0);
}

#[tokio::test]
async fn restarted_replica_ends_the_row_of_its_former_process() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let mut first = start(&database, &stdout_relay("rows", ""), "same");
    eventually(PATIENCE, async || row(&owner, "same").await.is_some()).await;
    first.signal(Signal::KILL);
    first.wait().await;
    // Another configuration: nothing is waited for that has ended.
    let second = start(&database, &stdout_relay("rows", "on_poison = \"dead_letter\""), "same");
    owner.batch_execute("INSERT INTO bookings DEFAULT VALUES").await.unwrap();
    eventually(PATIENCE, async || !printed(&second, "rows").is_empty()).await;
    let live = "SELECT count(*), count(*) FILTER (WHERE stopped_at IS NULL) FROM outbox.replica WHERE id = 'same'";
    eventually(PATIENCE, async || {
        let rows = owner.query_one(live, &[]).await.unwrap();
        (rows.get::<_, i64>(0), rows.get::<_, i64>(1)) == (2, 1)
    })
    .await;
}

// Guarantee: failures.replica-row
#[tokio::test]
async fn row_that_cannot_be_written_stops_no_relay() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner
        .batch_execute("REVOKE INSERT, UPDATE ON outbox.replica FROM relay; INSERT INTO bookings DEFAULT VALUES")
        .await
        .unwrap();
    let process = start(&database, &stdout_relay("rows", ""), "r1");
    eventually(PATIENCE, async || printed(&process, "rows").len() == 1).await;
    assert!(row(&owner, "r1").await.is_none());
    let said = || process.log().matches("cannot write the row of this replica").count();
    eventually(PATIENCE, async || said() == 1).await;
    owner.batch_execute("GRANT INSERT, UPDATE ON outbox.replica TO relay").await.unwrap();
    eventually(PATIENCE, async || row(&owner, "r1").await.is_some()).await;
    assert_eq!(said(), 1, "{}", process.log());
}

#[tokio::test]
async fn deleted_row_is_written_again_after_a_lost_session() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let process = start(&database, &stdout_relay("rows", ""), "r1");
    eventually(PATIENCE, async || row(&owner, "r1").await.is_some()).await;
    let started = async || {
        owner
            .query_opt("SELECT started_at::text FROM outbox.replica", &[])
            .await
            .unwrap()
            .map(|row| row.get::<_, String>(0))
    };
    let before = started().await;
    owner.batch_execute("DELETE FROM outbox.replica").await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE application_name = 'outbox-relay/r1' AND datname = current_database()";
    owner.execute(end, &[]).await.unwrap();
    eventually(PATIENCE * 2, async || started().await.is_some()).await;
    assert_eq!(started().await, before, "{}", process.log());
}

#[tokio::test]
async fn refused_relay_is_reported_until_its_checks_pass() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("REVOKE SELECT ON bookings FROM relay").await.unwrap();
    let _process = start(&database, &stdout_relay("rows", ""), "r1");
    eventually(PATIENCE * 2, async || {
        row(&owner, "r1").await.is_some_and(|(_, relays)| relays[0]["refused"]["code"].is_string())
    })
    .await;
    owner.batch_execute("GRANT SELECT ON bookings TO relay").await.unwrap();
    refuses(&owner, "r1", None).await;
}
