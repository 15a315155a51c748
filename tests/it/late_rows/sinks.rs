//! Late rows of every kind of sink and guarantee, and when something fails.

use std::time::Duration;

use rustix::process::Signal;
use tokio_postgres::Client;

use super::{LONG_ENOUGH, insert, late_rows, run, swept};
use crate::support::gateway::{Gateway, sms_relay};
use crate::support::receiver::Receiver;
use crate::support::{PATIENCE, Process, database, eventually, outbox_relay, toml};

/// The ids that it has accepted, with a star behind those that are marked late.
pub(super) fn accepted(receiver: &Receiver) -> Vec<String> {
    let accepted = receiver.requests().into_iter().filter(|request| request.status == 200);
    let id = |key: &str| key.rsplit('/').next().unwrap().to_owned();
    accepted
        .map(|request| id(&request.key) + if request.headers.contains_key("outbox-late") { "*" } else { "" })
        .collect()
}

async fn resolved(owner: &Client, state: &str) {
    let sql = "SELECT count(*) FROM outbox.dead_letter WHERE error ? 'late' AND state = $1";
    eventually(PATIENCE * 2, async || owner.query_one(sql, &[&state]).await.unwrap().get::<_, i64>(0) == 1).await;
}

// Guarantee: late.sinks
#[tokio::test(flavor = "multi_thread")]
async fn late_rows_come_by_http_under_both_guarantees_and_by_sms() {
    for guarantee in ["at_least_once", "at_most_once"] {
        let (database, receiver) = (database().await, Receiver::start());
        let owner = swept(&database).await;
        let relay = receiver.relay("r", &format!("guarantee = \"{guarantee}\""));
        let _process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
        insert(&owner, 0, "first").await;
        eventually(PATIENCE, async || accepted(&receiver) == ["1"]).await;
        insert(&owner, 10, "dated back").await;
        eventually(PATIENCE, async || accepted(&receiver) == ["1", "2*"]).await;
        resolved(&owner, "redriven").await;
        insert(&owner, 0, "second").await;
        eventually(PATIENCE, async || accepted(&receiver) == ["1", "2*", "3"]).await;
        tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
        assert_eq!((receiver.requests().len(), late_rows(&owner).await), (3, 1), "{guarantee}");
    }
    let (database, gateway) = (database().await, Gateway::start().await);
    let owner = swept(&database).await;
    run(&owner, "ALTER TABLE bookings ADD phone text DEFAULT '+15551234567'").await;
    let _process = Process::spawn(&toml(&database, "relay", None, &sms_relay("sms", &gateway, "")), &["run"]);
    insert(&owner, 0, "first").await;
    eventually(PATIENCE, async || gateway.accepted() == ["1"]).await;
    insert(&owner, 10, "dated back").await;
    eventually(PATIENCE, async || gateway.accepted() == ["1", "2"]).await;
    tokio::time::sleep(LONG_ENOUGH).await;
    assert_eq!(gateway.asked().len(), 2);
}

// Guarantee: late.in-database
#[tokio::test]
async fn late_row_changes_a_read_model_exactly_once() {
    let database = database().await;
    let owner = swept(&database).await;
    run(&owner, "CREATE TABLE model (id bigint PRIMARY KEY); GRANT INSERT, SELECT ON model TO relay").await;
    let relay = "[[relay]]\nname = \"r\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.sink.sql]\n\
                 statement = \"INSERT INTO public.model VALUES ($1)\"\nparameters = [\"id\"]\n";
    let _process = Process::spawn(&toml(&database, "relay", None, relay), &["run"]);
    let counted = async || owner.query_one("SELECT count(*) FROM model", &[]).await.unwrap().get::<_, i64>(0);
    insert(&owner, 0, "first").await;
    eventually(PATIENCE, async || counted().await == 1).await;
    insert(&owner, 10, "dated back").await;
    insert(&owner, 0, "second").await;
    eventually(PATIENCE, async || counted().await == 3).await;
    resolved(&owner, "redriven").await;
}

