//! Three replicas whose holder is killed again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use outbox_testkit::bookings::{self, Load, Table, Writers};
use outbox_testkit::delivery::{Delivery, Verdict, check, verdict};
use rustix::process::Signal;

use super::Stage;
use crate::support::{PATIENCE, Process, database, eventually};

const KILLS: usize = 4;
/// Of a turn; while a backlog is read it has four times as many.
const ROWS: usize = 50;

/// Kills the holder with SIGKILL, and starts another in its place.
async fn kill_holder(stage: &Stage, replicas: &mut Vec<(String, Process)>, round: usize) {
    let holder = stage.holder().await.expect("a holder");
    let index = replicas.iter().position(|(name, _)| *name == holder).expect("one of the three");
    let (_, mut killed) = replicas.swap_remove(index);
    killed.signal(Signal::KILL);
    assert_eq!(killed.wait().await, None, "{}", killed.log());
    let name = format!("r{index}-{round}");
    replicas.push((name.clone(), stage.replica(&name).await));
}

async fn three(stage: &Stage) -> Vec<(String, Process)> {
    let mut replicas = Vec::new();
    for name in ["a", "b", "c"] {
        replicas.push((name.to_owned(), stage.replica(name).await));
    }
    replicas
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_sink_loses_nothing_and_keeps_order_when_its_holders_are_killed() {
    let database = database().await;
    let owner = database.connect("postgres").await;
    Table::PLAIN.create(&owner).await.unwrap();
    let relay = format!(
        "start = \"beginning\"\n[relay.source.stream]\ntable = \"public.bookings\"\n[relay.turn]\nrows = {ROWS}"
    );
    let stage = Stage::of(database, owner, &relay);
    let mut replicas = three(&stage).await;
    let load = Load { rows_per_second: Some(400.0), payload: 100..=500, ..Load::default() };
    let writers = Writers::start(&stage.database.url("app"), load).await.unwrap();
    for round in 0..KILLS {
        let before = stage.socket.lines().len();
        eventually(PATIENCE * 6, async || stage.socket.lines().len() > before + 200 && stage.holder().await.is_some())
            .await;
        kill_holder(&stage, &mut replicas, round).await;
    }
    let written = writers.stop().await.unwrap();
    let committed = bookings::committed(&stage.owner).await.unwrap();
    written.agrees_with(&committed).unwrap();
    let report = || {
        let deliveries = stage.socket.ids().into_iter().map(|id| Delivery { id: id.to_string(), created_at: None });
        check(&committed, &BTreeMap::from([(0, deliveries.collect())]), &[])
    };
    eventually(PATIENCE * 6, async || report().distinct == committed.len()).await;
    let report = report();
    println!("{KILLS} kills, {} rows, {} duplicates", committed.len(), report.duplicates());
    assert_eq!(verdict(&committed, &[&report], true), Verdict::Pass, "{report:?}");
    assert!(report.strayed.is_empty(), "{report:?}");
    // What a holder had sent and not recorded, a turn's rows at most.
    assert!(report.duplicates() <= KILLS * 4 * ROWS, "{} duplicates", report.duplicates());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_own_sink_gets_nothing_twice_under_at_most_once_and_what_is_missing_is_listed() {
    let stage = Stage::of_bookings("guarantee = \"at_most_once\"\n[relay.turn]\nrows = 10").await;
    let mut random = fastrand::Rng::with_seed(11);
    let mut replicas = three(&stage).await;
    for round in 0..2 * KILLS {
        let before = stage.position().await.0;
        stage.insert(25, "seat").await;
        eventually(PATIENCE * 6, async || stage.position().await.0 >= before + 5).await;
        // A turn takes some milliseconds: any instant of them.
        tokio::time::sleep(Duration::from_micros(random.u64(0..8_000))).await;
        kill_holder(&stage, &mut replicas, round).await;
    }
    let rows = 25 * 2 * i64::try_from(KILLS).unwrap();
    stage.settled(rows).await;
    let arrived = stage.socket.ids();
    assert!(arrived.windows(2).all(|pair| pair[0] < pair[1]), "twice or out of order: {arrived:?}");
    let document = stage.json(&["request", "list", "--unknown", "-o", "json"]).await;
    let key = |request: &serde_json::Value| request["key"][0].as_str().unwrap().parse().unwrap();
    let unknown: BTreeSet<i64> = document["requests"].as_array().unwrap().iter().map(key).collect();
    let missing: BTreeSet<i64> = (1..=rows).filter(|id| !arrived.contains(id)).collect();
    println!("{} kills, {rows} rows: {} missing, {} listed as unknown", 2 * KILLS, missing.len(), unknown.len());
    assert!(missing.is_subset(&unknown), "missing and not listed: {:?}", missing.difference(&unknown));
}
