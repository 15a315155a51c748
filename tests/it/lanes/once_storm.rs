//! Lanes under `at_most_once`, under failures of all kinds: errors, hangs, messages that are refused for good, kills and stops
//! of three replicas, and connections that are ended.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;
use tokio_postgres::Client;

use super::checker::{Allowed, Arrival, Outcome, at_most_once};
use super::{Stage, committed, customer, position};
use crate::support::receiver::Request;
use crate::support::{PATIENCE, Process, eventually};

const IN_FLIGHT: usize = 8;
/// Reserved for each of them: what a cut lists as unknown.
const RESERVED: usize = 4;
const LANES: i64 = 40;
const ROUNDS: usize = 15;
const EACH: i64 = 200;
/// Longer than the relay's time-out.
const HANG: Duration = Duration::from_millis(1_500);

#[derive(Default)]
struct Inside {
    arrivals: Vec<Arrival>,
    attempts: HashMap<String, u32>,
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
        let (status, pause, outcome) = match random.u32(..1000) {
            _ if request.body.ends_with("bad") => (422, pause, Outcome::Refused),
            _ if inside.calm => (200, Duration::ZERO, Outcome::Accepted),
            0..40 => (503, pause, Outcome::Unclear),
            40..50 => (500, pause, Outcome::Unclear),
            // An answer that says so: it comes again.
            50..53 => (429, pause, Outcome::Refused),
            53..56 => (200, HANG, Outcome::Hung),
            _ => (200, pause, Outcome::Accepted),
        };
        let number = request.key.strip_prefix("h/").unwrap().parse().unwrap();
        let (lane, replayed) = (customer(request).to_owned(), request.replayed);
        inside.arrivals.push(Arrival { lane, number, outcome, replayed });
        (status, pause)
    }

    fn arrivals(&self) -> Vec<Arrival> {
        self.0.lock().unwrap().arrivals.clone()
    }
}

/// One fault of the replicas, by the round; says whether it may have cut a turn off.
async fn strike(
    (round, which): (usize, usize),
    replicas: &mut [Process; 3],
    owner: &Client,
    start: impl Fn(String) -> Process,
) -> bool {
    let again = |which: usize| start(format!("r{which}-{round}"));
    match round % 5 {
        0 => {
            replicas[which].signal(Signal::STOP);
            tokio::time::sleep(Duration::from_millis(300)).await;
            replicas[which].signal(Signal::CONT);
        }
        1 => {
            replicas[which].signal(Signal::TERM);
            replicas[which].wait().await;
            replicas[which] = again(which);
        }
        2 => {
            replicas.iter().for_each(|replica| replica.signal(Signal::KILL));
            for (which, replica) in replicas.iter_mut().enumerate() {
                replica.wait().await;
                *replica = again(which);
            }
        }
        3 => {
            let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                       WHERE datname = current_database() AND usename = 'relay'";
            eventually(PATIENCE, async || owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0).await;
        }
        _ => {
            replicas[which].signal(Signal::KILL);
            replicas[which].wait().await;
            replicas[which] = again(which);
        }
    }
    round % 5 >= 2
}

/// The ids of a list.
async fn ids(owner: &Client, sql: &str) -> BTreeSet<i64> {
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0).parse().unwrap()).collect()
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_no_row_comes_twice_through_errors_hangs_poison_and_kills() {
    let seed = std::env::var("STORM_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let stage = Stage::new().await;
    let (owner, log) = (&stage.owner, Log::default());
    let answers = log.clone();
    stage.receiver.answer(move |request| answers.answer(seed, request));
    let relay = "guarantee = \"at_most_once\"\non_poison = \"dead_letter\"\n";
    let text = stage.text(IN_FLIGHT, relay, "deadline = \"3s\"\n");
    let text = text.replace("[relay.sink.http]\n", "[relay.sink.http]\ntimeout = \"1s\"\n");
    let start = |name: String| Process::spawn(&text, &["run", "--replica-id", &name]);
    let mut replicas = [0, 1, 2].map(|n| start(format!("r{n}")));
    let insert = "INSERT INTO bookings (customer, payload) \
                  SELECT 'k' || n % $2, CASE WHEN n = ANY ($3) THEN 'bad' ELSE 'good' END FROM generate_series(1, $1::bigint) AS n";
    let rows = i64::try_from(ROUNDS).unwrap() * EACH;
    let is_done = async || position(owner).await == Some(rows.to_string());
    let (mut cuts, mut others) = (0, 0);
    for round in 0..ROUNDS {
        let poison: Vec<i64> = (1..=EACH).filter(|_| random.u8(..100) == 0).collect();
        owner.execute(insert, &[&EACH, &LANES, &poison]).await.unwrap();
        // A turn is under way.
        let at_least = log.arrivals().len() + 60;
        eventually(PATIENCE * 6, async || log.arrivals().len() >= at_least || is_done().await).await;
        tokio::time::sleep(Duration::from_micros(random.u64(0..30_000))).await;
        let cut = strike((round, random.usize(0..3)), &mut replicas, owner, start).await;
        (cuts, others) = (cuts + usize::from(cut), others + usize::from(!cut));
    }
    log.0.lock().unwrap().calm = true;
    eventually(PATIENCE * 12, is_done).await;
    drop(replicas);
    let arrivals = log.arrivals();
    let unknown = ids(owner, "SELECT key[1] FROM outbox.claim WHERE relay = 'h' AND state = 'unknown'").await;
    let dead = ids(owner, "SELECT message_id FROM outbox.dead_letter WHERE cursor = 'h'").await;
    let committed = committed(owner).await;
    let count = |outcome: Outcome| arrivals.iter().filter(|arrival| arrival.outcome == outcome).count();
    let [refused, unclear, hung] = [Outcome::Refused, Outcome::Unclear, Outcome::Hung].map(count);
    let (listed, letters) = (unknown.len(), dead.len());
    println!(
        "{rows} rows, {refused} refused, {unclear} unclear, {hung} hung, {cuts} cuts, {others} other faults; \
         {listed} unknown, {letters} dead"
    );
    // A cut lists all that was reserved; a turn that has taken too long, what was on its way. Dead letters are a list, too.
    let allowed = Allowed { listed: (cuts * RESERVED + others) * IN_FLIGHT + letters, ..Allowed::default() };
    let known = unknown.union(&dead).copied().collect();
    at_most_once(&committed, &arrivals, &known, allowed).acquits(seed);
    assert!(dead.is_disjoint(&unknown), "what was refused for good is not unknown");
    assert!(refused + unclear + hung + cuts + others >= 100, "too few faults to mean something");
}