// Guarantee: late.failures
#[tokio::test(flavor = "multi_thread")]
async fn sink_that_refuses_in_the_middle_of_a_turn_and_a_kill_before_publishing_lose_and_repeat_no_late_row() {
    let (database, receiver) = (database().await, Receiver::start());
    let owner = swept(&database).await;
    let text = toml(&database, "relay", None, &receiver.relay("r", "[relay.turn]\nrows = 20"));
    let mut process = Process::spawn(&text, &["run"]);
    insert(&owner, 0, "first").await;
    eventually(PATIENCE, async || accepted(&receiver) == ["1"]).await;
    // The turn ends at the third row of five, and one that came late is there.
    receiver.answer(|request| (if request.body == "third" { 503 } else { 200 }, Duration::ZERO));
    let sql = "INSERT INTO bookings (created_at, payload) VALUES (clock_timestamp(), 'one'), (clock_timestamp(), 'two'), \
               (clock_timestamp(), 'third'), (clock_timestamp(), 'four'), (clock_timestamp() - interval '1 hour', 'late')";
    run(&owner, sql).await;
    eventually(PATIENCE, async || accepted(&receiver).len() >= 4).await;
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 2, async || accepted(&receiver).len() >= 6).await;
    let plain = |all: &[String]| all.iter().filter(|id| !id.ends_with('*')).cloned().collect::<Vec<_>>();
    assert_eq!(plain(&accepted(&receiver)), ["1", "2", "3", "4", "5"]);
    assert_eq!(accepted(&receiver).iter().filter(|id| *id == "6*").count(), 1);
    resolved(&owner, "redriven").await;
    run(&owner, "DELETE FROM outbox.dead_letter").await;

    // The row is written down, and its replica killed before the receiver takes it.
    receiver.answer(|request| (if request.headers.contains_key("outbox-late") { 503 } else { 200 }, Duration::ZERO));
    insert(&owner, 10, "dated back").await;
    resolved(&owner, "redriving").await;
    eventually(PATIENCE, async || receiver.requests().last().is_some_and(|request| request.status == 503)).await;
    process.signal(Signal::KILL);
    process.wait().await;
    receiver.answer(|_| (200, Duration::ZERO));
    let _process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE * 2, async || accepted(&receiver).last().is_some_and(|id| id == "7*")).await;
    resolved(&owner, "redriven").await;
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    assert_eq!(accepted(&receiver).len(), 7);
}

// Guarantee: late.shards
#[tokio::test]
async fn late_row_comes_from_the_shard_of_its_key_alone() {
    let database = database().await;
    let owner = swept(&database).await;
    let relay = super::stdout_relay("late", "shards = 4\nshard_key = \"customer\"");
    let (code, out, log) =
        outbox_relay(&toml(&database, "postgres", None, &relay), &["migrate", "up", "--indexes"]).await;
    assert_eq!(code, Some(0), "{out} {log}");
    let process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    let rows = "INSERT INTO bookings (created_at, customer) SELECT clock_timestamp() - make_interval(mins => $1), 'c' || n \
                FROM generate_series(1, 20) AS n";
    owner.execute(rows, &[&0]).await.unwrap();
    eventually(PATIENCE * 2, async || super::marked(&process).len() >= 20).await;
    owner.execute(rows, &[&10]).await.unwrap();
    eventually(PATIENCE * 2, async || super::marked(&process).len() >= 40).await;
    tokio::time::sleep(LONG_ENOUGH).await; // nothing comes twice
    let mut late: Vec<String> = super::marked(&process)[20..].to_vec();
    late.sort_by_key(|id| id.trim_end_matches('*').parse::<u32>().unwrap());
    assert_eq!(late, (21..=40).map(|id| format!("{id}*")).collect::<Vec<_>>());
}
