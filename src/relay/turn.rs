//! One turn: lock, fetch, publish, advance, commit.
//!
//! Promise: what is advanced over has been acknowledged; what was acknowledged is advanced over unless the database
//! fails, and then it is published again, in order, with the same ids. Publishing stops at once when the lock is lost,
//! at the turn's deadline, or when the grace period of a shutdown ends.

use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio_util::sync::CancellationToken;

use super::Ready;
use crate::batch::Batch;
use crate::cursor::{Advance, LockedCursor};
use crate::database::{self, Error, Loan};
use crate::position::{Position, Timestamp};
use crate::sink::{Failure, Flow, Publication, Published};
use crate::source::fetch::{Budget, FetchError, Fetched, Request, fetch};
use crate::source::watcher::Sighting;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Another holder has the cursor.
    Busy,
    /// An operator has paused it.
    Paused,
    /// It is halted under the present configuration.
    Halted,
    /// Another holder has used up the sink's rate: not before this pause is over.
    Early(Duration),
    /// It belongs to something else than the relay is configured for.
    Foreign {
        /// What it belongs to, as JSON.
        identity: String,
    },
    /// The database's clock is behind the one of the last advance.
    Regressed {
        /// The clock of the last advance.
        observed_at: Timestamp,
        /// The clock now.
        clock: Timestamp,
    },
    /// There was nothing to publish.
    Idle,
    /// Rows were published and advanced over.
    Relayed {
        /// How many.
        rows: usize,
        /// The budget ended the turn: more rows may be waiting.
        more: bool,
    },
    /// Publishing stopped; the rows before were advanced over.
    Stalled {
        /// How many.
        rows: usize,
        /// Why it stopped.
        failure: Failure,
        /// The message concerned.
        message_id: Option<String>,
    },
}

/// Why a turn could not be finished. Nothing was advanced over.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The lock's connection ended.
    #[error("the connection that holds the cursor's lock ended: publishing stopped at once")]
    LockLost,
    /// The commit failed or its outcome is unknown, after this many rows were acknowledged: they will come again.
    #[error("{acknowledged} published rows could not be advanced over and will be sent again: {source}")]
    NotAdvanced {
        /// How many.
        acknowledged: usize,
        /// Why.
        source: Error,
    },
    /// The rows cannot be read.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The database said no.
    #[error(transparent)]
    Database(#[from] Error),
}

/// How long each part of a turn took, and what was measured on the way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Getting the lock.
    pub lock: Duration,
    /// Reading.
    pub fetch: Duration,
    /// Publishing, overlapping with reading.
    pub publish: Duration,
    /// Advance and commit.
    pub advance: Duration,
}

/// What a turn needs besides its relay.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The relay.
    pub ready: &'a Ready,
    /// What the watcher saw, before this turn began.
    pub sighting: &'a Sighting,
    /// This replica's name.
    pub replica: &'a str,
    /// Ends when a shutdown's grace period does.
    pub cut: &'a CancellationToken,
    /// How long each part took.
    pub timings: Timings,
    /// Per row, in order: created at; of the rows that were acknowledged.
    pub delivered: Vec<Timestamp>,
}

/// What happened between fetch and advance.
struct Relayed {
    batches: Vec<Batch>,
    published: Published,
    fetched: Fetched,
}

