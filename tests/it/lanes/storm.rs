//! Lanes under failures of all kinds: errors, hangs, messages that are refused for good, kills of three replicas, and connections that
//! are ended.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use tokio_postgres::Client;

use super::checker::{Allowed, Arrival, Outcome, at_least_once};
use super::{Stage, ahead, committed, customer, position};
use crate::support::receiver::Request;
use crate::support::{PATIENCE, Process, eventually, outbox_relay};

const IN_FLIGHT: usize = 12;
const LANES: i64 = 60;
const ROUNDS: usize = 15;
const EACH: i64 = 300;
/// An operator's rows in one turn: what a kill repeats of them.
const REDRIVEN: usize = 100;
/// Longer than the relay's time-out.
const HANG: Duration = Duration::from_millis(1_500);

#[derive(Default)]
struct Inside {
    arrivals: Vec<Arrival>,
    attempts: HashMap<String, u32>,
    /// How many messages were refused for good.
    refused: usize,
    /// Messages that are refused for good are accepted for now.
    cured: bool,
    /// Nothing fails any more.
    calm: bool,
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Inside>>);

impl Log {
    /// Decides by the seed, the row, and which attempt it is.
    fn answer(&self, seed: u64, request: &Request) -> (u16, Duration) {
        let mut inside = self.0.lock().unwrap();
        let attempt = inside.attempts.entry(request.key.clone()).or_default();
        *attempt += 1;
        let mut hasher = DefaultHasher::new();
        (seed, &request.key, *attempt).hash(&mut hasher);
        let mut random = fastrand::Rng::with_seed(hasher.finish());
        let pause = Duration::from_millis(random.u64(0..15));
        let is_bad = request.body.ends_with("bad") && !inside.cured;
        let (status, pause) = match random.u32(..1000) {
            _ if is_bad => (422, pause),
            _ if inside.calm => (200, Duration::ZERO),
            0..100 => (503, pause),
            100..106 => (429, pause),
            106..136 => (500, pause),
            136..138 => (200, HANG),
            _ if customer(request) == "k7" && random.bool() => (502, pause),
            _ => (200, pause),
        };
        let number = request.key.strip_prefix("h/").unwrap().parse().unwrap();
        let outcome = match status {
            200 if pause == HANG => Outcome::Hung,
            200 => Outcome::Accepted,
            422 | 429 => Outcome::Refused,
            _ => Outcome::Unclear,
        };
        inside.refused += usize::from(status == 422);
        let lane = customer(request).to_owned();
        inside.arrivals.push(Arrival { lane, number, outcome, replayed: request.replayed });
        (status, pause)
    }

    fn set(&self, (cured, calm): (bool, bool)) {
        let mut inside = self.0.lock().unwrap();
        (inside.cured, inside.calm) = (cured, calm);
    }

    fn arrivals(&self) -> Vec<Arrival> {
        self.0.lock().unwrap().arrivals.clone()
    }

    fn refused(&self) -> usize {
        self.0.lock().unwrap().refused
    }

    /// How many different rows were accepted.
    fn distinct(&self) -> usize {
        let inside = self.0.lock().unwrap();
        let accepted = inside.arrivals.iter().filter(|arrival| arrival.outcome.is_accepted());
        accepted.map(|arrival| arrival.number).collect::<HashSet<_>>().len()
    }
}

/// What was done to the replicas.
#[derive(Debug, Default)]
struct Faults {
    /// Kills and ended connections: each may repeat what was on its way.
    cuts: usize,
    /// Those that repeat nothing.
    others: usize,
}

