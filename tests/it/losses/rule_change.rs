//! A table whose rule becomes weaker under a running relay.
//!
//! Under `clock_timestamp()` a position may lie above the start of an open transaction. Once the default is `now()`, that
//! transaction writes a row below the position.

use rustix::process::Signal;
use tokio_postgres::Client;

use super::run;
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, toml};

const NOW_FROM_NOW_ON: &str = "ALTER TABLE bookings ALTER COLUMN created_at SET DEFAULT now()";
const INSERT: &str = "INSERT INTO bookings DEFAULT VALUES";

fn start(database: &Database, role: &str) -> Process {
    start_with(database, role, "")
}

/// A relay with more in its section of the source.
fn start_with(database: &Database, role: &str, source: &str) -> Process {
    let relay = format!(
        "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.bookings\"\n{source}\n[relay.sink.stdout]\n"
    );
    Process::spawn(&toml(database, role, None, &relay), &["run"])
}

/// The ids that relays have printed, each once, in the order of their first delivery.
fn delivered(processes: &[&Process]) -> Vec<String> {
    let mut ids = Vec::new();
    for line in processes.iter().flat_map(|process| process.out().lines().map(str::to_owned).collect::<Vec<_>>()) {
        let Ok(row) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
        let id = row["id"].as_str().unwrap().to_owned();
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

async fn delivers(processes: &[&Process], ids: &[&str]) {
    eventually(PATIENCE * 2, async || delivered(processes).len() >= ids.len()).await;
    assert_eq!(delivered(processes), ids);
}

/// Waits for the halt; its message and hint.
async fn halted(owner: &Client) -> (String, String) {
    let sql = "SELECT last_error ->> 'message', last_error ->> 'hint' FROM outbox.cursor_status \
               WHERE cursor = 'r' AND halted AND last_error ->> 'code' = 'horizon_rule_changed'";
    eventually(PATIENCE, || async { owner.query_opt(sql, &[]).await.unwrap().is_some() }).await;
    let row = owner.query_one(sql, &[]).await.unwrap();
    (row.get(0), row.get(1))
}

/// A table whose row 1 a relay has delivered, and a transaction that is older than the row and has not written yet.
async fn passed(role: &str) -> (Database, Client, Process, Client) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let older = database.connect("app").await;
    run(&older, "BEGIN; SELECT 1").await;
    let process = start(&database, role);
    run(&owner, INSERT).await;
    delivers(&[&process], &["1"]).await;
    let advanced = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = '1')";
    eventually(PATIENCE, || async { owner.query_one(advanced, &[]).await.unwrap().get(0) }).await;
    (database, owner, process, older)
}

async fn resume(owner: &mut Client) {
    outbox_relay::cursor::control::resume(owner, "r", "test").await.unwrap();
}

// Guarantee: horizon.changed-default
#[tokio::test]
async fn row_of_older_transaction_is_delivered_after_default_change() {
    let (_database, mut owner, process, older) = passed("relay_stats").await;
    run(&owner, NOW_FROM_NOW_ON).await;
    // Stamped with the start of its transaction, below the position, and committed before the relay reads the catalog again.
    run(&older, &format!("{INSERT}; COMMIT")).await;
    let (message, hint) = halted(&owner).await;
    assert!(message.contains("was writers and is transactions now"), "{message}");
    assert!(message.contains("so the position is"), "{message}");
    assert!(hint.contains("`outbox-relay cursor resume r`. Rows since"), "{hint}");
    resume(&mut owner).await;
    delivers(&[&process], &["1", "2"]).await;
    let noted = "SELECT count(*) FROM outbox.operation WHERE verb = 'position moved back' AND cursor = 'r'";
    assert_eq!(owner.query_one(noted, &[]).await.unwrap().get::<_, i64>(0), 1);
}

