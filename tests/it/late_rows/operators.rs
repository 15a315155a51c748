//! What operators see of late rows and decide about them.

use std::time::Duration;

use super::{LONG_ENOUGH, insert, late_rows, marked, printing, prints, run, swept};
use crate::support::outside::{halted, stdout_relay};
use crate::support::{Database, database, outbox_relay, toml};

pub(super) async fn does(database: &Database, more: &str, verb: &[&str]) -> String {
    let text = toml(database, "relay", None, &stdout_relay("late", more));
    let (code, out, log) = outbox_relay(&text, verb).await;
    assert_eq!(code, Some(0), "{out} {log}");
    out
}

// Guarantee: late.halt
#[tokio::test]
async fn relay_that_is_to_halt_at_late_rows_names_them_and_loses_none() {
    const HALT: &str = "on_late_row = \"halt\"";
    let database = database().await;
    let owner = swept(&database).await;
    let process = printing(&database, HALT);
    insert(&owner, 0, "first").await;
    prints(&process, &["1"]).await;
    insert(&owner, 10, "dated back").await;
    let (_, error) = halted(&owner, "late").await;
    assert_eq!(error["code"], "late_row", "{error}");
    assert!(error["message"].as_str().unwrap().contains("1 row has become visible behind the position: 2"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("dead-letter redrive"), "{error}");
    insert(&owner, 0, "second").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(marked(&process), ["1"], "it stands still");
    let why = does(&database, HALT, &["status", "-o", "json"]).await;
    let status: serde_json::Value = serde_json::from_str(&why).unwrap();
    assert_eq!((&status["cursors"][0]["late_rows"], &status["cursors"][0]["dead_letters"]), (&1.into(), &1.into()));
    does(&database, HALT, &["dead-letter", "redrive", "--cursor", "late", "--yes"]).await;
    does(&database, HALT, &["cursor", "resume", "late"]).await;
    prints(&process, &["1", "2*", "3"]).await;
}

// Guarantee: late.halt
#[tokio::test]
async fn once_fails_when_its_first_turn_halts_at_late_rows() {
    const HALT: &str = "on_late_row = \"halt\"";
    let database = database().await;
    let owner = swept(&database).await;
    insert(&owner, 0, "first").await;
    does(&database, HALT, &["run", "--once"]).await;
    insert(&owner, 10, "dated back").await;
    let text = toml(&database, "relay", None, &stdout_relay("late", HALT));
    let (code, out, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!((code, out.as_str()), (Some(1), ""), "{log}");
    assert!(log.contains("relay is halted"), "{log}");
}

// Guarantee: late.halt
#[tokio::test]
async fn seek_that_finds_late_rows_halts_a_relay_that_is_to_halt_at_them() {
    const HALT: &str = "on_late_row = \"halt\"";
    let database = database().await;
    let owner = swept(&database).await;
    let process = printing(&database, HALT);
    insert(&owner, 0, "first").await;
    prints(&process, &["1"]).await;
    does(&database, HALT, &["cursor", "pause", "late"]).await;
    // A turn that began before the pause ends first.
    run(&owner, "SELECT FROM outbox.cursor WHERE name = 'late' FOR UPDATE").await;
    insert(&owner, 10, "late").await;
    let sql = "SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')";
    let now: String = owner.query_one(sql, &[]).await.unwrap().get(0);
    does(&database, HALT, &["cursor", "seek", "late", "--at", &now, "--yes"]).await;
    let (_, error) = halted(&owner, "late").await;
    assert_eq!(error["code"], "late_row", "{error}");
    assert!(error["message"].as_str().unwrap().contains("1 row has become visible behind the position: 2"), "{error}");
    does(&database, HALT, &["dead-letter", "redrive", "--cursor", "late", "--yes"]).await;
    does(&database, HALT, &["cursor", "resume", "late"]).await;
    prints(&process, &["1", "2*"]).await;
    insert(&owner, 0, "last").await;
    prints(&process, &["1", "2*", "3"]).await;
}

// Guarantee: late.seek
#[tokio::test]
async fn rows_that_an_operator_passes_are_not_late_and_late_ones_are_not_passed() {
    let database = database().await;
    let owner = swept(&database).await;
    let process = printing(&database, "");
    insert(&owner, 0, "first").await;
    prints(&process, &["1"]).await;
    does(&database, "", &["cursor", "pause", "late"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before: String = owner
        .query_one("SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')", &[])
        .await
        .unwrap()
        .get(0);
    insert(&owner, 0, "passed").await;
    insert(&owner, 10, "late").await;
    let writer = database.connect("postgres").await;
    run(&writer, "BEGIN; SELECT pg_current_xact_id()").await;
    run(&writer, "INSERT INTO bookings (created_at, payload) VALUES (clock_timestamp() - interval '1 minute', 'open at the seek')").await;
    let after = owner
        .query_one("SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')", &[])
        .await
        .unwrap();
    let after: String = after.get(0);
    does(&database, "", &["cursor", "seek", "late", "--at", &after, "--yes"]).await;
    does(&database, "", &["cursor", "resume", "late"]).await;
    prints(&process, &["1", "3*"]).await;
    run(&writer, "COMMIT").await;
    prints(&process, &["1", "3*", "4*"]).await;
    does(&database, "", &["cursor", "seek", "late", "--at", &before, "--yes"]).await;
    prints(&process, &["1", "3*", "4*", "2"]).await;
    insert(&owner, 0, "last").await;
    prints(&process, &["1", "3*", "4*", "2", "5"]).await;
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    assert_eq!((marked(&process).len(), late_rows(&owner).await), (5, 2));
}

// Guarantee: late.start
#[tokio::test]
async fn cursor_that_begins_now_finds_what_commits_below_its_start_and_one_before_every_row_finds_nothing() {
    let database = database().await;
    let owner = swept(&database).await;
    insert(&owner, 0, "before the start").await;
    let now = printing(&database, "start = \"now\"");
    super::eventually(super::PATIENCE, async || {
        owner.query_opt("SELECT FROM outbox.cursor", &[]).await.unwrap().is_some()
    })
    .await;
    insert(&owner, 10, "dated back").await;
    prints(&now, &["2*"]).await;
    drop(now);
    run(&owner, "DELETE FROM outbox.dead_letter; DELETE FROM outbox.cursor").await;
    let beginning = printing(&database, "");
    prints(&beginning, &["2", "1"]).await;
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!((marked(&beginning).len(), late_rows(&owner).await), (2, 0));
}
