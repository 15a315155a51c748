//! One turn: lock, fetch, publish, advance, commit.
//!
//! Promise: what is advanced over has been acknowledged, or dead-lettered, or given up by an operator; what
//! was acknowledged is advanced over unless the database fails, and then it is published again, in order, with the same
//! ids. Publishing stops at once when the lock is lost, at the turn's deadline, or when the grace period of a shutdown
//! ends.

use std::sync::Arc;
use std::time::Instant;

use crate::cursor::ahead::AheadRows;
use crate::cursor::parked::ParkedKeys;
use crate::cursor::{LockedCursor, RelayFacts, RestsOn, RowPlace};
use crate::database::Loan;
use crate::late::Swept;
use crate::position::{Position, Timestamp};
use crate::relay::Guarantee;
use crate::relay::engine::Engine;
use crate::relay::engine::circuit;
use crate::relay::engine::deadline::within;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::learned::Learned;
use crate::relay::stream::outcome::{Timings, TurnError, TurnOutcome};
use crate::relay::stream::progress_writer;
use crate::relay::stream::read_ahead::Chain;
use crate::relay::stream::relayed::Relayed;
use crate::relay::stream::resend::Resend;
use crate::relay::stream::turn_trace::TurnTrace;
use crate::relay::stream::{changed_order, weaker_rule};
use crate::sink::{Class, Failure};
use crate::source::watcher::Sighting;

mod advance;
mod lanes;
pub(in crate::relay) mod publish;

/// How many rows a turn publishes that sends one by one: each waits for the broker.
const ALONE: usize = 200;

/// A turn: what it works with, and what was measured of it.
#[derive(Debug)]
pub struct Turn<'a> {
    /// The relay.
    pub ready: &'a Arc<PreparedStream>,
    /// What the watcher saw, before this turn began.
    pub sighting: &'a Sighting,
    /// What all relays share.
    pub engine: &'a Arc<Engine>,
    /// How long each part took.
    pub timings: Timings,
    /// When the rows were created that were acknowledged and advanced over, in order.
    pub delivered: Vec<Timestamp>,
    /// Why rows were refused that it has passed as dead letters, beside the one that it ended at.
    pub refused: Vec<Failure>,
    /// When the cursor was created, once it is locked.
    pub since: Option<Timestamp>,
    /// Over how many partitions keys are spread in this turn.
    pub partitions: Option<i32>,
    /// Where the cursor stands after it, if that was found out.
    pub stands_at: Option<Position>,
    /// Up to where late rows have been found then.
    pub swept: Option<Swept>,
    /// How many rows it has recorded that came late.
    pub late: usize,
    /// The keys that are parked, once the cursor is locked.
    pub parked: ParkedKeys,
    /// Rows beyond the position that were acknowledged before.
    pub ahead: Arc<AheadRows>,
    /// Where it has left the cursor's row.
    pub place: Option<RowPlace>,
    /// It took all that one stretched as they are now may take.
    pub filled: bool,
    /// The rule of the scan, and from when on transactions count under a weaker one.
    pub rests_on: RestsOn,
    /// What earlier turns have taught, and this one adds to.
    pub learned: Learned,
    /// Where the cursor moves if the turn finds nothing to read up to there: the table's newest row, of another shard.
    pub follow: Option<Position>,
    /// The reading left out what is gone of the table.
    pub(in crate::relay) judged_in_part: bool,
    /// What is exported of it.
    pub(in crate::relay) trace: Option<Arc<TurnTrace>>,
}

/// What may follow the lock.
enum Admitted {
    /// Rows may be published.
    Publish(Box<LockedCursor>),
    /// The turn is over.
    Over(TurnOutcome),
}

