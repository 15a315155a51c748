//! Concurrent writers, each on a connection of its own, until they are told to end.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use axum::body::Bytes;
use fastrand::Rng;
use futures_util::SinkExt;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_postgres::{Client, Transaction};
use tokio_util::sync::CancellationToken;

use super::Written;
use crate::postgres::connect;

const INSERT: &str = "INSERT INTO public.bookings (customer, region, phone, payload)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) RETURNING id";
const COPY: &str = "COPY public.bookings (customer, region, phone, payload) FROM STDIN";
/// How far the writers may fall behind their rate and still make up for it; beyond, it is lost.
const CATCH_UP: Duration = Duration::from_millis(500);
const REGIONS: [&str; 4] = ["north", "east", "south", "west"];

/// What the writers do.
#[derive(Clone, Debug)]
pub struct Load {
    /// How many write at once.
    pub writers: usize,
    /// Rows per second of all together; `None`: as fast as they can.
    pub rows_per_second: Option<f64>,
    /// Bytes of a payload; most are small (the mean of 100 B to 100 kB is 4 kB).
    pub payload: RangeInclusive<usize>,
    /// The longest pause inside a transaction; each fourth transaction of several statements makes one.
    pub longest_pause: Duration,
    /// The same seed, the same rows; their interleaving is the machine's.
    pub seed: u64,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            writers: 8,
            rows_per_second: Some(200.0),
            payload: 100..=100_000,
            longest_pause: Duration::from_millis(500),
            seed: 1,
        }
    }
}

/// Writers at work. Dropped, they stop at once, in the middle of their transactions.
#[derive(Debug)]
pub struct Writers {
    tasks: JoinSet<Written>,
    end: CancellationToken,
    committed: Arc<AtomicU64>,
    held: watch::Sender<bool>,
}

struct Writer {
    url: String,
    load: Arc<Load>,
    random: Rng,
    filler: Arc<str>,
    /// When the next rows of any writer are due.
    next: Arc<Mutex<Instant>>,
    held: watch::Receiver<bool>,
    committed: Arc<AtomicU64>,
    end: CancellationToken,
    written: Written,
}

/// What a transaction has done so far.
#[derive(Default)]
struct Draft {
    rows: u64,
    ids: Vec<i64>,
}

