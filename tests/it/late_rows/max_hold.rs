//! `max_hold`: a transaction that stays open holds the rows of others for so long, and what it then commits comes late.

use std::collections::BTreeSet;
use std::time::Duration;

use outbox_testkit::bookings::{self, Load, Table, Writers};
use rustix::process::Signal;
use tokio_postgres::Client;

use super::sinks::accepted;
use super::{OWN, SWEPT, late_rows, prints, run, swept};
use crate::support::outside::{finding, get, halted, json, listener, marked, stdout_relay};
use crate::support::receiver::Receiver;
use crate::support::{
    CLOCK, Database, NOW, PATIENCE, Process, bookings, broker, database, eventually, kafka_relay, late_marks,
    outbox_relay, toml, unique,
};

const INSERT: &str = "INSERT INTO public.bookings (payload) VALUES ('p')";

/// A relay `late` that waits so long for one transaction.
fn waiting(longest: &str) -> String {
    stdout_relay("late", "").replacen("name = \"late\"", &format!("name = \"late\"\nmax_hold = \"{longest}\""), 1)
}

/// The table with this `created_at`, whose late rows are found, and a relay that waits for a second.
async fn relayed(database: &Database, created_at: &str) -> (Client, Process) {
    let owner = bookings(database, created_at).await;
    run(&owner, &format!("{SWEPT}; GRANT INSERT, SELECT ON public.bookings TO app")).await;
    (owner, Process::spawn(&toml(database, "relay_stats", None, &waiting("1s")), &["run"]))
}