async fn redrive(text: &str) {
    let (code, _, log) = outbox_relay(text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
}

/// Ends every connection of the relay's, also those that hold a lock or write a record. Replicas that were just started connect first.
async fn end_connections(owner: &Client) {
    let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
               WHERE datname = current_database() AND usename = 'relay'";
    eventually(PATIENCE, async || owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0).await;
}

/// One fault of the replicas, by the round.
async fn strike(
    (round, which): (usize, usize),
    replicas: &mut [Process; 3],
    owner: &Client,
    start: impl Fn(String) -> Process,
    faults: &mut Faults,
) {
    let again = |which: usize| start(format!("r{which}-{round}"));
    match round % 5 {
        0 => {
            replicas[which].signal(Signal::STOP);
            tokio::time::sleep(Duration::from_millis(300)).await;
            replicas[which].signal(Signal::CONT);
            faults.others += 1;
        }
        1 => {
            replicas[which].signal(Signal::TERM);
            replicas[which].wait().await;
            replicas[which] = again(which);
            faults.others += 1;
        }
        2 => {
            replicas.iter().for_each(|replica| replica.signal(Signal::KILL));
            for (which, replica) in replicas.iter_mut().enumerate() {
                replica.wait().await;
                *replica = again(which);
            }
            faults.cuts += 1;
        }
        3 => {
            end_connections(owner).await;
            faults.cuts += 1;
        }
        _ => {
            replicas[which].signal(Signal::KILL);
            replicas[which].wait().await;
            replicas[which] = again(which);
            faults.cuts += 1;
        }
    }
}

// Guarantee: lanes.order
// Guarantee: lanes.crash
// Guarantee: lanes.poison
#[tokio::test(flavor = "multi_thread")]
async fn each_lane_keeps_its_order_through_errors_hangs_poison_and_kills() {
    let seed = std::env::var("STORM_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let stage = Stage::new().await;
    let (owner, log) = (&stage.owner, Log::default());
    let answers = log.clone();
    stage.receiver.answer(move |request| answers.answer(seed, request));
    let text = stage.text(IN_FLIGHT, "on_poison = \"park_key\"\n", "deadline = \"2s\"\n");
    let text = text.replace("[relay.sink.http]\n", "[relay.sink.http]\ntimeout = \"1s\"\n");
    let start = |name: String| Process::spawn(&text, &["run", "--replica-id", &name]);
    let mut replicas = [0, 1, 2].map(|n| start(format!("r{n}")));
    let insert = "INSERT INTO bookings (customer, payload) \
                  SELECT 'k' || n % $2, CASE WHEN n = ANY ($3) THEN 'bad' ELSE 'good' END FROM generate_series(1, $1::bigint) AS n";
    let (mut faults, mut bad) = (Faults::default(), 0);
    for round in 0..ROUNDS {
        let poison: Vec<i64> = (1..=EACH).filter(|_| random.u8(..100) == 0).collect();
        bad += poison.len();
        owner.execute(insert, &[&EACH, &LANES, &poison]).await.unwrap();
        log.set((round % 3 == 2, false));
        if round % 2 == 1 {
            redrive(&text).await;
        }
        // What came before is passed: refused rows are dead letters, and their lanes are parked.
        let before = i64::try_from(round).unwrap() * EACH;
        eventually(PATIENCE * 6, async || passed(owner).await >= before).await;
        strike((round, random.usize(0..3)), &mut replicas, owner, start, &mut faults).await;
    }
    log.set((true, true));
    let rows = ROUNDS * usize::try_from(EACH).unwrap();
    eventually(PATIENCE * 12, async || {
        redrive(&text).await;
        log.distinct() == rows
    })
    .await;
    eventually(PATIENCE * 4, async || position(owner).await == Some(rows.to_string()) && nothing_waits(owner).await)
        .await;
    drop(replicas);
    let arrivals = log.arrivals();
    let Faults { cuts, others } = faults;
    // Each cut may repeat what was on its way.
    let allowed = Allowed { repeated: cuts * IN_FLIGHT, replayed: cuts * REDRIVEN, ..Allowed::default() };
    let verdict = at_least_once(&committed(owner).await, &arrivals, allowed);
    let failures = arrivals.iter().filter(|arrival| arrival.outcome != Outcome::Accepted).count();
    let redriven = arrivals.iter().filter(|arrival| arrival.replayed && arrival.outcome.is_accepted()).count();
    let (refused, repeated, again) = (log.refused(), verdict.repeated, verdict.replayed);
    println!(
        "{rows} rows, {failures} failures ({refused} refusals of {bad} rows), {cuts} cuts, {others} other faults; \
         {repeated} repeated, {redriven} redriven, {again} of them again"
    );
    verdict.acquits(seed);
    assert!(failures + cuts + others >= 500, "too few faults to mean something");
    assert!(refused > 0 && redriven > bad / 4, "too little was parked and redriven to mean something");
    assert!(ahead(owner).await <= 1_000);
}

/// The id of the row that the cursor stands at.
async fn passed(owner: &Client) -> i64 {
    position(owner).await.map_or(0, |id| id.parse().unwrap())
}

/// No dead letter and no parked row is left.
async fn nothing_waits(owner: &Client) -> bool {
    let sql = "SELECT (SELECT count(*) FROM outbox.dead_letter WHERE state IN ('dead', 'redriving')) \
               + (SELECT count(*) FROM outbox.parked) + (SELECT count(*) FROM outbox.parked_key)";
    owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) == 0
}