// Guarantee: horizon.changed-default
#[tokio::test]
async fn default_changed_while_no_relay_ran_is_noticed() {
    let (database, mut owner, mut before, older) = passed("relay_stats").await;
    before.signal(Signal::TERM);
    assert_eq!(before.wait().await, Some(0));
    run(&owner, NOW_FROM_NOW_ON).await;
    run(&older, &format!("{INSERT}; COMMIT")).await;
    let process = start(&database, "relay_stats");
    let (message, _) = halted(&owner).await;
    assert!(message.contains("so the position is"), "{message}");
    resume(&mut owner).await;
    delivers(&[&before, &process], &["1", "2"]).await;
}

// Guarantee: horizon.changed-default
#[tokio::test]
async fn unknown_transaction_starts_are_named_by_halt() {
    let (_database, mut owner, process, older) = passed("relay").await;
    run(&owner, NOW_FROM_NOW_ON).await;
    run(&older, &format!("{INSERT}; COMMIT")).await;
    let (message, hint) = halted(&owner).await;
    assert!(message.contains("can write below the position") && message.contains("where it is not read"), "{message}");
    assert!(hint.contains("cursor seek r --at INSTANT"), "{hint}");
    resume(&mut owner).await;
    run(&owner, INSERT).await;
    // What the halt says is so: the row of the older transaction stays below the position.
    delivers(&[&process], &["1", "3"]).await;
}

#[tokio::test]
async fn weaker_rule_is_recorded_only_with_its_halt() {
    let (_database, mut owner, process, older) = passed("relay_stats").await;
    // No halt can be written; a sequence counts the attempts, because it does not roll back.
    let refuse = "CREATE SEQUENCE refused; GRANT USAGE ON refused TO relay_stats; \
                  CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
                  $$ BEGIN PERFORM nextval('public.refused'); RAISE 'no halt'; END $$; \
                  CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON outbox.cursor_status \
                  FOR EACH ROW WHEN (NEW.halted) EXECUTE FUNCTION refuse()";
    run(&owner, refuse).await;
    run(&owner, NOW_FROM_NOW_ON).await;
    run(&older, &format!("{INSERT}; COMMIT")).await;
    let tried = "SELECT is_called AND last_value > 1 FROM refused";
    eventually(PATIENCE, || async { owner.query_one(tried, &[]).await.unwrap().get(0) }).await;
    let rule = "SELECT rule, position_id FROM outbox.cursor";
    let row = owner.query_one(rule, &[]).await.unwrap();
    assert_eq!((row.get(0), row.get(1)), ("writers", "1"), "a rule without its halt would be taken for accepted");
    run(&owner, "DROP TRIGGER refuse ON outbox.cursor_status").await;
    halted(&owner).await;
    resume(&mut owner).await;
    delivers(&[&process], &["1", "2"]).await;
}

#[tokio::test]
async fn rule_is_recorded_when_cursor_is_created() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let _process = start(&database, "relay");
    let rule = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE rule = 'writers' AND position_id IS NULL)";
    eventually(PATIENCE, || async { owner.query_one(rule, &[]).await.unwrap().get(0) }).await;
}

#[tokio::test]
async fn cursor_without_recorded_rule_halts() {
    let (_database, owner, _process, _older) = passed("relay_stats").await;
    // As a program that did not record rules left it.
    run(&owner, "UPDATE outbox.cursor SET rule = NULL, open_since = NULL").await;
    run(&owner, NOW_FROM_NOW_ON).await;
    halted(&owner).await;
}

#[tokio::test]
async fn stronger_configured_rule_does_not_halt() {
    let (database, owner, mut before, older) = passed("relay_stats").await;
    run(&older, "COMMIT").await;
    before.signal(Signal::TERM);
    assert_eq!(before.wait().await, Some(0));
    let process = start_with(&database, "relay_stats", "horizon = \"transactions\"");
    run(&owner, INSERT).await;
    delivers(&[&before, &process], &["1", "2"]).await;
    let halted = "SELECT count(*) FROM outbox.cursor_status WHERE halted";
    assert_eq!(owner.query_one(halted, &[]).await.unwrap().get::<_, i64>(0), 0);
}
