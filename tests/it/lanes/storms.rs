//! What storms have in common: a seed, a receiver that fails by it and writes down what came, three replicas, and what is done to
//! them.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use rustix::process::Signal;
use tokio_postgres::Client;

use super::checker::{Arrival, Outcome};
use super::customer;
use crate::support::receiver::{Receiver, Request};
use crate::support::{PATIENCE, Process, eventually};

pub const REPLICAS: usize = 3;

/// `STORM_SEED`, or another each time.
pub fn seed() -> u64 {
    let seed = std::env::var("STORM_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("seed {seed}");
    seed
}

/// What the receiver goes by, beside the seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mood {
    /// Messages that are refused for good are accepted for now.
    pub cured: bool,
    /// Nothing fails any more.
    pub calm: bool,
}

/// What the receiver does.
#[derive(Clone, Copy)]
pub struct Script {
    /// Whose answer takes this long is not answered in time.
    pub hang: Duration,
    /// Lane and number of a message.
    pub of: fn(&Request) -> (String, i64),
    /// Status and pause of the answer, by what is drawn for the row and which attempt it is.
    pub answer: fn(&mut Rng, &Request, Mood) -> (u16, Duration),
}

#[derive(Default)]
struct Inside {
    arrivals: Vec<Arrival>,
    attempts: HashMap<i64, u32>,
    refused: usize,
    mood: Mood,
}

/// What has come to the receiver, written down when it came.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Inside>>);

impl Log {
    /// Has the receiver follow the script from now on.
    pub fn keep(receiver: &Receiver, seed: u64, script: Script) -> Self {
        let log = Self::default();
        let kept = log.clone();
        receiver.answer(move |request| kept.answer(seed, script, request));
        log
    }

    fn answer(&self, seed: u64, script: Script, request: &Request) -> (u16, Duration) {
        let mut inside = self.0.lock().unwrap();
        let (lane, number) = (script.of)(request);
        let attempt = inside.attempts.entry(number).or_default();
        *attempt += 1;
        let mut hasher = DefaultHasher::new();
        (seed, number, *attempt).hash(&mut hasher);
        let mut random = Rng::with_seed(hasher.finish());
        let (status, pause) = (script.answer)(&mut random, request, inside.mood);
        let outcome = match status {
            200 if pause == script.hang => Outcome::Hung,
            200 => Outcome::Accepted,
            422 | 429 => Outcome::Refused,
            _ => Outcome::Unclear,
        };
        inside.refused += usize::from(status == 422);
        inside.arrivals.push(Arrival { lane, number, outcome, replayed: request.replayed });
        (status, pause)
    }

    pub fn set(&self, mood: Mood) {
        self.0.lock().unwrap().mood = mood;
    }

    pub fn arrivals(&self) -> Vec<Arrival> {
        self.0.lock().unwrap().arrivals.clone()
    }

    /// How many messages were refused for good.
    pub fn refused(&self) -> usize {
        self.0.lock().unwrap().refused
    }
}

/// What is done to replicas.
#[derive(Clone, Copy, Debug)]
pub enum Blow {
    /// One stands still for this long.
    Freeze(Duration),
    /// One is told to end, and another starts.
    Stop,
    /// All are killed at the same time, and others start.
    KillAll,
    /// Every connection of the relay's is ended, also those that hold a lock or write a record.
    Disconnect,
    /// One is killed, and another starts.
    Kill,
}

impl Blow {
    /// Whether what is on its way may be cut off, and repeated.
    pub fn is_cut(self) -> bool {
        match self {
            Self::Freeze(_) | Self::Stop => false,
            Self::KillAll | Self::Disconnect | Self::Kill => true,
        }
    }
}

/// Processes of one configuration; they end when dropped.
pub struct Replicas {
    text: String,
    all: [Process; REPLICAS],
}

impl Replicas {
    pub fn start(text: &str) -> Self {
        let all = [0, 1, 2].map(|n| Process::spawn(text, &["run", "--replica-id", &format!("r{n}")]));
        Self { text: text.to_owned(), all }
    }

    /// Where one suffices, it is `which`. What starts then is named after the round.
    pub async fn strike(&mut self, blow: Blow, (round, which): (usize, usize), owner: &Client) {
        match blow {
            Blow::Freeze(pause) => {
                self.all[which].signal(Signal::STOP);
                tokio::time::sleep(pause).await;
                self.all[which].signal(Signal::CONT);
            }
            Blow::Stop => {
                self.all[which].signal(Signal::TERM);
                self.replace(round, which).await;
            }
            Blow::KillAll => {
                self.all.iter().for_each(|replica| replica.signal(Signal::KILL));
                for which in 0..REPLICAS {
                    self.replace(round, which).await;
                }
            }
            Blow::Disconnect => {
                let sql = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
                           WHERE datname = current_database() AND usename = 'relay'";
                // Replicas that were just started connect first.
                eventually(PATIENCE, async || owner.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0).await;
            }
            Blow::Kill => {
                self.all[which].signal(Signal::KILL);
                self.replace(round, which).await;
            }
        }
    }

    async fn replace(&mut self, round: usize, which: usize) {
        self.all[which].wait().await;
        let name = format!("r{which}-{round}");
        self.all[which] = Process::spawn(&self.text, &["run", "--replica-id", &name]);
    }
}

/// Of bookings, whose relay gives an answer up after a second.
pub fn impatient(text: &str) -> String {
    text.replace("[relay.sink.http]\n", "[relay.sink.http]\ntimeout = \"1s\"\n")
}

/// Longer than that.
pub const HANG: Duration = Duration::from_millis(1_500);

/// Lane and number of a booking.
pub fn booking(request: &Request) -> (String, i64) {
    (customer(request).to_owned(), request.key.strip_prefix("h/").unwrap().parse().unwrap())
}

/// So many bookings of so many customers in turn, about one in a hundred of which is bad: how many are.
pub async fn book_some_bad(owner: &Client, random: &mut Rng, (rows, lanes): (i64, i64)) -> usize {
    let insert = "INSERT INTO bookings (customer, payload) \
                  SELECT 'k' || n % $2, CASE WHEN n = ANY ($3) THEN 'bad' ELSE 'good' END FROM generate_series(1, $1::bigint) AS n";
    let bad: Vec<i64> = (1..=rows).filter(|_| random.u8(..100) == 0).collect();
    owner.execute(insert, &[&rows, &lanes, &bad]).await.unwrap();
    bad.len()
}
