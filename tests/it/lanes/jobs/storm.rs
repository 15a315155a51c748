//! Lanes of jobs under failures of all kinds: errors, hangs, kills and stops of three replicas, and connections that are ended.

use std::time::Duration;

use fastrand::Rng;

use super::{Source, Stage, lane, number};
use crate::lanes::checker::{Allowed, Outcome, at_least_once};
use crate::lanes::storms::{self, Blow, Log, Mood, REPLICAS, Replicas, Script};
use crate::support::receiver::Request;
use crate::support::{PATIENCE, eventually};

/// Of each replica.
const IN_FLIGHT: usize = 12;
const LANES: i64 = 40;
const ROUNDS: usize = 10;
const EACH: i64 = 160;
/// Longer than the relay's time-out.
const HANG: Duration = Duration::from_millis(900);
/// One each round, in turn.
const BLOWS: [Blow; 4] = [Blow::Freeze(Duration::from_secs(3)), Blow::KillAll, Blow::Disconnect, Blow::Kill];

fn answer(random: &mut Rng, _: &Request, mood: Mood) -> (u16, Duration) {
    let pause = Duration::from_millis(random.u64(0..30));
    match random.u32(..1_000) {
        _ if mood.calm => (200, pause),
        0..40 => (503, pause),
        40..60 => (500, pause),
        60..63 => (429, pause),
        63..66 => (200, HANG),
        _ => (200, pause),
    }
}

async fn storm(source: Source) {
    let seed = storms::seed();
    let mut random = Rng::with_seed(seed);
    let stage = Stage::new(source).await;
    let of = |request: &Request| (lane(request).to_owned(), number(request));
    let log = Log::keep(&stage.receiver, seed, Script { hang: HANG, of, answer });
    let text = stage.text(IN_FLIGHT, ["", "deadline = \"1s\"", "timeout = \"500ms\""]);
    let mut replicas = Replicas::start(&text);
    for round in 0..ROUNDS {
        stage.add(EACH, LANES).await;
        let half = log.arrivals().len() + usize::try_from(EACH).unwrap() / 2;
        eventually(PATIENCE * 3, async || log.arrivals().len() >= half || stage.left().await == 0).await;
        let which = random.usize(..REPLICAS);
        replicas.strike(BLOWS[round % BLOWS.len()], (round, which), &stage.owner).await;
    }
    log.set(Mood { calm: true, ..Mood::default() });
    eventually(PATIENCE * 9, async || stage.left().await == 0).await;
    drop(replicas);
    let arrivals = log.arrivals();
    let jobs = ROUNDS * usize::try_from(EACH).unwrap();
    let committed = (1..=i64::try_from(jobs).unwrap()).map(|n| (n, format!("k{}", n % LANES))).collect();
    // Whatever was done to replicas may have interrupted all of them.
    let allowed = Allowed { repeated: ROUNDS * REPLICAS * IN_FLIGHT, ..Allowed::default() };
    let verdict = at_least_once(&committed, &arrivals, allowed);
    let failures = arrivals.iter().filter(|arrival| arrival.outcome != Outcome::Accepted).count();
    let repeated = verdict.repeated;
    println!("{source:?}: {jobs} jobs, {failures} failures, {repeated} repeated");
    verdict.acquits(seed);
    assert!(failures > 50, "{failures} failures: too few to mean something");
}

// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn each_lane_of_due_rows_keeps_its_order_through_errors_and_kills() {
    storm(Source::Due).await;
}

// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn each_lane_of_requests_keeps_its_order_through_errors_and_kills() {
    storm(Source::Requests).await;
}
