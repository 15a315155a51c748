//! Turns that read nothing: what that says, and for how long.
//!
//! A look that finds a new row begins a turn. Between the two, the tests hold that turn before its cursor's row
//! (`outbox.cursor` under EXCLUSIVE lets a look read, and a turn wait), and change the table.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use tokio_postgres::Client;

use super::run;
use crate::support::outside::{get, lines, listener};
use crate::support::{CLOCK, Database, PATIENCE, Process, bookings, database, eventually, toml};

/// Of a turn, unless configured.
const DEADLINE: Duration = Duration::from_secs(5);
const INSERT: &str = "INSERT INTO bookings DEFAULT VALUES";

/// A relay that has delivered row 1 and found row 2, with a turn that waits for the lock of the second client.
async fn turn_before_row_2(database: &Database) -> (Client, Client, Process) {
    let owner = bookings(database, CLOCK).await;
    let relay = "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.stdout]\n";
    let process = Process::spawn(&toml(database, "relay", None, relay), &["run"]);
    run(&owner, INSERT).await;
    let at = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = '1')";
    eventually(PATIENCE, || async { owner.query_one(at, &[]).await.unwrap().get(0) }).await;
    no_turn_follows(&listener(&process).await).await;
    let holding = database.connect("postgres").await;
    run(&holding, "BEGIN; LOCK TABLE outbox.cursor IN EXCLUSIVE MODE").await;
    run(&owner, INSERT).await;
    let waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE relation = 'outbox.cursor'::regclass AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    eventually(PATIENCE, || async { owner.query_one(waits, &[]).await.unwrap().get(0) }).await;
    (owner, holding, process)
}

async fn delivered(owner: &Client, id: &str) {
    let at = "SELECT EXISTS (SELECT FROM outbox.cursor WHERE position_id = $1)";
    eventually(PATIENCE, || async { owner.query_one(at, &[&id]).await.unwrap().get(0) }).await;
}

#[tokio::test]
async fn turn_cut_before_first_row_is_not_idle() {
    let database = database().await;
    let (owner, holding, process) = turn_before_row_2(&database).await;
    let locking = database.connect("postgres").await;
    run(&locking, "BEGIN; LOCK TABLE bookings IN ACCESS EXCLUSIVE MODE").await;
    run(&holding, "COMMIT").await;
    // Of a look, which waits for the same lock, the statement is another.
    let reads = "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' \
                 AND datname = current_database() AND application_name LIKE 'outbox-relay/%' AND query LIKE '%LOCK TABLE%')";
    eventually(PATIENCE, || async { owner.query_one(reads, &[]).await.unwrap().get(0) }).await;
    // The process wakes after the turn's deadline: that nothing was read until then says nothing about the table.
    process.signal(Signal::STOP);
    tokio::time::sleep(DEADLINE).await;
    process.signal(Signal::CONT);
    let cut = |line: &Value| line["message"] == "turn failed" && line["error"].to_string().contains("within 5s");
    eventually(PATIENCE, async || lines(&process).iter().any(cut)).await;
    run(&locking, "COMMIT").await;
    delivered(&owner, "2").await;
}

#[tokio::test]
async fn idle_turn_is_repeated_without_another_row() {
    let database = database().await;
    let (owner, holding, process) = turn_before_row_2(&database).await;
    let url = listener(&process).await;
    let sql = "SELECT created_at::text FROM bookings WHERE id = 2";
    let created_at: String = owner.query_one(sql, &[]).await.unwrap().get(0);
    let before = idle_turns(&url).await;
    run(&owner, "DELETE FROM bookings WHERE id = 2").await;
    run(&holding, "COMMIT").await;
    eventually(PATIENCE, async || idle_turns(&url).await > before).await;
    no_turn_follows(&url).await;
    // The row that the look saw is there again, and nothing but the end of the turn's memory leads to another turn.
    let again = format!("INSERT INTO bookings (id, created_at) OVERRIDING SYSTEM VALUE VALUES (2, '{created_at}')");
    run(&owner, &again).await;
    delivered(&owner, "2").await;
}

/// Waits until the turns that follow one another soon have ended: none is left that could meet a row by chance.
async fn no_turn_follows(url: &str) {
    let ended = async || {
        let turns = idle_turns(url).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        idle_turns(url).await == turns
    };
    eventually(PATIENCE, ended).await;
}

/// How many turns have found nothing.
async fn idle_turns(url: &str) -> u64 {
    let metric = "outbox_relay_turns_total{cursor=\"r\",result=\"idle\"} ";
    let metrics = get(&format!("{url}/metrics")).await.1;
    metrics.lines().find_map(|line| line.strip_prefix(metric)).map_or(0, |turns| turns.parse().unwrap())
}
