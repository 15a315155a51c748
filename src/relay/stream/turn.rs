//! One turn: lock, fetch, publish, advance, commit.
//!
//! Promise: what is advanced over has been acknowledged, or dead-lettered, or given up by an operator; what
//! was acknowledged is advanced over unless the database fails, and then it is published again, in order, with the same
//! ids. Publishing stops at once when the lock is lost, at the turn's deadline, or when the grace period of a shutdown
//! ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cursor::dead_letter::DeadLetter;
use crate::cursor::parked::ParkedKeys;
use crate::cursor::turn_progress::TurnFacts;
use crate::cursor::{Advance, ErrorReport, LockedCursor, RelayFacts, RestsOn, RowPlace};
use crate::database::{Error, Loan};
use crate::late::{Opened, Swept};
use crate::position::{Position, Timestamp};
use crate::relay::Guarantee;
use crate::relay::engine::Engine;
use crate::relay::engine::circuit;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::{ForCircuit, at_stop};
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::learned::Learned;
use crate::relay::stream::outcome::{Timings, TurnError, TurnOutcome};
use crate::relay::stream::progress_writer::{self, ProgressWriter};
use crate::relay::stream::publish_decision::{self, Verdict};
use crate::relay::stream::read_ahead::{self, Ahead, Chain, Rows};
use crate::relay::stream::report;
use crate::relay::stream::resend::Resend;
use crate::relay::stream::shards;
use crate::relay::stream::turn_buffer::Kept;
use crate::relay::stream::turn_progress::{Relayed, pump};
use crate::relay::stream::weaker_rule;
use crate::relay::stream::withheld::{Parked, Parks, Withheld};
use crate::sink::{Failure, Mode, Published};
use crate::source::fetch::{FetchError, Fetched};
use crate::source::watcher::Sighting;

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
}

/// What may follow the lock.
enum Admitted {
    /// Rows may be published.
    Publish(Box<LockedCursor>),
    /// The turn is over.
    Over(TurnOutcome),
}

/// How many rows a turn has taken, and may have taken.
struct Taken {
    rows: usize,
    /// By the limit of this turn.
    wanted: usize,
    /// By the limit when the reading began.
    most: usize,
    /// The reading ended at its budget.
    spent: bool,
    /// By which the reading's budget was larger than configured.
    growth: usize,
    cut: bool,
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
        let at_most_once = self.ready.config.guarantee == Guarantee::AtMostOnce;
        // Rows of parked keys are sent at least once, or not at all.
        let parked = at_most_once && !self.parked.keys.is_empty();
        let again = if parked { None } else { self.rows_to_resend(&cursor).await? };
        if again.is_none()
            && let Some(failure) = self.keys_unknown()
        {
            return self.advance(cursor, Relayed::nothing(failure)).await;
        }
        if again.is_none() && !at_most_once {
            let relayed = self.publish(&cursor, chain, deadline).await?;
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
        let (sink, polled) = (self.ready.config.sink.circuit(), self.sighting.horizon.observed_at);
        if self.ready.status.circuit_open() && !within(self.engine, cursor.may_probe(&sink, polled)).await? {
            within(self.engine, cursor.release()).await?;
            return Ok(Admitted::Over(TurnOutcome::Early(circuit::PROBED_BY_ANOTHER)));
        }
        Ok(Admitted::Publish(Box::new(cursor)))
    }

