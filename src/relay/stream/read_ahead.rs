//! Rows that are being read, on a task and a connection of their own: for the turn that has the lock, or ahead, for the
//! next turn, after the position where it should find its cursor.
//!
//! Promise: what was read ahead is published only by a turn that has the lock and found its cursor exactly where the rows
//! begin, on a table with no partition that is new to the cursor, and no later than a turn may read. Its horizon was
//! computed before its snapshot was taken, and a horizon stays true, so that nothing between the two can have been missed;
//! everything else that may forbid publishing is in the cursor's row, and the turn has just read that.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::batch::Batch;
use crate::cursor::LockedCursor;
use crate::database::{Error, Fragile, Server};
use crate::late::{Opened, Swept};
use crate::position::{Position, Timestamp};
use crate::relay::engine::Engine;
use crate::relay::engine::deadline::within;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::learned::Learned;
use crate::source::fetch::{self, Budget, FetchError, Fetched, Giver, Request, Room, SweepRequest, Taker};
use crate::source::watcher::Sighting;

mod chain;

pub(in crate::relay) use chain::Chain;

/// So many rows are read at least where some may be passed without being published.
pub(in crate::relay) const LEAST: usize = 500;

/// The table's own oid and the relations that a cursor has known.
pub(in crate::relay) type Relations = (u32, BTreeSet<u32>);

/// See the module.
#[derive(Debug)]
pub(in crate::relay) struct Ahead {
    after: Option<Position>,
    swept: Option<Swept>,
    /// The most rows.
    pub(in crate::relay) most: usize,
    /// By how much turns were larger than configured then.
    pub(in crate::relay) growth: usize,
    begun: Instant,
    scanned: oneshot::Receiver<Sighting>,
    /// The rows as they come.
    pub(in crate::relay) rows: BatchStream,
    /// How the reading ends.
    pub(in crate::relay) end: ReadHandle,
}

/// What to read.
#[derive(Clone, Debug)]
pub(in crate::relay) struct ReadPlan {
    /// After which position.
    pub(in crate::relay) after: Option<Position>,
    /// Up to where the late rows at or below it have been found.
    pub(in crate::relay) swept: Option<Swept>,
    /// What the cursor has known; none ahead of the lock, where nobody can say yet.
    pub(in crate::relay) known: Option<Relations>,
    /// The most rows.
    pub(in crate::relay) most: usize,
    /// How far it is safe to read; none: that is found out first.
    pub(in crate::relay) sighting: Option<Sighting>,
    /// What the relay has learned so far.
    pub(in crate::relay) learned: Learned,
}

/// Rows as they come.
#[derive(Debug)]
pub(in crate::relay) struct BatchStream {
    first: Option<(Batch, Room)>,
    batches: Taker,
}

/// How a reading ends. Dropped before it has, the reading is given up and its connection closed.
#[derive(Debug)]
pub(in crate::relay) struct ReadHandle {
    outcome: oneshot::Receiver<Result<Fetched, FetchError>>,
    known: bool,
    task: JoinHandle<()>,
}

impl Ahead {
    /// Starts to read.
    pub(in crate::relay) fn start(engine: &Arc<Engine>, ready: &Arc<PreparedStream>, plan: ReadPlan) -> Self {
        let (batches, rows) = fetch::handoff(ready.config.turn.bytes);
        let (tell, scanned) = oneshot::channel();
        let (ended, outcome) = oneshot::channel();
        let (after, swept, most, growth) = (plan.after.clone(), plan.swept.clone(), plan.most, plan.learned.growth);
        let (engine, ready) = (Arc::clone(engine), Arc::clone(ready));
        // Boxed: a task is moved several times before it has a place of its own.
        let task = tokio::spawn(Box::pin(async move {
            let mut batches = batches;
            let (outcome, reader) = match read(&engine, &ready, plan, &mut batches, tell).await {
                Ok((fetched, reader)) => (Ok(fetched), Some(reader)),
                Err(error) => (Err(error), None),
            };
            let fetched = outcome.as_ref().ok().cloned();
            let last = batches.into_last();
            // Nobody need wait until the transaction has ended.
            let _ = ended.send(outcome);
            if let (Some(fetched), Some(reader)) = (fetched, reader)
                && let Err(error) = within(&engine, fetch::end(reader, &fetched)).await
            {
                tracing::debug!(%error, "a reading connection ended");
            }
            if let Some(last) = last {
                last.give();
            }
        }));
        let rows = BatchStream { first: None, batches: rows };
        Self {
            after,
            swept,
            most,
            growth,
            begun: Instant::now(),
            scanned,
            rows,
            end: ReadHandle { outcome, known: false, task },
        }
    }

    /// Whether the turn that has locked `cursor`, and may take `most` rows, may publish it.
    pub(in crate::relay) fn fits(&self, cursor: &LockedCursor, ready: &PreparedStream, most: usize) -> bool {
        let shape = &ready.shape;
        let known =
            cursor.relations.as_ref().is_some_and(|(root, known)| *root == shape.root && shape.descendants == *known);
        // Late rows are those of one position and one snapshot: those that the cursor has.
        let place = self.after == cursor.position && (shape.sweep.is_none() || self.swept == cursor.swept);
        known && place && self.most <= most && self.begun.elapsed() <= ready.config.turn.time
    }

