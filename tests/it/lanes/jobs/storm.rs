//! Lanes of jobs under failures of all kinds: errors, hangs, kills and stops of three replicas, and connections that are ended.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;

use super::{Source, Stage, lane, number};
use crate::lanes::checker::{Allowed, Arrival, Outcome, at_least_once};
use crate::support::receiver::Request;
use crate::support::{PATIENCE, Process, eventually};

const REPLICAS: usize = 3;
/// Of each replica.
const IN_FLIGHT: usize = 12;
const LANES: i64 = 40;
const ROUNDS: usize = 10;
const EACH: i64 = 160;
/// Longer than the relay's time-out.
const HANG: Duration = Duration::from_millis(900);

/// What has come to the receiver, written down when it came.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Inside>>);

#[derive(Default)]
struct Inside {
    arrivals: Vec<Arrival>,
    attempts: HashMap<i64, u32>,
    failures: usize,
    /// Nothing fails any more.
    calm: bool,
}

impl Log {
    /// Decides by the seed, the job, and which attempt it is.
    fn answer(&self, seed: u64, request: &Request) -> (u16, Duration) {
        let mut inside = self.0.lock().unwrap();
        let attempt = inside.attempts.entry(number(request)).or_default();
        *attempt += 1;
        let mut hasher = DefaultHasher::new();
        (seed, number(request), *attempt).hash(&mut hasher);
        let mut random = fastrand::Rng::with_seed(hasher.finish());
        let pause = Duration::from_millis(random.u64(0..30));
        let (status, pause) = match random.u32(..1_000) {
            _ if inside.calm => (200, pause),
            0..40 => (503, pause),
            40..60 => (500, pause),
            60..63 => (429, pause),
            63..66 => (200, HANG),
            _ => (200, pause),
        };
        let outcome = match status {
            200 if pause == HANG => Outcome::Hung,
            200 => Outcome::Accepted,
            429 => Outcome::Refused,
            _ => Outcome::Unclear,
        };
        inside.failures += usize::from(outcome != Outcome::Accepted);
        let (lane, number, replayed) = (lane(request).to_owned(), number(request), request.replayed);
        inside.arrivals.push(Arrival { lane, number, outcome, replayed });
        (status, pause)
    }

    fn arrivals(&self) -> Vec<Arrival> {
        self.0.lock().unwrap().arrivals.clone()
    }
}

/// One fault of the replicas, by the round.
async fn strike(
    (round, which): (usize, usize),
    replicas: &mut [Process; REPLICAS],
    stage: &Stage,
    start: impl Fn(String) -> Process,
) {
    let again = |which: usize| start(format!("r{which}-{round}"));
    match round % 4 {
        0 => {
            replicas[which].signal(Signal::STOP);
            tokio::time::sleep(Duration::from_millis(3_000)).await;
            replicas[which].signal(Signal::CONT);
        }
        1 => {
            replicas.iter().for_each(|replica| replica.signal(Signal::KILL));
            for (which, replica) in replicas.iter_mut().enumerate() {
                replica.wait().await;
                *replica = again(which);
            }
        }
        2 => {
            let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                       WHERE datname = current_database() AND usename = 'relay'";
            eventually(PATIENCE, async || stage.owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0).await;
        }
        _ => {
            replicas[which].signal(Signal::KILL);
            replicas[which].wait().await;
            replicas[which] = again(which);
        }
    }
}

async fn storm(source: Source) {
    let seed = std::env::var("STORM_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let (stage, log) = (Stage::new(source).await, Log::default());
    let answers = log.clone();
    stage.receiver.answer(move |request| answers.answer(seed, request));
    let text = stage.text(IN_FLIGHT, ["", "deadline = \"1s\"", "timeout = \"500ms\""]);
    let start = |name: String| Process::spawn(&text, &["run", "--replica-id", &name]);
    let mut replicas = [0, 1, 2].map(|n| start(format!("r{n}")));
    for round in 0..ROUNDS {
        stage.add(EACH, LANES).await;
        let half = log.arrivals().len() + usize::try_from(EACH).unwrap() / 2;
        eventually(PATIENCE * 3, async || log.arrivals().len() >= half || stage.left().await == 0).await;
        strike((round, random.usize(..REPLICAS)), &mut replicas, &stage, start).await;
    }
    log.0.lock().unwrap().calm = true;
    eventually(PATIENCE * 9, async || stage.left().await == 0).await;
    drop(replicas);
    let arrivals = log.arrivals();
    let jobs = ROUNDS * usize::try_from(EACH).unwrap();
    let committed = (1..=i64::try_from(jobs).unwrap()).map(|n| (n, format!("k{}", n % LANES))).collect();
    // Whatever was done to replicas may have interrupted all of them.
    let allowed = Allowed { repeated: ROUNDS * REPLICAS * IN_FLIGHT, ..Allowed::default() };
    let verdict = at_least_once(&committed, &arrivals, allowed);
    let (repeated, failures) = (verdict.repeated, log.0.lock().unwrap().failures);
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
