//! Outcomes of pending rows are recorded whatever the relay's checks find; one that cannot be is logged.

use tokio_postgres::Client;

use super::{PATIENCE, count, database, eventually, reminders, tables, welcome};
use crate::support::outside::{line, lines};
use crate::support::receiver::Receiver;
use crate::support::{Process, toml};
use rustix::process::Signal;

const MARKED: &str = "SELECT count(*) FROM todos WHERE \"delayNotificationSent\"";
const CLAIMS: &str = "SELECT count(*) FROM outbox.claim";

/// A relay whose body reads the column `title`, with a claim that lasts for 2.4 deadlines.
fn relay(receiver: &Receiver, deadline: &str, timeout: &str) -> String {
    let relay = reminders(receiver, &format!("turn = {{ deadline = \"{deadline}\" }}"));
    format!("{relay}timeout = \"{timeout}\"\nbody = \"{{{{ title }}}}\"\n")
}

async fn due(owner: &Client, id: &str) {
    owner.execute("INSERT INTO todos VALUES ('w', $1, 't', now())", &[&id]).await.unwrap();
}

/// A request is in flight, and the relay's checks fail: the column that its body reads has another name.
async fn checks_fail_in_flight(owner: &Client, receiver: &Receiver, process: &Process) {
    receiver.hold();
    due(owner, "1").await;
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    owner.batch_execute("ALTER TABLE todos RENAME title TO name").await.unwrap();
    owner.execute("INSERT INTO todos VALUES ('w', '2', 't', now())", &[]).await.unwrap();
    let failed = |line: &serde_json::Value| line["message"] == "cannot look for due work";
    eventually(PATIENCE, async || lines(process).iter().any(failed)).await;
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn sent_row_is_marked_while_checks_fail() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let process = Process::spawn(&toml(&database, "relay", None, &relay(&receiver, "30s", "18s")), &["run"]);
    line(&process, "relay ready").await;
    checks_fail_in_flight(&owner, &receiver, &process).await;
    receiver.release();
    eventually(PATIENCE, async || count(&owner, MARKED).await == 1).await;
    assert_eq!(count(&owner, CLAIMS).await, 0);
    owner.batch_execute("ALTER TABLE todos RENAME name TO title").await.unwrap();
    eventually(PATIENCE * 2, async || count(&owner, MARKED).await == 2).await;
    assert_eq!(receiver.requests().len(), 2, "each row once");
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_records_sent_row_while_checks_fail() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let text = toml(&database, "relay", None, &relay(&receiver, "10s", "6s"));
    let mut process = Process::spawn(&text, &["run"]);
    line(&process, "relay ready").await;
    checks_fail_in_flight(&owner, &receiver, &process).await;
    process.signal(Signal::TERM);
    line(&process, "draining: running turns end, no new one begins").await;
    receiver.release();
    let code = tokio::time::timeout(PATIENCE * 4, process.wait()).await.unwrap();
    assert_eq!((code, count(&owner, MARKED).await), (Some(0), 1), "{}", process.log());
    assert_eq!(count(&owner, CLAIMS).await, 0);
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_with_unmarkable_row_exits_1() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let text = toml(&database, "relay", None, &relay(&receiver, "2s", "1200ms"));
    let mut process = Process::spawn(&text, &["run"]);
    line(&process, "relay ready").await;
    receiver.hold();
    due(&owner, "1").await;
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    owner.batch_execute("ALTER TABLE todos RENAME \"delayNotificationSent\" TO sent").await.unwrap();
    process.signal(Signal::TERM);
    receiver.release();
    let code = tokio::time::timeout(PATIENCE * 4, process.wait()).await.unwrap();
    let log = process.log();
    assert_eq!(code, Some(1), "{log}");
    let unrecorded = lines(&process).into_iter().find(|line| line["outcomes"] == 1);
    assert!(unrecorded.is_some_and(|line| line["cursor"] == "reminders" && line["level"] == "ERROR"), "{log}");
    assert_eq!(log.matches("sent, not marked").count(), 1, "{log}");
    assert!(!log.contains("has drained"), "{log}");
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn claim_is_renewed_while_row_cannot_be_marked() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let process = Process::spawn(&toml(&database, "relay", None, &relay(&receiver, "2s", "1200ms")), &["run"]);
    line(&process, "relay ready").await;
    receiver.hold();
    due(&owner, "1").await;
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    owner.batch_execute("ALTER TABLE todos RENAME \"delayNotificationSent\" TO sent").await.unwrap();
    receiver.release();
    // Without a renewal the claim would have lasted for 4.8 s.
    let renewed = "SELECT count(*) FROM outbox.claim WHERE expires_at - claimed_at > interval '10 s'";
    eventually(PATIENCE * 2, async || count(&owner, renewed).await == 1).await;
    owner.batch_execute("ALTER TABLE todos RENAME sent TO \"delayNotificationSent\"").await.unwrap();
    eventually(PATIENCE * 2, async || count(&owner, MARKED).await == 1).await;
    eventually(PATIENCE, async || count(&owner, CLAIMS).await == 0).await;
    assert_eq!(receiver.requests().len(), 1, "not sent again");
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn outcome_is_recorded_after_its_claim_has_expired() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let mut process = Process::spawn(&toml(&database, "relay", None, &relay(&receiver, "1s", "600ms")), &["run"]);
    line(&process, "relay ready").await;
    receiver.hold();
    due(&owner, "1").await;
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    owner.batch_execute("REVOKE UPDATE, DELETE ON outbox.claim FROM relay").await.unwrap();
    receiver.release();
    let expired = "SELECT count(*) FROM outbox.claim WHERE expires_at < clock_timestamp() - interval '6 seconds'";
    eventually(PATIENCE * 2, async || count(&owner, expired).await == 1).await;
    owner.batch_execute("GRANT UPDATE, DELETE ON outbox.claim TO relay").await.unwrap();
    eventually(PATIENCE * 3, async || count(&owner, MARKED).await == 1 && count(&owner, CLAIMS).await == 0).await;
    assert_eq!(receiver.requests().len(), 1, "not sent again: {}", process.log());
    process.signal(Signal::TERM);
    assert_eq!(process.wait().await, Some(0), "{}", process.log());
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_with_unrecorded_refusal_exits_0() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let mut process = Process::spawn(&toml(&database, "relay", None, &relay(&receiver, "1s", "600ms")), &["run"]);
    line(&process, "relay ready").await;
    receiver.answer(|_| (503, std::time::Duration::ZERO));
    receiver.hold();
    due(&owner, "1").await;
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    owner.batch_execute("REVOKE UPDATE, DELETE ON outbox.claim FROM relay").await.unwrap();
    process.signal(Signal::TERM);
    line(&process, "draining: running turns end, no new one begins").await;
    receiver.release();
    let code = tokio::time::timeout(PATIENCE * 4, process.wait()).await.unwrap();
    let log = process.log();
    assert!(log.contains("send failed") && log.contains("cannot record outcomes yet"), "{log}");
    assert!(code == Some(0) && !log.contains("exiting with"), "{code:?} {log}");
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn relay_that_gives_way_records_what_it_sent() {
    let (database, receiver) = (database().await, Receiver::start());
    let (owner, application) = (tables(&database).await, database.connect("postgres").await);
    let text = toml(&database, "relay", None, &relay(&receiver, "1s", "600ms"));
    let mut process = Process::spawn(&text, &["run", "--replica-id", "one"]);
    line(&process, "relay ready").await;
    receiver.hold();
    due(&owner, "1").await;
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    application.batch_execute("BEGIN; SELECT FROM todos FOR UPDATE").await.unwrap();
    receiver.release();
    // Another configuration, there for longer: this replica has lost its sessions, and decides its claims again.
    owner
        .batch_execute(
            "INSERT INTO outbox.replica (id, version, started_at, relays) VALUES ('other', '0', now() - interval '1 hour', \
             '[{\"name\": \"reminders\", \"config_hash\": \"x\"}]')",
        )
        .await
        .unwrap();
    let instance = "SELECT instance::text FROM outbox.replica WHERE id = 'other'";
    let instance: String = owner.query_one(instance, &[]).await.unwrap().get(0);
    let other = database.connect("relay").await;
    other.batch_execute(&outbox_relay::cursor::liveness::hold(&instance)).await.unwrap();
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE application_name = 'outbox-relay/sql:one' AND datname = current_database()";
    owner.batch_execute(end).await.unwrap();
    let gave_way = "SELECT count(*) FROM outbox.replica WHERE id = 'one' AND relays -> 0 -> 'refused' ->> 'code' = 'config_mismatch'";
    eventually(PATIENCE * 2, async || count(&owner, gave_way).await == 1).await;
    // The claim lasts for 2.4 s: it is renewed for as long as the row is locked.
    let renewed = "SELECT count(*) FROM outbox.claim WHERE expires_at - claimed_at > interval '14 s'";
    eventually(PATIENCE * 2, async || count(&owner, renewed).await == 1).await;
    application.batch_execute("COMMIT").await.unwrap();
    eventually(PATIENCE, async || count(&owner, MARKED).await == 1 && count(&owner, CLAIMS).await == 0).await;
    process.signal(Signal::TERM);
    let (code, log) = (process.wait().await, process.log());
    assert!(code == Some(0) && !log.contains("exiting with"), "{code:?} {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_with_unrecorded_row_under_at_most_once_exits_1() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = tables(&database).await;
    let text = toml(&database, "relay", None, &welcome(&receiver, "turn = { deadline = \"1s\" }"));
    let mut process = Process::spawn(&text, &["run"]);
    line(&process, "relay ready").await;
    receiver.hold();
    owner.batch_execute("INSERT INTO users VALUES (1, 'a@example.com', '2026-01-01 00:00:00')").await.unwrap();
    eventually(PATIENCE, async || receiver.requests().len() == 1).await;
    owner.batch_execute("REVOKE UPDATE, DELETE ON outbox.claim FROM relay").await.unwrap();
    process.signal(Signal::TERM);
    line(&process, "draining: running turns end, no new one begins").await;
    receiver.release();
    let code = tokio::time::timeout(PATIENCE * 4, process.wait()).await.unwrap();
    assert_eq!(code, Some(1), "{}", process.log());
    let unrecorded = |line: &serde_json::Value| line["cursor"] == "welcome" && line["outcomes"] == 1;
    assert!(lines(&process).iter().any(unrecorded), "{}", process.log());
}