impl Writers {
    /// Starts them.
    ///
    /// # Errors
    /// When PostgreSQL refuses the first connection.
    pub async fn start(url: &str, load: Load) -> anyhow::Result<Self> {
        drop(connect(url).await.context("The writers cannot connect")?);
        let mut random = Rng::with_seed(load.seed);
        let filler: String = (0..load.payload.end() * 2).map(|_| random.alphanumeric()).collect();
        let (filler, load): (Arc<str>, _) = (filler.into(), Arc::new(load));
        let (next, held) = (Arc::new(Mutex::new(Instant::now())), watch::Sender::new(false));
        let (end, committed) = (CancellationToken::new(), Arc::new(AtomicU64::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..load.writers {
            let writer = Writer {
                url: url.to_owned(),
                load: Arc::clone(&load),
                random: random.fork(),
                filler: Arc::clone(&filler),
                next: Arc::clone(&next),
                held: held.subscribe(),
                committed: Arc::clone(&committed),
                end: end.clone(),
                written: Written::default(),
            };
            tasks.spawn(writer.write());
        }
        Ok(Self { tasks, end, committed, held })
    }

    /// Rows committed so far.
    #[must_use]
    pub fn committed(&self) -> u64 {
        self.committed.load(Ordering::Relaxed)
    }

    /// Whether the writers begin no further transactions for now, because a receiver does not keep up.
    pub fn hold(&self, held: bool) {
        self.held.send_replace(held);
    }

    /// Lets every writer end its transaction, and waits for them.
    ///
    /// # Errors
    /// When a writer has panicked.
    pub async fn stop(mut self) -> anyhow::Result<Written> {
        self.end.cancel();
        let mut all = Written::default();
        while let Some(written) = self.tasks.join_next().await {
            all.add(written.context("A writer has panicked")?);
        }
        Ok(all)
    }
}

impl Writer {
    async fn write(mut self) -> Written {
        let mut client: Option<Client> = None;
        while !self.end.is_cancelled() {
            let mut connected = match client.take() {
                Some(client) if !client.is_closed() => client,
                // PostgreSQL may be down on purpose: an application retries, too.
                Some(_) | None => match connect(&self.url).await {
                    Ok(connected) => connected,
                    Err(_) => {
                        self.unless_ended(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            let statements = self.statements();
            if !self.wait_for_turn(statements.iter().sum()).await {
                break;
            }
            if let Err(error) = self.transaction(&mut connected, &statements).await {
                tracing::debug!(%error, "a writer's transaction failed");
                self.written.unknown += 1;
            }
            client = Some(connected);
        }
        self.written
    }

    /// How many rows each statement of the next transaction has.
    fn statements(&mut self) -> Vec<usize> {
        let statements = if self.random.bool() { 1 } else { self.random.usize(1..=10) };
        (0..statements).map(|_| if self.random.u8(0..4) == 0 { self.random.usize(2..=8) } else { 1 }).collect()
    }

    /// Waits until the rate allows these rows; false when the writers are to end.
    async fn wait_for_turn(&mut self, rows: usize) -> bool {
        if let Some(rate) = self.load.rows_per_second {
            let due = {
                let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
                let due = (*next).max(Instant::now() - CATCH_UP);
                *next = due + Duration::from_secs_f64(rows as f64 / rate);
                due
            };
            self.unless_ended(due.saturating_duration_since(Instant::now())).await;
        }
        tokio::select! {
            () = self.end.cancelled() => {}
            // An error: nobody can hold the writers any more.
            _ = self.held.wait_for(|held| !held) => {}
        }
        !self.end.is_cancelled()
    }

    async fn unless_ended(&self, pause: Duration) {
        if !pause.is_zero() {
            let _ = tokio::time::timeout(pause, self.end.cancelled()).await;
        }
    }

    async fn transaction(&mut self, client: &mut Client, statements: &[usize]) -> Result<(), tokio_postgres::Error> {
        if let ([rows], true) = (statements, self.random.bool()) {
            // Without a transaction block: the shortest a writer can be.
            let columns = self.columns(*rows);
            let ids = client.query(INSERT, &columns.each_ref().map(|column| column as _)).await?;
            self.record(Draft { rows: ids.len() as u64, ids: ids.iter().map(|row| row.get(0)).collect() });
            return Ok(());
        }
        let pause_after = (self.random.u8(0..4) == 0).then(|| self.random.usize(0..statements.len()));
        let mut transaction = client.transaction().await?;
        let mut draft = Draft::default();
        for (number, &rows) in statements.iter().enumerate() {
            match self.random.u8(0..10) {
                0 => draft.rows += self.copy(&transaction, rows).await?,
                1 => {
                    let savepoint = transaction.savepoint("later_undone").await?;
                    self.insert(&savepoint, rows, &mut Draft::default()).await?;
                    savepoint.rollback().await?;
                }
                2 => {
                    let savepoint = transaction.savepoint("kept").await?;
                    self.insert(&savepoint, rows, &mut draft).await?;
                    savepoint.commit().await?;
                }
                _ => self.insert(&transaction, rows, &mut draft).await?,
            }
            if pause_after == Some(number) {
                // A part of the load, not a wait for something: this is what makes rows visible late.
                tokio::time::sleep(self.load.longest_pause.mul_f64(self.random.f64())).await;
            }
        }
        if self.random.u8(0..10) == 0 {
            transaction.rollback().await?;
            self.written.rolled_back += 1;
        } else {
            transaction.commit().await?;
            self.record(draft);
        }
        Ok(())
    }

    async fn insert(
        &mut self,
        transaction: &Transaction<'_>,
        rows: usize,
        draft: &mut Draft,
    ) -> Result<(), tokio_postgres::Error> {
        let columns = self.columns(rows);
        let ids = transaction.query(INSERT, &columns.each_ref().map(|column| column as _)).await?;
        draft.rows += ids.len() as u64;
        draft.ids.extend(ids.iter().map(|row| row.get::<_, i64>(0)));
        Ok(())
    }

    async fn copy(&mut self, transaction: &Transaction<'_>, rows: usize) -> Result<u64, tokio_postgres::Error> {
        let [customers, regions, phones, payloads] = self.columns(rows);
        let sink = transaction.copy_in::<_, Bytes>(COPY).await?;
        let mut sink = std::pin::pin!(sink);
        for row in 0..rows {
            // The values are letters, digits, `+` and `-`: nothing that COPY would read otherwise.
            let line = format!("{}\t{}\t{}\t{}\n", customers[row], regions[row], phones[row], payloads[row]);
            sink.send(Bytes::from(line)).await?;
        }
        sink.finish().await
    }

    fn columns(&mut self, rows: usize) -> [Vec<String>; 4] {
        let random = &mut self.random;
        let customers = (0..rows).map(|_| format!("customer-{}", random.u16(0..200))).collect();
        let regions = (0..rows).map(|_| REGIONS[random.usize(0..REGIONS.len())].to_owned()).collect();
        let phones = (0..rows).map(|_| format!("+1555{:07}", random.u32(0..10_000_000))).collect();
        let payloads = (0..rows)
            .map(|_| {
                let (least, most) = (*self.load.payload.start(), *self.load.payload.end());
                let size = least as f64 * (most as f64 / least as f64).powf(random.f64().powi(4));
                let size = (size as usize).clamp(least, most);
                let from = random.usize(0..=self.filler.len() - size);
                self.filler[from..from + size].to_owned()
            })
            .collect();
        [customers, regions, phones, payloads]
    }

    fn record(&mut self, draft: Draft) {
        self.committed.fetch_add(draft.rows, Ordering::Relaxed);
        self.written.add(Written { rows: draft.rows, ids: draft.ids, transactions: 1, ..Written::default() });
    }
}