    /// Why the cursor must not be moved now.
    fn refused(&self, cursor: &LockedCursor) -> Option<TurnOutcome> {
        if cursor.foreign {
            return Some(TurnOutcome::Foreign);
        }
        if cursor.paused {
            return Some(TurnOutcome::Paused);
        }
        if cursor.halted.as_deref() == Some(self.ready.fingerprint.as_str()) {
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

    /// Fetches and publishes side by side, until all is acknowledged, something fails, or the turn is cut.
    async fn publish(
        &mut self,
        cursor: &LockedCursor,
        chain: &mut Chain,
        deadline: Instant,
    ) -> Result<Relayed, TurnError> {
        let (ready, suspects) = (self.ready, self.learned.suspects);
        let closed = cursor.closed();
        let mode = Mode {
            alone: suspects > 0,
            mark: None,
            partitions: self.partitions,
            until: Some(deadline),
            cut: None,
            backlog: chain.backlog && suspects == 0,
        };
        let mut publication = match ready.sink.begin_within(mode, cursor.transaction()).await {
            Ok(publication) => publication,
            Err(failure) => return Ok(Relayed::nothing(failure)),
        };
        let (wanted, next) = (self.row_limit(suspects), self.row_limit(0));
        let least = self.reads_at_least();
        let begun = Instant::now();
        let Ahead { mut rows, mut end, most, growth, .. } =
            chain.reading(self.engine, ready, self.learned, cursor, self.sighting, wanted.max(least));
        let opened = self.opened(cursor, &mut rows, deadline).await?;
        self.learned.opened(opened.as_ref());
        if opened.as_ref().is_some_and(|opened| self.is_for_late_rows(opened)) {
            publication.finish();
            return Ok(Relayed::late(opened));
        }
        let writer = self.progress_writer(cursor, opened.as_ref());
        let (mut kept, mut learned) = (Kept::default(), self.learned);
        let mut parked = Parked::new(ready, self.parked.keys.clone(), Some(wanted).filter(|wanted| *wanted < least));
        let (mut fetched, mut fetch_time, mut tail) = (None, Duration::ZERO, Duration::ZERO);
        let reading = async {
            let outcome = end.wait().await;
            fetch_time = begun.elapsed();
            if let Ok(fetched) = &outcome {
                if fetched.rows > 0 {
                    learned.sizes = fetched.sizes;
                }
                // Of what was read only so many rows are published: where the turn will end is not known.
                if wanted >= least {
                    chain.ahead = read_ahead::read_on(self.engine, ready, learned, fetched, next.max(least));
                }
            }
            fetched = Some(outcome);
        };
        let publishing = async { tail = pump(&mut publication, &mut kept, &mut parked, rows, writer).await };
        let cut = tokio::select! {
            biased;
            () = closed.cancelled() => return Err(self.lock_lost(publication.acknowledged())),
            () = tokio::time::sleep_until(deadline.into()) => true,
            () = self.engine.cut.cancelled() => true,
            _ = async { tokio::join!(publishing, reading) } => false,
        };
        let published = parked.ended(publication.finish(), kept.rows());
        self.learned = learned;
        (self.timings.fetch, self.timings.publish, self.timings.tail) = (fetch_time, begun.elapsed(), tail);
        let spent = matches!(&fetched, Some(Ok(fetched)) if fetched.spent);
        self.learn(&published, Taken { rows: kept.rows(), wanted, most, spent, growth, cut });
        let handed_over = parked.handed_over();
        let relayed = self.read((kept, parked.withheld, handed_over), published, fetched, cut)?;
        Ok(Relayed { opened, ..relayed })
    }

    /// Rows that are only passed must not each take a turn.
    fn reads_at_least(&self) -> usize {
        if self.ready.filters() || !self.parked.keys.is_empty() { read_ahead::LEAST } else { 0 }
    }

    /// What the reading has seen before its first row; none when the turn is cut before.
    async fn opened(
        &self,
        cursor: &LockedCursor,
        rows: &mut Rows,
        deadline: Instant,
    ) -> Result<Option<Opened>, TurnError> {
        let closed = cursor.closed();
        tokio::select! {
            biased;
            () = closed.cancelled() => Err(self.lock_lost(0)),
            () = tokio::time::sleep_until(deadline.into()) => Ok(None),
            () = self.engine.cut.cancelled() => Ok(None),
            opened = rows.opened() => Ok(opened.cloned()),
        }
    }

    /// Records the turn's progress, where it may be recorded: what came late must be written down with the snapshot that sees it, and
    /// rows of parked keys with the position that passes them, which is the advance's to do.
    fn progress_writer(&self, cursor: &LockedCursor, opened: Option<&Opened>) -> Option<ProgressWriter> {
        let plain = self.parked.keys.is_empty() && self.ready.records_progress();
        let recorded = opened.filter(|opened| opened.late.is_empty() && plain)?;
        Some(ProgressWriter::new(self.engine, self.facts(cursor), recorded.snapshot.clone()))
    }

    /// What this turn records of its progress beside the rows, as its advance will.
    fn facts(&self, cursor: &LockedCursor) -> TurnFacts {
        let shape = &self.ready.shape;
        TurnFacts {
            cursor: self.ready.config.name.clone(),
            lock: cursor.turn_lock(),
            observed_at: self.sighting.horizon.observed_at,
            relations: std::iter::once(shape.root).chain(shape.descendants.iter().copied()).collect(),
            partitions: self.partitions,
            rests_on: self.rests_on.clone(),
            sweep: shape.sweep,
            by: self.engine.replica.clone(),
        }
    }

    /// Learns from publishing how many rows the next turn should take.
    fn learn(&mut self, published: &Published, taken: Taken) {
        let (ready, publish) = (self.ready, self.timings.publish);
        let Taken { rows, wanted, most, spent, growth, cut } = taken;
        let most_rows = self.learned.most_rows(ready);
        // Rows that were read ahead by an older limit, or in too little time, say nothing about a larger turn.
        self.filled = spent && growth == self.learned.growth && (rows >= most_rows || rows < most);
        // However many it wanted, it could take no more than this.
        let wanted = wanted.min(most_rows);
        self.learned.slow = publish > ready.config.turn.time;
        if cut {
            self.learned.growth = 1;
        }
        if cut || rows >= wanted {
            self.learned.published(ready, wanted, publish);
        } else if published.stopped.as_ref().is_some_and(Failure::is_too_slow) {
            // One statement took all the time, for these rows and not for as many as there might have been.
            self.learned.published(ready, rows, publish);
        }
    }

    /// What was read and published, or the error of a turn that has neither.
    fn read(
        &self,
        (kept, withheld, handed_over): (Kept, Withheld, usize),
        published: Published,
        fetched: Option<Result<Fetched, FetchError>>,
        cut: bool,
    ) -> Result<Relayed, TurnError> {
        let (ready, rows) = (self.ready, kept.rows() + withheld.rows());
        let passed = published.acknowledged + withheld.passed(published.acknowledged);
        let nothing_published = passed == 0 && published.stopped.is_none();
        let read_nothing = matches!(&fetched, Some(Ok(fetched)) if fetched.rows == 0);
        if cut && !read_nothing && nothing_published {
            // Nothing was read, or nothing was handed over, in time: that is no sign that nothing is there.
            return Err(FetchError::Late(ready.config.turn.deadline).into());
        }
        let fetched = match fetched {
            Some(Ok(fetched)) => fetched,
            // It is the first row after the position only if no other was read: those that there was no room for lie before it.
            Some(Err(FetchError::Unreadable(row))) if handed_over == 0 && published.stopped.is_none() => {
                return Ok(Relayed::unreadable(&row));
            }
            // Rows that were published before the reading failed are a true prefix; without any, the error is the turn's.
            Some(Err(error)) if nothing_published && !matches!(error, FetchError::Unreadable(_)) => {
                return Err(error.into());
            }
            Some(Err(error)) => {
                tracing::warn!(cursor = ready.config.name, %error, rows, "reading failed; continuing after what was read");
                Fetched { rows, more: true, ..Fetched::default() }
            }
            None => Fetched { rows, more: cut, ..Fetched::default() },
        };
        Ok(Relayed { kept, published, fetched, withheld, unread: false, opened: None })
    }

    /// Advances over the acknowledged prefix, and over a poison row after it when that is the policy.
    pub(in crate::relay) async fn advance(
        &mut self,
        cursor: LockedCursor,
        relayed: Relayed,
    ) -> Result<TurnOutcome, TurnError> {
        let relayed = self.behind_its_key(relayed).await?;
        let acknowledged = relayed.published.acknowledged;
        let message_id = relayed.message_id(acknowledged);
        let verdict = publish_decision::verdict(self.ready, &relayed);
        let (verdict, park) = self.key_to_park(verdict, &relayed).await?;
        let verdict = publish_decision::copied(self.engine, self.ready, verdict).await;
        let verdict = self.late_halt(relayed.opened.as_ref()).map_or(verdict, Verdict::Halt);
        self.report(&verdict, message_id.as_deref()).await;
        let dead = match &verdict {
            Verdict::Bury(failure, letter) => Some((letter.as_ref(), report::error(failure, message_id.as_deref()))),
            Verdict::Done | Verdict::Search(_) | Verdict::Retry(_) | Verdict::Halt(_) => None,
        };
        let passed = acknowledged + usize::from(dead.is_some());
        // What was done half-way in this database is never committed, whatever rows were passed before it.
        let in_database = self.ready.config.guarantee == Guarantee::InDatabase;
        let half_way = in_database && passed == 0 && relayed.published.stopped.is_some();
        let end = match &verdict {
            Verdict::Done if relayed.read_nothing() => self.end_without_rows(&cursor),
            _ => relayed.end(passed).filter(|_| !half_way),
        };
        let end = end.or_else(|| self.stays_for_late_rows(&cursor, &relayed));
        if end.is_some() {
            let parked = Parks { key: park.as_deref(), rows: relayed.withheld.written(self.ready, passed) };
            self.commit(cursor, end.as_ref(), relayed.opened.as_ref(), (dead, parked), acknowledged).await?;
            self.stands_at = end;
        } else {
            (self.stands_at, self.swept) = (cursor.position.clone(), cursor.swept.clone());
            within(self.engine, cursor.release()).await?;
        }
        self.learned.passed(passed);
        self.delivered = relayed.instants(acknowledged);
        Ok(self.outcome(verdict, &relayed, message_id))
    }

    /// While the lock is held: no other replica must try the same message before it can see a halt or an open circuit.
    async fn report(&self, verdict: &Verdict<'_>, message_id: Option<&str>) {
        match verdict {
            Verdict::Halt(failure) => report::halt(self.engine, self.ready, failure, message_id).await,
            Verdict::Retry(failure) if self.ready.status.circuit_open() => {
                let outage = at_stop(failure).circuit == ForCircuit::Outage;
                report::retry(self.engine, self.ready, failure, message_id, Some(outage)).await;
            }
            Verdict::Done | Verdict::Search(_) | Verdict::Bury(..) | Verdict::Retry(_) => {}
        }
    }

    /// Writes the position, and a dead letter with it, and commits.
    async fn commit(
        &mut self,
        cursor: LockedCursor,
        position: Option<&Position>,
        opened: Option<&Opened>,
        (dead, parked): (Option<(&DeadLetter<'_>, ErrorReport<'_>)>, Parks<'_>),
        acknowledged: usize,
    ) -> Result<(), TurnError> {
        let shape = Arc::clone(&self.ready.shape);
        let snapshot = opened.map(|opened| opened.snapshot.as_str());
        // Below a position that is still to come, rows are passed as they come.
        let clock = self.sighting.horizon.observed_at;
        let sweep = shape.sweep.filter(|_| position.is_none_or(|position| position.created_at <= clock));
        let swept = snapshot.map_or_else(
            || cursor.swept.clone(),
            |snapshot| sweep.map(|column| Swept { snapshot: snapshot.to_owned(), column }),
        );
        let late = self.late_letters(opened);
        let advance = Advance {
            position,
            observed_at: self.sighting.horizon.observed_at,
            snapshot,
            sweep,
            relations: (shape.root, &shape.descendants),
            seek_applied: cursor.seek_applied,
            identity: &self.ready.identity,
            partitions: self.partitions,
            rests_on: &self.rests_on,
            durable: self.ready.config.waits_for_disk() || dead.is_some() || late.is_some() || parked.rows.is_some(),
            dead,
            park: parked.key,
            parked: parked.rows,
            late,
            by: &self.engine.replica,
        };
        match within(self.engine, cursor.advance(advance)).await {
            Ok((place, [advance, commit])) => {
                (self.timings.advance, self.timings.commit) = (advance, commit);
                (self.place, self.swept) = (Some(place), swept);
                self.recorded_late(opened);
                Ok(())
            }
            Err(source) => Err(self.not_advanced(acknowledged, source)),
        }
    }

    fn outcome(&mut self, verdict: Verdict<'_>, relayed: &Relayed, message_id: Option<String>) -> TurnOutcome {
        let (rows, suspects) = (relayed.published.acknowledged, relayed.published.suspects);
        match verdict {
            Verdict::Search(failure) => {
                self.learned.suspects = suspects;
                TurnOutcome::Searching { rows, suspects, failure }
            }
            Verdict::Bury(failure, letter) => TurnOutcome::Buried { rows, failure, message_id: letter.message_id },
            Verdict::Retry(failure) | Verdict::Halt(failure) => TurnOutcome::Stalled { rows, failure, message_id },
            Verdict::Done if relayed.fetched.rows == 0 && self.late == 0 && !relayed.looks_on() => TurnOutcome::Idle,
            Verdict::Done => {
                let passed = rows + relayed.withheld.passed(rows);
                let more = relayed.fetched.more || passed < relayed.fetched.rows || self.late > 0;
                TurnOutcome::Relayed { rows, more }
            }
        }
    }

    /// Where a turn that has read no row leaves the cursor: at the table's newest row for an idle shard.
    fn end_without_rows(&mut self, cursor: &LockedCursor) -> Option<Position> {
        let follow = self.follow.take();
        let position = cursor.position.as_ref();
        shards::follow_to(follow, position, self.sighting.horizon.at).or_else(|| self.stays(cursor))
    }

    /// The position itself, when the relations that the cursor knows are not those that were just read: they are recorded, so
    /// that what was new to it is looked for once. And when it does not know yet from when on rows come late.
    fn stays(&self, cursor: &LockedCursor) -> Option<Position> {
        let shape = &self.ready.shape;
        let news = cursor.relations.as_ref().is_some_and(|(_, known)| *known != shape.descendants);
        let unswept = shape.sweep.is_some() && cursor.swept.as_ref().map(|swept| swept.column) != shape.sweep;
        let clock = self.sighting.horizon.observed_at;
        cursor.position.clone().filter(|position| news || unswept && position.created_at <= clock)
    }

    /// The lock's connection ended after so many rows were acknowledged.
    pub(in crate::relay) fn lock_lost(&self, acknowledged: usize) -> TurnError {
        // What was changed in this database is undone with the transaction.
        let in_database = self.ready.config.guarantee == Guarantee::InDatabase;
        TurnError::LockLost { acknowledged: if in_database { 0 } else { acknowledged } }
    }

    /// The commit failed, or nobody knows whether it did.
    pub(in crate::relay) fn not_advanced(&self, acknowledged: usize, source: Error) -> TurnError {
        match self.ready.config.guarantee {
            // Nothing will come again: what was changed is undone with the advance, or stands with it.
            Guarantee::InDatabase => source.into(),
            Guarantee::AtLeastOnce | Guarantee::AtMostOnce | Guarantee::Deduplicated => {
                TurnError::NotAdvanced { acknowledged, source }
            }
        }
    }
}
