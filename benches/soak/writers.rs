//! The application: concurrent writers, each on a connection of its own, at a rate that all of them share.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use fastrand::Rng;
use outbox_testkit::bookings::Written;
use outbox_testkit::postgres::connect;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_postgres::Client;
use tokio_util::sync::CancellationToken;

use super::draw::{Draw, Move};
use super::journal::Journal;
use super::moves::{Done, Moves};
use super::stage::Access;

/// How far the writers may fall behind their rate and still make up for it.
const CATCH_UP: Duration = Duration::from_millis(500);
/// How long a transaction may take before its connection is given up.
const LONGEST: Duration = Duration::from_secs(30);

/// Writers at work. Dropped, they stop at once.
#[derive(Debug)]
pub struct Writers {
    tasks: JoinSet<Written>,
    end: CancellationToken,
}

struct Writer {
    number: usize,
    url: String,
    draw: Arc<Draw>,
    random: Rng,
    next: Arc<Mutex<Instant>>,
    end: CancellationToken,
    journal: Journal,
}

impl Writers {
    /// Starts them.
    pub fn start(draw: &Draw, access: &Access, journal: &Journal) -> Self {
        let (draw, mut random) = (Arc::new(draw.clone()), Rng::with_seed(draw.seed ^ 0x5eed));
        let end = CancellationToken::new();
        let (next, mut tasks) = (Arc::new(Mutex::new(Instant::now())), JoinSet::new());
        for number in 0..draw.writers {
            let writer = Writer {
                number,
                url: access.url("app"),
                draw: Arc::clone(&draw),
                random: random.fork(),
                next: Arc::clone(&next),
                end: end.clone(),
                journal: journal.clone(),
            };
            tasks.spawn(writer.write());
        }
        Self { tasks, end }
    }

    /// Lets every writer end its transaction, and waits for them.
    pub async fn stop(mut self) -> anyhow::Result<Written> {
        self.end.cancel();
        let mut all = Written::default();
        while let Some(written) = self.tasks.join_next().await {
            let written = written.context("a writer has panicked")?;
            all.rows += written.rows;
            all.ids.extend(written.ids);
            all.transactions += written.transactions;
            all.rolled_back += written.rolled_back;
            all.unknown += written.unknown;
        }
        Ok(all)
    }
}

impl Writer {
    async fn write(mut self) -> Written {
        let mut written = Written::default();
        let mut moves = Moves::new(self.number, &self.draw, self.random.fork());
        let mut client: Option<Client> = None;
        while !self.end.is_cancelled() {
            let mut connected = match client.take() {
                Some(client) if !client.is_closed() => client,
                // PostgreSQL may be down on purpose: an application retries, too.
                Some(_) | None => match connect(&self.url).await {
                    Ok(connected) => connected,
                    Err(_) => {
                        self.unless_ended(Duration::from_millis(100)).await;
                        continue;
                    }
                },
            };
            moves.resolve(&connected).await;
            let (kind, rows) = (self.choose(), if self.random.u8(0..4) == 0 { self.random.usize(2..=8) } else { 1 });
            if !self.wait_for_turn(rows).await {
                break;
            }
            match tokio::time::timeout(LONGEST, moves.make(kind, rows, &mut connected)).await {
                Ok(Ok(Done::Committed(ids, rows))) => {
                    written.rows += rows;
                    written.ids.extend(ids);
                    written.transactions += 1;
                    client = Some(connected);
                }
                Ok(Ok(Done::RolledBack)) => {
                    written.rolled_back += 1;
                    client = Some(connected);
                }
                Ok(Err(error)) => {
                    written.unknown += 1;
                    self.journal.note(format!("writer {} {}: {}", self.number, kind.word(), describe(&error)));
                }
                Err(_) => {
                    written.unknown += 1;
                    self.journal.note(format!("writer {} {}: gave up after {LONGEST:?}", self.number, kind.word()));
                }
            }
        }
        written
    }

    /// Every other writer has no long transactions, so that rows pass those that come late.
    fn choose(&mut self) -> Move {
        let quick = |kind: &Move| matches!(kind, Move::Single | Move::Child | Move::Update);
        let moves = self.draw.moves.iter().copied().filter(|kind| self.number % 2 == 1 || quick(kind));
        self.random.choice(moves.collect::<Vec<_>>()).unwrap_or(Move::Single)
    }

    /// Waits until the rate allows these rows; false when the writers are to end.
    async fn wait_for_turn(&mut self, rows: usize) -> bool {
        let due = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            let due = (*next).max(Instant::now() - CATCH_UP);
            *next = due + Duration::from_secs_f64(rows as f64 / self.draw.rate);
            due
        };
        self.unless_ended(due.saturating_duration_since(Instant::now())).await;
        !self.end.is_cancelled()
    }

    async fn unless_ended(&self, pause: Duration) {
        if !pause.is_zero() {
            let _ = tokio::time::timeout(pause, self.end.cancelled()).await;
        }
    }
}

fn describe(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |told| format!("{} {}", told.code().code(), told.message()))
}