// Guarantee: late.max-hold
#[tokio::test]
async fn rows_of_others_wait_no_longer_than_max_hold_and_what_the_transaction_commits_comes_late() {
    for created_at in [CLOCK, NOW] {
        let database = database().await;
        let (owner, process) = relayed(&database, created_at).await;
        let (writer, other) = (database.connect("app").await, database.connect("app").await);
        run(&writer, &format!("BEGIN; {INSERT}; {INSERT}")).await;
        run(&other, &format!("{INSERT}; {INSERT}")).await;
        prints(&process, &["3", "4"]).await;
        let text = toml(&database, "relay_stats", None, &waiting("1s"));
        let (_, status, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
        let horizon = &json(&status)["cursors"][0]["horizon"];
        let number = |key: &str| horizon[key].as_array().map_or(0, Vec::len);
        assert_eq!((number("held_by"), number("passed_over")), (0, 1), "{horizon}");
        let (_, why, _) = outbox_relay(&text, &["cursor", "why", "late"]).await;
        assert!(why.contains("is not waited for any longer (max_hold): what it commits comes late"), "{why}");
        assert!(
            process.log().contains("for longer than max_hold and is not waited for any longer"),
            "{}",
            process.log()
        );
        let metrics = get(&format!("{}/metrics", listener(&process).await)).await.1;
        let gauge = "outbox_relay_horizon_holders{cursor=\"late\",reason=\"max_hold\"} 1";
        assert!(metrics.lines().any(|line| line == gauge), "{metrics}");

        run(&writer, "COMMIT").await;
        prints(&process, &["3", "4", "1*", "2*"]).await;
        run(&other, INSERT).await;
        prints(&process, &["3", "4", "1*", "2*", "5"]).await;
        assert_eq!(late_rows(&owner).await, 2);
    }
}

// Guarantee: late.max-hold
#[tokio::test]
async fn prepared_transaction_is_passed_over_and_its_rows_come_late_after_a_restart_too() {
    let database = database().await;
    let (owner, process) = relayed(&database, CLOCK).await;
    let gid = format!("held_{}", database.name);
    run(&owner, &format!("BEGIN; {INSERT}; PREPARE TRANSACTION '{gid}'")).await;
    run(&owner, INSERT).await;
    prints(&process, &["2"]).await;
    process.signal(Signal::KILL);
    let again = Process::spawn(&toml(&database, "relay_stats", None, &waiting("1s")), &["run"]);
    run(&owner, INSERT).await;
    eventually(PATIENCE, async || marked(&again).contains(&"3".to_owned())).await;
    run(&owner, &format!("COMMIT PREPARED '{gid}'")).await;
    eventually(PATIENCE, async || marked(&again).contains(&"1*".to_owned())).await;
    assert_eq!(late_rows(&owner).await, 1);
}

// Guarantee: late.max-hold
#[tokio::test]
async fn transaction_that_ends_in_time_is_waited_for_and_nothing_comes_late() {
    let database = database().await;
    let owner = swept(&database).await;
    let process = Process::spawn(&toml(&database, "relay_stats", None, &waiting("5m")), &["run"]);
    let (writer, other) = (database.connect("app").await, database.connect("app").await);
    run(&writer, &format!("BEGIN; {INSERT}")).await;
    run(&other, INSERT).await;
    let text = toml(&database, "relay_stats", None, &waiting("5m"));
    let is_held =
        async || json(&outbox_relay(&text, &["status", "-o", "json"]).await.1)["cursors"][0]["state"] == "held";
    eventually(PATIENCE, is_held).await;
    tokio::time::sleep(Duration::from_secs(3)).await; // to see that it is waited for
    assert_eq!(marked(&process), Vec::<String>::new());
    run(&writer, "COMMIT").await;
    prints(&process, &["1", "2"]).await;
    assert_eq!(late_rows(&owner).await, 0);
}

// Guarantee: late.max-hold
#[tokio::test]
async fn max_hold_is_refused_where_late_rows_are_not_found_and_the_printed_sql_helps() {
    let database = database().await;
    let owner = bookings(&database, OWN).await;
    let text = toml(&database, "relay_stats", None, &waiting("10m"));
    let (code, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    let found = json(&out);
    let refused = finding(&found, "max_hold_unswept").unwrap_or_else(|| panic!("{out}"));
    assert_eq!((code, refused["level"].as_str()), (Some(3), Some("error")));
    assert!(refused["message"].as_str().unwrap().contains("it would be lost"), "{refused}");
    let process = Process::spawn(&text, &["run"]);
    eventually(PATIENCE, async || process.log().contains("max_hold_unswept")).await;
    assert_eq!(marked(&process), Vec::<String>::new());
    for sql in refused["fix_sql"].as_str().unwrap().split_inclusive(';') {
        owner.batch_execute(sql).await.unwrap();
    }
    let (_, out, _) = outbox_relay(&text, &["check", "-o", "json"]).await;
    assert!(finding(&json(&out), "max_hold_unswept").is_none(), "{out}");
    run(&owner, INSERT).await;
    prints(&process, &["1"]).await;
}

// Guarantee: late.max-hold
#[tokio::test(flavor = "multi_thread")]
async fn storm_of_long_transactions_that_are_passed_over_loses_no_row() {
    let (database, broker, topic) = (database().await, broker().await, unique("max-hold"));
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    run(&owner, SWEPT).await;
    broker.create_topic(&topic, 2, &[]).await.unwrap();
    let servers = broker.bootstrap_servers();
    let relay = kafka_relay("late", &topic, "max_hold = \"1s\"");
    let text = toml(&database, "relay_stats", Some(&servers), &relay);
    let mut replicas: Vec<Process> =
        (0..3).map(|n| Process::spawn(&text, &["run", "--replica-id", &format!("r{n}")])).collect();
    let load = Load {
        writers: 12,
        rows_per_second: Some(200.0),
        payload: 10..=200,
        longest_pause: Duration::from_secs(4),
        ..Load::default()
    };
    let writers = Writers::start(&database.url("app"), load).await.unwrap();
    for kill in 0..4 {
        tokio::time::sleep(Duration::from_millis(2_500)).await; // how long the storm lasts
        let replica = &mut replicas[kill % 3];
        replica.signal(Signal::KILL);
        replica.wait().await;
        *replica = Process::spawn(&text, &["run", "--replica-id", &format!("k{kill}")]);
    }
    writers.stop().await.unwrap().agrees_with(&bookings::committed(&owner).await.unwrap()).unwrap();
    let rows = owner.query("SELECT id::text FROM bookings", &[]).await.unwrap();
    let wanted: BTreeSet<String> = rows.iter().map(|row| row.get(0)).collect();
    let arrived = async || late_marks(&servers, &topic).await;
    eventually(PATIENCE * 6, async || arrived().await.len() >= wanted.len()).await;
    let marks = arrived().await;
    assert_eq!(marks.keys().cloned().collect::<BTreeSet<_>>(), wanted, "each committed row, and no other");
    let late = marks.values().filter(|marks| marks.contains(&true)).count();
    let both: Vec<_> = marks.iter().filter(|(_, marks)| marks.len() > 1).map(|(id, _)| id).collect();
    assert!(late > 0, "no transaction of the storm was passed over");
    assert_eq!(both, Vec::<&String>::new(), "delivered, and late after that");
}

// Guarantee: late.max-hold
#[tokio::test(flavor = "multi_thread")]
async fn adoption_while_a_transaction_is_passed_over_loses_none_of_its_rows() {
    let (database, before, after) = (database().await, Receiver::start(), Receiver::start());
    let owner = swept(&database).await;
    let text = |receiver: &Receiver| toml(&database, "relay_stats", None, &receiver.relay("r", "max_hold = \"1s\""));
    let mut process = Process::spawn(&text(&before), &["run"]);
    let (writer, other) = (database.connect("app").await, database.connect("app").await);
    run(&writer, &format!("BEGIN; {INSERT}")).await;
    run(&other, INSERT).await;
    eventually(PATIENCE * 2, async || accepted(&before) == ["2"]).await;
    let advanced = "SELECT count(*) FROM outbox.cursor WHERE position_id = '2' AND snapshot IS NOT NULL";
    eventually(PATIENCE, async || owner.query_one(advanced, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    process.signal(Signal::TERM);
    process.wait().await;

    let again = Process::spawn(&text(&after), &["run"]);
    run(&other, INSERT).await;
    let (_, error) = halted(&owner, "r").await;
    assert_eq!(error["code"], "identity_changed", "{error}");
    let adopt = ["cursor", "adopt", "r", "--yes", "--timeout", "20s"];
    let (code, out, log) = outbox_relay(&text(&after), &adopt).await;
    assert_eq!(code, Some(0), "{out}{log}");
    eventually(PATIENCE * 2, async || accepted(&after) == ["3"]).await;
    run(&writer, "COMMIT").await;
    eventually(PATIENCE * 2, async || accepted(&after).len() == 2).await;
    assert_eq!(accepted(&after), ["3", "1*"], "{}", again.log());
    assert_eq!(late_rows(&owner).await, 1);
}

// Guarantee: late.max-hold
#[tokio::test]
async fn skip_passes_no_row_that_a_passed_over_transaction_commits_before_the_message() {
    let database = database().await;
    let owner = swept(&database).await;
    let relay = waiting("1s").replacen("[relay.sink", "[relay.turn]\nmax_row_bytes = \"64KiB\"\n[relay.sink", 1);
    let text = toml(&database, "relay_stats", None, &relay);
    let process = Process::spawn(&text, &["run"]);
    run(&owner, INSERT).await;
    prints(&process, &["1"]).await;
    let (writer, other) = (database.connect("app").await, database.connect("app").await);
    run(&writer, &format!("BEGIN; {INSERT}")).await;
    run(&other, "INSERT INTO public.bookings (payload) VALUES (repeat('p', 100000))").await;
    let why = async || outbox_relay(&text, &["cursor", "why", "late"]).await.1;
    eventually(PATIENCE, async || why().await.contains("halted at message 3")).await;
    process.signal(Signal::KILL);

    // The operator looks before the transaction ends, and a turn carries the skip out after that.
    let (code, _, log) = outbox_relay(&text, &["cursor", "skip", "late", "--yes", "--no-wait"]).await;
    assert_eq!(code, Some(0), "{log}");
    run(&writer, "COMMIT").await;
    let again = Process::spawn(&text, &["run"]);
    prints(&again, &["2"]).await;
    let (code, _, log) = outbox_relay(&text, &["cursor", "skip", "late", "--id", "3", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    run(&other, INSERT).await;
    prints(&again, &["2", "4"]).await;
    assert_eq!(late_rows(&owner).await, 0);
}
