//! Order for each key, from several replicas.

use outbox_testkit::bookings::{CreatedAt, Layout, Table};
use rustix::process::Signal;

use super::{Stage, assert_faithful};
use crate::support::{PATIENCE, Process, eventually};

const SHARDS: u32 = 4;

async fn storm(table: Table) {
    let stage = Stage::new(table).await;
    stage.indexes(&[SHARDS]).await;
    let replicas = [stage.replica("r1", SHARDS), stage.replica("r2", SHARDS)];
    let writers = stage.load(Some(1_500.0)).await;
    stage.goes_on(3_000).await;
    let owner = stage.database.connect("postgres").await;
    let (rows, report) = stage.settle(writers).await;
    println!("{rows} rows");
    assert_faithful(&report, false);
    let busy = "SELECT count(*) FROM outbox.cursor WHERE relay = 'events' AND name LIKE 'events#%' AND position_id IS NOT NULL";
    assert_eq!(owner.query_one(busy, &[]).await.unwrap().get::<_, i64>(0), i64::from(SHARDS));
    drop(replicas);
}

// Guarantee: shards.load
#[tokio::test(flavor = "multi_thread")]
async fn four_shards_on_two_replicas_lose_and_repeat_nothing_and_keep_the_order_of_each_key() {
    storm(Table::PLAIN).await;
}

// Guarantee: shards.load
#[tokio::test(flavor = "multi_thread")]
async fn four_shards_of_a_partitioned_table_lose_and_repeat_nothing_and_keep_the_order_of_each_key() {
    storm(Table { created_at: CreatedAt::ClockTimestamp, layout: Layout::Hashes }).await;
}

// Guarantee: shards.kills
#[tokio::test(flavor = "multi_thread")]
async fn four_shards_lose_nothing_and_keep_the_order_of_each_key_when_replicas_are_killed() {
    let stage = Stage::new(Table::PLAIN).await;
    stage.indexes(&[SHARDS]).await;
    let mut replicas: Vec<Process> = (0..3).map(|n| stage.replica(&format!("r{n}"), SHARDS)).collect();
    let writers = stage.load(Some(1_000.0)).await;
    stage.goes_on(500).await;
    for round in 0..6 {
        let index = round % replicas.len();
        replicas[index].signal(Signal::KILL);
        replicas[index].wait().await;
        stage.goes_on(200).await;
        replicas[index] = stage.replica(&format!("r{index}-{round}"), SHARDS);
        stage.goes_on(200).await;
    }
    let (rows, report) = stage.settle(writers).await;
    println!("{rows} rows, {} duplicates", report.duplicates());
    assert_faithful(&report, true);
}

// Guarantee: shards.pause
#[tokio::test(flavor = "multi_thread")]
async fn a_paused_shard_holds_no_other_up_and_a_paused_relay_holds_all() {
    let stage = Stage::new(Table::PLAIN).await;
    stage.indexes(&[SHARDS]).await;
    let replica = stage.replica("r1", SHARDS);
    let writers = stage.load(Some(500.0)).await;
    stage.goes_on(200).await;
    let toml = stage.toml("relay", SHARDS);
    let verb = async |verb: &str, name: &str| {
        let (code, out, log) = crate::support::outbox_relay(&toml, &["cursor", verb, name]).await;
        assert_eq!(code, Some(0), "{log}");
        out
    };
    let out = verb("pause", "events#2").await;
    assert!(out.starts_with("events#2: paused") && out.lines().count() == 1, "{out}");
    stage.goes_on(200).await;
    let out = verb("pause", "events").await;
    assert_eq!(out.lines().count(), 4, "{out}");
    assert!(out.contains("events#2: paused already"), "{out}");
    let paused = "SELECT count(*) FROM outbox.control WHERE paused";
    assert_eq!(stage.owner.query_one(paused, &[]).await.unwrap().get::<_, i64>(0), 4);
    verb("resume", "events").await;
    stage.goes_on(200).await;
    let (_, report) = stage.settle(writers).await;
    assert_faithful(&report, false);
    drop(replica);
}

// Guarantee: shards.names
#[tokio::test(flavor = "multi_thread")]
async fn the_relays_name_stands_in_headers_and_the_cursors_in_status() {
    let stage = Stage::new(Table::PLAIN).await;
    stage.indexes(&[2]).await;
    let replica = stage.replica("r1", 2);
    let writers = stage.load(Some(200.0)).await;
    stage.goes_on(100).await;
    let relay = stage.consumer.look(|received| {
        let record = received.partitions.values().flatten().next().unwrap();
        record.headers.iter().find(|(name, _)| name == "relay").map(|(_, value)| value.clone())
    });
    assert_eq!(relay.as_deref(), Some("events"));
    writers.stop().await.unwrap();
    // Each counts its own rows only: an idle one is not behind indefinitely.
    eventually(PATIENCE, async || {
        let (code, out, log) = crate::support::outbox_relay(&stage.toml("relay", 2), &["status", "-o", "json"]).await;
        assert_eq!(code, Some(0), "{log}");
        let status: serde_json::Value = serde_json::from_str(&out).unwrap();
        let cursors = status["cursors"].as_array().unwrap();
        let names: Vec<_> = cursors.iter().map(|cursor| (&cursor["name"], &cursor["relay"])).collect();
        assert_eq!(serde_json::json!(names), serde_json::json!([["events#0", "events"], ["events#1", "events"]]));
        cursors.iter().all(|cursor| cursor["state"] == "idle" && cursor["backlog_rows"] == 0)
    })
    .await;
    drop(replica);
}