impl Turn<'_> {
    /// Runs the turn on two connections: one that holds the lock, one that reads. Takes what was read ahead for it, and
    /// leaves what it has read ahead for the next.
    ///
    /// # Errors
    /// See [`TurnError`].
    pub(in crate::relay) async fn run(&mut self, chain: &mut Chain) -> Result<TurnOutcome, TurnError> {
        let begun = Instant::now();
        let connection = within(self.engine, self.engine.connection()).await?;
        let deadline = Instant::now() + self.ready.config.turn.deadline;
        let locked = self.lock(connection, chain).await?;
        self.timings.lock = begun.elapsed();
        let Some(cursor) = locked else { return Ok(TurnOutcome::Busy) };
        let cursor = match self.admit(cursor).await? {
            Admitted::Publish(cursor) => *cursor,
            Admitted::Over(outcome) => return Ok(outcome),
        };
        self.parked = within(self.engine, cursor.parked_keys()).await?;
        self.learned.keys_are_parked = !self.parked.keys.is_empty();
        self.judge_keys(&cursor).await?;
        let (ahead, rested) = within(self.engine, cursor.rows_ahead()).await?;
        self.ahead = Arc::new(ahead);
        if let (Some(interval), Some(rested)) = (self.ready.sink.min_interval(), rested)
            && rested < interval
        {
            within(self.engine, cursor.release()).await?;
            return Ok(TurnOutcome::Early(interval - rested));
        }
        let at_most_once = self.ready.config.guarantee == Guarantee::AtMostOnce;
        // Rows of parked keys are sent at least once, or not at all.
        let parked = at_most_once && !self.parked.keys.is_empty();
        let again = if parked { None } else { self.rows_to_resend(&cursor).await? };
        if again.is_none()
            && let Some(failure) = self.keys_unknown().or_else(|| self.rows_unknown())
        {
            return self.advance(cursor, Relayed::nothing(failure)).await;
        }
        if again.is_none() && at_most_once && self.ready.config.lanes.are_used() {
            return Box::pin(self.at_most_once_lanes(cursor, chain, deadline)).await;
        }
        if again.is_none() && !at_most_once {
            let relayed = if self.ready.config.lanes.are_used() {
                Box::pin(self.publish_lanes(&cursor, chain, deadline)).await?
            } else {
                self.publish(&cursor, chain, deadline).await?
            };
            return self.advance(cursor, relayed).await;
        }
        // The slot has two connections.
        chain.ahead = None;
        let reader = within(self.engine, self.engine.connection()).await?;
        // Boxed: the turns of most relays are never these, and would carry their room along.
        match &again {
            Some(Resend { rows, .. }) if at_most_once => match rows.first() {
                Some(first) => Box::pin(self.redrive_once(cursor, reader, first, deadline)).await,
                None => Box::pin(self.at_most_once(cursor, reader, deadline)).await,
            },
            Some(again) => Box::pin(self.redrive(cursor, reader, again, deadline)).await,
            None => Box::pin(self.at_most_once(cursor, reader, deadline)).await,
        }
    }

    /// Locks the cursor's row; none while another replica has it.
    async fn lock(&mut self, connection: Loan, chain: &Chain) -> Result<Option<LockedCursor>, TurnError> {
        let ready = self.ready;
        let lock = LockedCursor::lock(connection, &ready.config.name, &ready.identity, chain.place.as_ref());
        Ok(within(self.engine, lock).await?)
    }

    /// What comes before publishing: rows that an ended replica had in flight, changes by an operator, and all that forbids
    /// moving the cursor now.
    async fn admit(&mut self, cursor: LockedCursor) -> Result<Admitted, TurnError> {
        self.since = Some(cursor.created_at);
        self.sighting.server.same_as(cursor.server())?;
        if let Some(lost) = cursor.in_flight.clone() {
            return Ok(Admitted::Over(match within(self.engine, cursor.record_in_flight()).await? {
                Some(rows) => TurnOutcome::Abandoned { rows, by: lost.by },
                None => TurnOutcome::Busy,
            }));
        }
        if cursor.resumes && !cursor.foreign {
            let outcome = progress_writer::resume(self.engine, self.ready, cursor).await?;
            if let TurnOutcome::Resumed { rows } = outcome {
                self.learned.unconfirmed = self.learned.unconfirmed.saturating_sub(rows);
            }
            return Ok(Admitted::Over(outcome));
        }
        let shape = &self.ready.shape;
        let facts = RelayFacts { identity: &self.ready.identity, root: shape.root, relations: &shape.descendants };
        // Before anything else: an operator may move a cursor that is paused, halted or refused, and nothing is published.
        if let Some(change) = cursor.change.clone().filter(|change| change.fits(cursor.foreign, facts)) {
            return Ok(Admitted::Over(self.change(cursor, &change).await?));
        }
        if let Some(reason) = self.refused(&cursor) {
            within(self.engine, cursor.release()).await?;
            return Ok(Admitted::Over(reason));
        }
        // Another relation under the name is refused by the reading.
        let same = cursor.relations.as_ref().is_none_or(|(root, _)| *root == shape.root);
        if same && weaker_rule::is_weaker(cursor.rests_on.rule.as_deref(), shape) {
            return Ok(Admitted::Over(weaker_rule::weaken(self.engine, self.ready, cursor).await?));
        }
        if same && changed_order::is_changed(cursor.position.as_ref(), &cursor.rests_on, shape) {
            return Ok(Admitted::Over(changed_order::go_back(self.engine, self.ready, cursor).await?));
        }
        let (sink, polled) = (self.ready.config.sink.circuit(), self.sighting.horizon.observed_at);
        if self.ready.status.circuit_open() && !within(self.engine, cursor.may_probe(&sink, polled)).await? {
            within(self.engine, cursor.release()).await?;
            return Ok(Admitted::Over(TurnOutcome::Early(circuit::PROBED_BY_ANOTHER)));
        }
        Ok(Admitted::Publish(Box::new(cursor)))
    }

    /// Why no new row may be published: some beyond the position were acknowledged, and none may be sent twice.
    fn rows_unknown(&self) -> Option<Failure> {
        let (rows, config) = (self.ahead.len(), &self.ready.config);
        let would_repeat = config.guarantee == Guarantee::AtMostOnce && !config.lanes.are_used();
        (rows > 0 && would_repeat).then(|| {
            let message = format!("{rows} rows beyond the position were sent when messages were sent side by side");
            let hint = format!(
                "Under at_most_once they would be sent again. Write in_flight back until the position has passed the rows that \
                 outbox.ahead names, then resume the cursor: `outbox-relay cursor resume {}`.",
                config.name
            );
            Failure::of(Class::Fatal, "rows_ahead", message, hint)
        })
    }

    /// Why the cursor must not be moved now.
    fn refused(&self, cursor: &LockedCursor) -> Option<TurnOutcome> {
        if cursor.foreign {
            return Some(TurnOutcome::Foreign);
        }
        if cursor.paused {
            return Some(TurnOutcome::Paused);
        }
        if self.ready.stands_still(cursor.halted.as_ref()) {
            return Some(TurnOutcome::Halted);
        }
        if let (Some(found), Some(known)) = (self.partitions, cursor.partitions)
            && found != known
            && self.learned.accepted_partitions != Some(found)
        {
            return Some(TurnOutcome::Partitions { known, found });
        }
        // Only the lock's holder knows: when this replica polled, another may have been about to advance.
        if let (Some(interval), Some(rested)) = (self.ready.sink.min_interval(), cursor.rested)
            && rested < interval
        {
            return Some(TurnOutcome::Early(interval - rested));
        }
        let clock = self.sighting.horizon.observed_at;
        let observed_at = cursor.observed_at?;
        // A step smaller than the window does no harm: the window is the room for it.
        (clock.plus(self.ready.shape.margin.window) < observed_at)
            .then_some(TurnOutcome::Regressed { observed_at, clock })
    }

    /// How many rows this turn may take.
    pub(in crate::relay) fn row_limit(&self, suspects: usize) -> usize {
        match (suspects, self.ready.status.circuit_open()) {
            (0, false) => self.learned.row_limit,
            (0, true) => 1,
            (suspects, _) => suspects.min(ALONE).min(self.learned.row_limit),
        }
    }
}