impl Turn<'_> {
    /// Runs the turn on two connections: one that holds the lock, one that reads.
    ///
    /// # Errors
    /// See [`TurnError`].
    pub async fn run(&mut self, lock: Loan, reader: Loan) -> Result<Outcome, TurnError> {
        let deadline = Instant::now() + self.ready.config.turn.deadline;
        let begun = Instant::now();
        let locked = LockedCursor::lock(lock, &self.ready.config.name, &self.ready.identity).await?;
        self.timings.lock = begun.elapsed();
        let Some(cursor) = locked else { return Ok(Outcome::Busy) };
        if let Some(reason) = self.refused(&cursor) {
            cursor.release().await?;
            return Ok(reason);
        }
        let start = match &cursor.seek {
            Some(seek) => seek.to.clone(),
            None => cursor.position.clone(),
        };
        let relayed = self.relay(&cursor, start.as_ref(), reader, deadline).await?;
        self.advance(cursor, start, relayed).await
    }

    /// Why the cursor must not be moved now.
    fn refused(&self, cursor: &LockedCursor) -> Option<Outcome> {
        if let Some(identity) = &cursor.foreign_identity {
            return Some(Outcome::Foreign { identity: identity.clone() });
        }
        if cursor.paused {
            return Some(Outcome::Paused);
        }
        if cursor.halted.as_deref() == Some(self.ready.fingerprint.as_str()) {
            return Some(Outcome::Halted);
        }
        // Only the lock's holder knows: when this replica looked, another may have been about to advance.
        if let (Some(interval), Some(rested)) = (self.ready.sink.min_interval(), cursor.rested)
            && rested < interval
        {
            return Some(Outcome::Early(interval - rested));
        }
        let clock = self.sighting.horizon.observed_at;
        let observed_at = cursor.observed_at?;
        // A step smaller than the window does no harm: the window is the room for it.
        (clock.plus(self.ready.shape.margin.window) < observed_at).then_some(Outcome::Regressed { observed_at, clock })
    }

    /// Fetches and publishes side by side, until all is acknowledged, something fails, or the turn is cut.
    async fn relay(
        &mut self,
        cursor: &LockedCursor,
        start: Option<&Position>,
        reader: Loan,
        deadline: Instant,
    ) -> Result<Relayed, TurnError> {
        let ready = self.ready;
        let closed = cursor.closed();
        let mut publication = match ready.sink.begin().await {
            Ok(publication) => publication,
            Err(failure) => return Ok(Relayed::nothing(failure)),
        };
        let turn = ready.config.turn;
        let request = Request {
            shape: &ready.shape,
            fields: ready.sink.fields(),
            after: start,
            horizon: self.sighting.horizon.at,
            known: cursor.relations.as_ref().filter(|_| cursor.seek.is_none()).map(|(_, known)| known),
            root: cursor.relations.as_ref().map(|(root, _)| *root),
            budget: Budget { rows: turn.rows, bytes: turn.bytes, time: turn.time },
        };
        let begun = Instant::now();
        let (sender, receiver) = unbounded_channel();
        let mut batches = Vec::new();
        let mut fetched = None;
        let mut fetch_time = Duration::ZERO;
        let reading = async {
            let mut guard = Reader(Some(reader));
            let outcome = match guard.0.as_mut() {
                Some(loan) => fetch(loan, request, sender).await,
                None => return,
            };
            if outcome.is_ok() {
                guard.0.take();
            }
            fetch_time = begun.elapsed();
            fetched = Some(outcome);
        };
        let publishing = pump(&mut publication, &mut batches, receiver);
        let cut = tokio::select! {
            biased;
            () = closed.cancelled() => return Err(TurnError::LockLost),
            () = tokio::time::sleep_until(deadline.into()) => true,
            () = self.cut.cancelled() => true,
            _ = async { tokio::join!(publishing, reading) } => false,
        };
        let published = publication.finish();
        self.timings.fetch = fetch_time;
        self.timings.publish = begun.elapsed();
        let rows: usize = batches.iter().map(Batch::len).sum();
        let fetched = match fetched {
            Some(Ok(fetched)) => fetched,
            // Rows that were published before the reading failed are a true prefix; without any, the error is the turn's.
            Some(Err(error)) if published.acknowledged == 0 && published.stopped.is_none() => return Err(error.into()),
            Some(Err(_)) => Fetched { rows, more: true, snapshot: None },
            None if cut => Fetched { rows, more: true, snapshot: None },
            None => Fetched { rows, more: false, snapshot: None },
        };
        Ok(Relayed { batches, published, fetched })
    }

    /// Advances over the acknowledged prefix.
    async fn advance(
        &mut self,
        cursor: LockedCursor,
        start: Option<Position>,
        relayed: Relayed,
    ) -> Result<Outcome, TurnError> {
        let acknowledged = relayed.published.acknowledged;
        let end = relayed.end(acknowledged);
        let known = self.ready.shape.descendants.clone();
        let moved = end.is_some() || cursor.seek.is_some();
        if moved {
            let begun = Instant::now();
            let advance = Advance {
                position: end.as_ref().or(start.as_ref()),
                observed_at: self.sighting.horizon.observed_at,
                snapshot: relayed.fetched.snapshot.as_deref(),
                relations: (self.ready.shape.root, &known),
                seek_applied: cursor.seek.as_ref().map_or(cursor.seek_applied, |seek| seek.number),
                identity: &self.ready.identity,
                by: self.replica,
                durable: self.ready.config.sink.one_by_one(),
            };
            if let Err(source) = cursor.advance(advance).await {
                return Err(TurnError::NotAdvanced { acknowledged, source });
            }
            self.timings.advance = begun.elapsed();
        } else {
            cursor.release().await?;
        }
        self.delivered = relayed.instants(acknowledged);
        let message_id = relayed.message_id(acknowledged);
        Ok(match relayed.published.stopped {
            Some(failure) => Outcome::Stalled { rows: acknowledged, failure, message_id },
            None if acknowledged == 0 && !moved => Outcome::Idle,
            None => Outcome::Relayed { rows: acknowledged, more: relayed.fetched.more },
        })
    }
}

impl Relayed {
    fn nothing(failure: Failure) -> Self {
        Self {
            batches: Vec::new(),
            published: Published { acknowledged: 0, stopped: Some(failure) },
            fetched: Fetched { rows: 0, more: false, snapshot: None },
        }
    }

    /// The batch and the row in it of message number `n`.
    fn locate(&self, mut n: usize) -> Option<(&Batch, usize)> {
        for batch in &self.batches {
            if n < batch.len() {
                return Some((batch, n));
            }
            n -= batch.len();
        }
        None
    }

    /// The position of the last of `n` messages.
    fn end(&self, n: usize) -> Option<Position> {
        let (batch, row) = self.locate(n.checked_sub(1)?)?;
        Some(batch.position(row))
    }

    fn message_id(&self, n: usize) -> Option<String> {
        let (batch, row) = self.locate(n)?;
        Some(batch.message(row).id.to_owned())
    }

    fn instants(&self, n: usize) -> Vec<Timestamp> {
        self.batches.iter().flat_map(Batch::messages).take(n).map(|message| message.created_at).collect()
    }
}

/// A reading connection; one that is dropped in the middle of its work is closed, not given back.
struct Reader(Option<Loan>);

impl Drop for Reader {
    fn drop(&mut self) {
        if let Some(loan) = self.0.take() {
            database::discard(loan);
        }
    }
}

/// Pushes batches as they come, keeps them, and waits for the acknowledgements.
async fn pump(publication: &mut Publication<'_>, kept: &mut Vec<Batch>, mut batches: UnboundedReceiver<Batch>) {
    while let Some(batch) = batches.recv().await {
        let flow = publication.push(&batch).await;
        kept.push(batch);
        if flow == Flow::Stop {
            // Nothing more is read, but what was pushed before the stop is on its way and counts when it arrives.
            batches.close();
            break;
        }
    }
    publication.settle().await;
}