    /// How far it was safe to read.
    pub(in crate::relay) async fn sighting(&mut self) -> Result<Sighting, FetchError> {
        match (&mut self.scanned).await {
            Ok(sighting) => Ok(sighting),
            Err(_) => Err(self.end.wait().await.err().unwrap_or_else(gone)),
        }
    }

    /// Whether there is a row at all, or one that came late or may be found by the next reading.
    pub(in crate::relay) async fn found(&mut self) -> Result<bool, FetchError> {
        if self.rows.opened().await.is_some_and(|opened| opened.part || !opened.late.is_empty()) {
            return Ok(true);
        }
        self.rows.first = self.rows.batches.next().await;
        if self.rows.first.is_some() { Ok(true) } else { self.end.wait().await.map(|_| false) }
    }
}

impl BatchStream {
    /// What was seen before the first of them; none when the reading has failed before.
    pub(in crate::relay) async fn opened(&mut self) -> Option<&Opened> {
        self.batches.opened().await
    }

    /// The next rows, and the room to give back when they have been published; none when there are no more.
    pub(in crate::relay) async fn next(&mut self) -> Option<(Batch, Room)> {
        match self.first.take() {
            Some(first) => Some(first),
            None => self.batches.next().await,
        }
    }

    /// No more are wanted.
    pub(in crate::relay) fn close(&mut self) {
        self.batches.close();
    }
}

impl ReadHandle {
    /// Waits for it.
    pub(in crate::relay) async fn wait(&mut self) -> Result<Fetched, FetchError> {
        let outcome = (&mut self.outcome).await;
        self.known = true;
        outcome.unwrap_or_else(|_| Err(gone()))
    }
}

impl Drop for ReadHandle {
    fn drop(&mut self) {
        if !self.known {
            self.task.abort();
        }
    }
}

fn gone() -> FetchError {
    FetchError::Database(Error::Pool("the reading task has ended".to_owned()))
}

/// A scan that goes on to its end whoever waits for it: one that is cut takes what the watcher remembers with it, of all
/// tables.
async fn scan(engine: &Arc<Engine>, ready: &Arc<PreparedStream>) -> Result<Sighting, Error> {
    let (engine, ready) = (Arc::clone(engine), Arc::clone(ready));
    let scan = tokio::spawn(async move { engine.watcher.scan(&ready.shape).await });
    scan.await.unwrap_or_else(|_| Err(Error::Pool("the scan has ended".to_owned())))
}

async fn read(
    engine: &Arc<Engine>,
    ready: &Arc<PreparedStream>,
    plan: ReadPlan,
    batches: &mut Giver,
    tell: oneshot::Sender<Sighting>,
) -> Result<(Fetched, Fragile), FetchError> {
    let reader = Fragile::new(engine.connection().await?);
    let sighting = match plan.sighting {
        Some(sighting) => sighting,
        None => scan(engine, ready).await?,
    };
    let safe = (sighting.horizon.at, Arc::clone(&sighting.server));
    // Whoever started it may have gone on without it.
    let _ = tell.send(sighting);
    let from = (plan.after.as_ref(), plan.swept.as_ref());
    let request = request(ready, &plan.learned, from, plan.known.as_ref(), (safe.0, &safe.1), plan.most);
    let fetched = fetch::fetch(&reader, request, batches).await?;
    Ok((fetched, reader))
}

/// What to read of a relay's table: at most `most` rows after a position, and those that came late at or below it.
pub(in crate::relay) fn request<'a>(
    ready: &'a PreparedStream,
    learned: &Learned,
    (after, swept): (Option<&'a Position>, Option<&'a Swept>),
    known: Option<&'a Relations>,
    (horizon, server): (Timestamp, &'a Server),
    most: usize,
) -> Request<'a> {
    let turn = ready.config.turn;
    Request {
        shape: &ready.shape,
        server,
        fields: &ready.fields,
        texts: &ready.texts,
        typed: ready.sink.is_typed(),
        after,
        sweep: swept.map(|swept| SweepRequest { cursor: &ready.config.name, swept, parts: learned.parts(ready) }),
        horizon,
        known: known.map(|(_, known)| known),
        root: known.map(|(root, _)| *root),
        budget: Budget {
            rows: most
                .min(learned.most_rows(ready).max(if ready.may_pass_rows() { LEAST } else { 0 }).max(ready.window())),
            bytes: learned.most_bytes(ready),
            page: turn.bytes,
            time: turn.time,
        },
        sizes: learned.sizes,
        alone: learned.alone(ready),
    }
}

/// Begins to read what the next turn should find after this one, unless connections are waited for or the next turn is not
/// to follow immediately.
pub(in crate::relay) fn read_on(
    engine: &Arc<Engine>,
    ready: &Arc<PreparedStream>,
    learned: Learned,
    fetched: &Fetched,
    most: usize,
) -> Option<Ahead> {
    let waits = engine.is_crowded()
        || engine.stop.is_cancelled()
        || learned.suspects > 0
        || learned.slow
        || ready.sink.min_interval().is_some()
        || ready.status.circuit_open();
    let after = fetched.last.clone().filter(|_| fetched.more && !waits)?;
    // Both stand in the cursor when the turn that has read them advances over all of its rows.
    let swept = fetched.snapshot.clone().and_then(|snapshot| ready.shape.swept(snapshot));
    let plan = ReadPlan { after: Some(after), swept, known: None, most, sighting: None, learned };
    Some(Ahead::start(engine, ready, plan))
}
