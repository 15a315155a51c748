//! A turn under `at_most_once`: its rows are passed first, durably, with a token that names them; then they are sent, one
//! after the other, and the token is taken away.
//!
//! Promise: a row whose sending may have begun is never sent again. What provably was not sent comes again, in its place,
//! because nothing behind it was sent either. What may have been accepted without an answer is recorded as unknown and
//! passed; so is all that a holder had in flight when it ended.

use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::cursor::unknown::Unknown;
use crate::cursor::{LockedCursor, Reserved, ReservedEnd};
use crate::database::{Fragile, Loan};
use crate::message::Message;
use crate::position::Position;
use crate::relay::engine::circuit;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::{ForCircuit, ForRelay, at_stop};
use crate::relay::stream::after_publish::{self, AfterPublish, in_doubt};
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::read_ahead;
use crate::relay::stream::relayed::Relayed;
use crate::relay::stream::report;
use crate::relay::stream::turn::Turn;
use crate::relay::stream::turn_buffer::TurnBuffer;
use crate::relay::stream::withheld::Withheld;
use crate::sink::{Failure, Flow, Mark, Mode, Publication, Published, Sink};
use crate::source::fetch::{self, FetchError, Fetched};

mod flight;
mod lanes;
mod redrive;

use flight::Flight;

/// The most rows in flight: what a crash leaves as unknown is a list that people go through.
const MOST: usize = 500;

