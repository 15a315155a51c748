//! Holders that are killed or frozen at random: nothing is sent twice, and what is missing is listed.

use std::time::Duration;

use rustix::process::Signal;

use super::Stage;
use crate::support::{PATIENCE, Process, eventually};

const KILLS: usize = 18;
const ROWS: i32 = 25;

/// Three replicas, killed at random instants, the holder more often than the others.
async fn survives_kills(stage: Stage, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut replicas: Vec<Process> = (0..3).map(|n| stage.replica(&format!("r{n}"))).collect();
    for kill in 0..KILLS {
        let before = stage.position().await.0;
        stage.insert(ROWS).await;
        let progress = before + random.i64(1..=i64::from(ROWS) / 2);
        eventually(PATIENCE * 6, async || stage.position().await.0 >= progress).await;
        let holder: Option<String> =
            stage.owner.query_one("SELECT advanced_by FROM outbox.cursor", &[]).await.unwrap().get(0);
        let named = holder.and_then(|holder| holder.strip_prefix('r')?.split('-').next()?.parse().ok());
        let index = named.filter(|_| random.bool()).unwrap_or_else(|| random.usize(0..3));
        // A turn takes some milliseconds: any instant of them.
        tokio::time::sleep(Duration::from_micros(random.u64(0..8_000))).await;
        replicas[index].signal(Signal::KILL);
        replicas[index].wait().await;
        replicas[index] = stage.replica(&format!("r{index}-{kill}"));
    }
    let rows = i64::from(ROWS) * i64::try_from(KILLS).unwrap();
    stage.settled(rows).await;
    let (missing, listed) = stage.holds(rows).await;
    println!("{KILLS} kills, {rows} rows: {missing} missing, {listed} listed as unknown");
}

// Guarantee: at-most-once.kills
#[tokio::test(flavor = "multi_thread")]
async fn killed_holders_send_nothing_twice_to_http_and_what_is_missing_is_listed() {
    survives_kills(Stage::http("").await, 5).await;
}

// Guarantee: at-most-once.kills
#[tokio::test(flavor = "multi_thread")]
async fn killed_holders_with_many_rows_in_flight_send_nothing_twice_to_http() {
    survives_kills(Stage::http("[relay.turn]\nrows = 10").await, 6).await;
}

// Guarantee: at-most-once.kills
#[tokio::test(flavor = "multi_thread")]
async fn killed_holders_send_nothing_twice_to_kafka_and_what_is_missing_is_listed() {
    survives_kills(Stage::kafka("[relay.turn]\nrows = 10").await, 7).await;
}

/// The holder is frozen until another replica has its lock and goes on; then it wakes.
async fn survives_freezing(stage: Stage) {
    let replicas: Vec<Process> = (0..2).map(|n| stage.replica(&format!("r{n}"))).collect();
    let mut random = fastrand::Rng::with_seed(9);
    let mut rows = 0;
    for _ in 0..4 {
        stage.insert(40).await;
        rows += 40;
        let progress = rows - 40 + random.i64(1..30);
        eventually(PATIENCE * 3, async || stage.position().await.0 >= progress).await;
        let holder: String = stage.owner.query_one("SELECT advanced_by FROM outbox.cursor", &[]).await.unwrap().get(0);
        let frozen = &replicas[usize::from(holder == "r1")];
        frozen.signal(Signal::STOP);
        stage.settled(rows).await;
        frozen.signal(Signal::CONT);
        // It has looked at the table since it woke: what it had in its hands then is out.
        stage.insert(1).await;
        rows += 1;
        stage.settled(rows).await;
    }
    let (missing, listed) = stage.holds_but_for_late_rows(rows).await;
    println!("frozen 4 times, {rows} rows: {missing} missing, {listed} listed as unknown");
}

// Guarantee: at-most-once.frozen
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_holder_that_wakes_after_its_lock_sends_nothing_twice_to_http() {
    survives_freezing(Stage::http("[relay.turn]\nrows = 5\ndeadline = \"1s\"").await).await;
}

// Guarantee: at-most-once.frozen
#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_holder_that_wakes_after_its_lock_sends_nothing_twice_to_kafka() {
    survives_freezing(Stage::kafka("[relay.turn]\nrows = 5\ndeadline = \"1s\"").await).await;
}