impl Turn<'_> {
    /// Runs the turn from the lock on.
    pub(in crate::relay) async fn at_most_once(
        &mut self,
        cursor: LockedCursor,
        reader: Loan,
        deadline: Instant,
    ) -> Result<TurnOutcome, TurnError> {
        let ready = self.ready;
        let suspects = self.learned.suspects;
        let mut relayed = self.read_all(&cursor, reader, suspects, deadline).await?;
        self.learned.opened(relayed.opened.as_ref());
        if relayed.opened.as_ref().is_some_and(|opened| self.is_for_late_rows(opened)) {
            return self.advance(cursor, Relayed::late(relayed.opened)).await;
        }
        let first = relayed.locate(0).filter(|_| !relayed.unread);
        let Some((first, _)) = first else { return self.advance(cursor, relayed).await };
        let mode = self.mode(None, deadline);
        let mut publication = match begin(&ready.sink, &first.message(0), mode, self.engine.call_deadline).await {
            Ok(publication) => publication,
            Err(failure) => return self.advance(cursor, Relayed::nothing(failure)).await,
        };
        if let Some(trace) = &self.trace {
            relayed.kept.batches().for_each(|batch| trace.publishes(batch));
        }
        let before = cursor.position.clone();
        let rows: Vec<Position> =
            relayed.kept.batches().flat_map(|batch| (0..batch.len()).map(|row| batch.position(row))).collect();
        let flight =
            Flight { rows: &rows, end: rows.last(), opened: relayed.opened.as_ref(), letter: None, beyond: None };
        let Some(reserved) = self.reserve(cursor, flight, deadline).await? else { return Ok(TurnOutcome::Busy) };
        let may_send = self.transmit(&reserved, &mut publication, relayed.kept.batches(), deadline).await?;
        relayed.published = publication.finish();
        let outcome = self.settle(reserved, relayed, before.as_ref()).await?;
        Ok(if may_send { outcome } else { TurnOutcome::Early(circuit::PROBED_BY_ANOTHER) })
    }

    /// How this turn sends. The last row is handed over while there is still time for its answer: a turn that is cut leaves
    /// it in doubt, and a slow receiver is no fault.
    fn mode(&self, mark: Option<Mark>, deadline: Instant) -> Mode {
        let until = deadline.checked_sub(self.ready.config.turn.call_deadline()).or(Some(deadline));
        Mode { alone: true, mark, partitions: self.partitions, until, cut: Some(deadline), backlog: false }
    }

    /// Sends, for as long as the lock is there and the turn may last; false when another replica tries the sink, which is
    /// out: then nothing was sent.
    async fn transmit(
        &mut self,
        reserved: &Reserved,
        publication: &mut Publication<'_>,
        batches: impl Iterator<Item = &Batch>,
        deadline: Instant,
    ) -> Result<bool, TurnError> {
        let (closed, begun) = (reserved.closed(), Instant::now());
        let may_send = self.may_send(reserved).await?;
        if may_send {
            tokio::select! {
                biased;
                () = closed.cancelled() => return Err(self.lock_lost(publication.acknowledged())),
                () = tokio::time::sleep_until(deadline.into()) => {}
                () = self.engine.cut.cancelled() => {}
                () = send(publication, batches) => {}
            }
        }
        self.timings.publish = begun.elapsed();
        Ok(may_send)
    }

    /// Reads the rows of this turn; all of them, because they are passed together.
    async fn read_all(
        &mut self,
        cursor: &LockedCursor,
        reader: Loan,
        suspects: usize,
        deadline: Instant,
    ) -> Result<Relayed, TurnError> {
        // With a rate there is time for one row before the next lock.
        let most = if self.ready.sink.min_interval().is_some() { 1 } else { MOST };
        let safe = (self.sighting.horizon.at, &*self.sighting.server);
        let known = cursor.relations.as_ref();
        let most = self.row_limit(suspects).min(most);
        let from = (cursor.position.as_ref(), cursor.swept.as_ref());
        let request = read_ahead::request(self.ready, &self.learned, from, known, safe, most);
        let begun = Instant::now();
        // Taken when the reading is over, so that nothing may wait for it.
        let (mut sender, mut receiver) = fetch::handoff(usize::MAX);
        let reader = Fragile::new(reader);
        let late = FetchError::Late(self.ready.config.turn.deadline);
        let reading = tokio::time::timeout_at(deadline.into(), fetch::fetch(&reader, request, &mut sender));
        let fetched = reading.await.map_err(|_| TurnError::from(late))?;
        if let Some(last) = sender.into_last() {
            last.give();
        }
        let opened = receiver.opened().await.cloned();
        let kept: TurnBuffer = std::iter::from_fn(|| receiver.take()).collect();
        let fetched = match fetched {
            Ok(fetched) => {
                within(self.engine, fetch::end(reader, &fetched)).await?;
                fetched
            }
            Err(FetchError::Unreadable(row)) if kept.rows() == 0 => {
                return Ok(Relayed { opened, ..Relayed::unreadable(&row) });
            }
            // The rows before it go first.
            Err(error) if error.is_of_a_row() && kept.rows() > 0 => {
                Fetched { rows: kept.rows(), more: true, ..Fetched::default() }
            }
            Err(error) => return Err(error.into()),
        };
        self.timings.fetch = begun.elapsed();
        let published = Published { acknowledged: 0, stopped: None, suspects: 1 };
        Ok(Relayed { opened, ..Relayed::new(kept, published, fetched, Withheld::default()) })
    }

    /// While the sink is out, one relay tries it at a time; the right to do so ended with the first transaction.
    async fn may_send(&self, reserved: &Reserved) -> Result<bool, TurnError> {
        if !self.ready.status.circuit_open() {
            return Ok(true);
        }
        let (sink, looked) = (self.ready.config.sink.circuit(), self.sighting.horizon.observed_at);
        Ok(within(self.engine, reserved.may_probe(&sink, looked)).await?)
    }

    /// Writes how sending ended: the position stands behind what may have been sent, and not behind anything else.
    async fn settle(
        &mut self,
        reserved: Reserved,
        relayed: Relayed,
        before: Option<&Position>,
    ) -> Result<TurnOutcome, TurnError> {
        let acknowledged = relayed.published.acknowledged;
        self.learn_time(&relayed);
        let message_id = relayed.message_id(acknowledged);
        let verdict = match in_doubt(&relayed.published) {
            Some(failure) => Ending::Unknown(failure),
            None => {
                let verdict = after_publish::verdict(self.ready, &relayed);
                Ending::Known(after_publish::copied(self.engine, self.ready, verdict).await)
            }
        };
        self.tell(&verdict, message_id.as_deref()).await;
        let dead = match &verdict {
            Ending::Known(AfterPublish::Bury(failure, letter)) => {
                Some((letter.as_ref(), report::error(failure, message_id.as_deref())))
            }
            Ending::Known(_) | Ending::Unknown(_) => None,
        };
        let doubtful = relayed.locate(acknowledged).map(|(batch, row)| batch.message(row));
        let unknown = match (&verdict, doubtful) {
            (Ending::Unknown(failure), Some(message)) => Some(Unknown {
                id: message.id,
                created_at: message.created_at,
                error: report::error(failure, message_id.as_deref()),
            }),
            (Ending::Unknown(_), None) | (Ending::Known(_), _) => None,
        };
        let passed = acknowledged + usize::from(dead.is_some() || unknown.is_some());
        let end = relayed.end(passed);
        let position = if passed == 0 { before } else { end.as_ref() };
        let plain = passed == relayed.fetched.rows && dead.is_none() && unknown.is_none();
        let durable = self.ready.config.sink.one_by_one() || !plain;
        let settlement = ReservedEnd { position, unknown, dead, not_sent: None, by: &self.engine.replica, durable };
        let token = reserved.token().to_owned();
        match within(self.engine, reserved.settle(settlement)).await {
            Ok([_, commit]) => self.timings.commit = commit,
            Err(source) => return Err(TurnError::NotSettled { acknowledged, token, source }),
        }
        self.learned.passed(passed);
        self.delivered = relayed.instants(acknowledged);
        Ok(self.ended(verdict, &relayed, message_id))
    }

    /// Learns how many rows the next turn has time for: all of a turn's rows are listed when its holder ends.
    fn learn_time(&mut self, relayed: &Relayed) {
        let (sent, rows) = (relayed.published.acknowledged, relayed.fetched.rows);
        let full = sent == rows && rows >= self.learned.row_limit;
        if relayed.published.stopped.is_none() && (full || sent < rows) {
            self.learned.published(self.ready, sent.max(1), self.timings.publish);
        }
    }

    /// While the lock is held: no other replica shall try before it can see what is wrong.
    async fn tell(&self, ending: &Ending<'_>, message_id: Option<&str>) {
        let open = self.ready.status.circuit_open();
        match ending {
            Ending::Known(AfterPublish::Halt(failure)) => {
                report::halt(self.engine, self.ready, failure, message_id).await;
            }
            Ending::Unknown(failure) if at_stop(failure).relay == ForRelay::Halts => {
                report::halt(self.engine, self.ready, failure, message_id).await;
            }
            Ending::Known(AfterPublish::Retry(failure)) | Ending::Unknown(failure) if open => {
                let outage = at_stop(failure).circuit == ForCircuit::Outage;
                report::retry(self.engine, self.ready, failure, message_id, Some(outage)).await;
            }
            Ending::Known(_) | Ending::Unknown(_) => {}
        }
    }

    fn ended(&mut self, ending: Ending<'_>, relayed: &Relayed, message_id: Option<String>) -> TurnOutcome {
        let (rows, suspects) = (relayed.published.acknowledged, relayed.published.suspects);
        match ending {
            Ending::Unknown(failure) => TurnOutcome::Unknown { rows, failure, message_id },
            Ending::Known(AfterPublish::Search(failure)) => {
                self.learned.suspects = suspects;
                TurnOutcome::Searching { rows, suspects, failure }
            }
            Ending::Known(AfterPublish::Bury(failure, letter)) => {
                TurnOutcome::Buried { rows, failure, message_id: letter.message_id }
            }
            Ending::Known(AfterPublish::Retry(failure) | AfterPublish::Halt(failure)) => {
                TurnOutcome::Stalled { rows, failure, message_id }
            }
            // Cut before its first row: the rows are still there.
            Ending::Known(AfterPublish::Done) => {
                TurnOutcome::Relayed { rows, more: relayed.fetched.more || rows < relayed.fetched.rows }
            }
        }
    }
}

/// How sending ended.
enum Ending<'a> {
    /// It is known of each row whether it was sent.
    Known(AfterPublish<'a>),
    /// The row behind the acknowledged ones may have been accepted.
    Unknown(Failure),
}

/// Begins sending. A receiver that cannot be reached is found out before anything is passed: then nothing is in doubt.
async fn begin<'a>(
    sink: &'a Sink,
    first: &Message<'_>,
    mode: Mode,
    patience: Duration,
) -> Result<Publication<'a>, Failure> {
    sink.reach(first, patience).await?;
    sink.begin(mode).await
}

/// Hands the rows over one by one, each after the one before it is settled.
async fn send(publication: &mut Publication<'_>, batches: impl Iterator<Item = &Batch>) {
    for batch in batches {
        for row in 0..batch.len() {
            if publication.push(&batch.alone(row)).await == Flow::Stop {
                return;
            }
            publication.settle().await;
        }
    }
}

#[cfg(test)]
mod tests;
