//! Dead letters that an operator redrives.

use std::time::Instant;

use crate::batch::Batch;
use crate::cursor::LockedCursor;
use crate::cursor::dead_letter::{DeadLetter, Payload, Redrive, Redriven};
use crate::cursor::parked::{RefusedAgain, Unparked};
use crate::database::Loan;
use crate::message::Message;
use crate::relay::engine::dead_letter;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::{ForMessage, Sender, disposition};
use crate::relay::engine::report;
use crate::relay::stream::after_publish::letter;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::resend::Resend;
use crate::relay::stream::turn::Turn;
use crate::sink::{Failure, Mark, Mode, Published};
use crate::source::fetch::{FetchError, types_stand};

mod reading;

/// How many dead letters one turn sends again at most: each waits for the one before.
const REDRIVES: usize = 100;

/// Whether a dead letter that was sent again stays one.
pub(in crate::relay) fn is_refused(failure: &Failure) -> bool {
    disposition(Sender::Redrive { passed: false }, failure).message == ForMessage::Fails
}

/// What receivers see of it: a row that came late is not sent again, but for the first time.
pub(in crate::relay) const fn mark(letter: &Redrive) -> Mark {
    if letter.late { Mark::Late } else { Mark::Replayed }
}

impl Turn<'_> {
    /// The dead letters that an operator has redriven, else the rows of released keys; as many as this turn sends.
    pub(in crate::relay) async fn rows_to_resend(
        &mut self,
        cursor: &LockedCursor,
    ) -> Result<Option<Resend>, TurnError> {
        // Rows that come without an end, each of which waits for its answer, must not hold all others up.
        let again = std::mem::take(&mut self.learned.redrove);
        let released = self.parked.released;
        let waits = again || self.learned.resends_wait();
        // Without its key no other row is sent while keys are parked.
        if waits && self.keys_unknown().is_none() || !cursor.redrive && !released {
            return Ok(None);
        }
        let most = self.redrives();
        let mut rows = if cursor.redrive { within(self.engine, cursor.redriving(most)).await? } else { Vec::new() };
        let released = released && rows.is_empty();
        if released {
            rows = within(self.engine, cursor.released(most)).await?;
        }
        self.learned.redrove = i64::try_from(rows.len()).is_ok_and(|sent| sent >= most);
        // Receivers see a mark: one for all.
        let alike = rows.iter().take_while(|row| row.late == rows[0].late).count();
        rows.truncate(alike);
        Ok((released || !rows.is_empty()).then_some(Resend { rows, released }))
    }

    /// How many dead letters this turn sends again: a crash repeats no more than a turn of rows would.
    pub(in crate::relay) fn redrives(&self) -> i64 {
        i64::try_from(self.ready.config.turn.rows.min(REDRIVES)).unwrap_or(1)
    }

    /// Sends the dead letters again that an operator has chosen, in order, and records what became of them. The position
    /// stays where it is.
    pub(in crate::relay) async fn redrive(
        &mut self,
        cursor: LockedCursor,
        reader: Loan,
        again: &Resend,
        deadline: Instant,
    ) -> Result<TurnOutcome, TurnError> {
        let letters = &*again.rows;
        let mut batch = Batch::new(self.ready.fields.len());
        let mut gone = None;
        for letter in letters {
            gone = self.read_in_time(&reader, letter, &mut batch).await?;
            if gone.is_some() {
                break;
            }
        }
        let (sink, shape) = (&self.ready.sink, &self.ready.shape);
        if sink.is_typed() && !within(self.engine, types_stand(&reader, shape, &self.ready.fields)).await? {
            return Err(FetchError::FamilyChanged.into());
        }
        let published = self.publish_again(&cursor, letters, &batch, deadline).await?;
        let acknowledged = published.acknowledged;
        let accepted: Vec<i64> = letters[..acknowledged].iter().map(|letter| letter.id).collect();
        let failure = published.stopped.or(gone.filter(|_| acknowledged == batch.len()));
        let refused = failure.clone().filter(is_refused).zip(letters.get(acknowledged));
        let message_id = letters.get(acknowledged).and_then(|letter| letter.position.id.clone());
        if acknowledged == 0 && refused.is_none() && !(again.released && letters.is_empty()) {
            // Nothing to record; and statements that were cut half-way must not be committed.
            within(self.engine, cursor.release()).await?;
            return Ok(TurnOutcome::Redriven { rows: 0, failure, message_id });
        }
        if again.released {
            let row = (acknowledged < batch.len()).then(|| batch.message(acknowledged));
            let stopped = self.record_released(cursor, &accepted, refused, row.as_ref()).await?;
            return Ok(TurnOutcome::Redriven { rows: acknowledged, failure: stopped.or(failure), message_id });
        }
        let refused = refused.as_ref().map(|(failure, letter)| (letter.id, report::error(failure, None)));
        let outcome = Redriven { accepted: &accepted, refused, by: &self.engine.replica, paced: self.has_rate() };
        let recorded = within(self.engine, cursor.redriven(&outcome)).await;
        recorded.map_err(|source| self.not_advanced(acknowledged, source))?;
        Ok(TurnOutcome::Redriven { rows: acknowledged, failure, message_id })
    }

    /// Records what became of rows of released keys. One that was refused is a dead letter like any other: its topic has a copy
    /// first, or the row stays what it is, and why is what this returns.
    async fn record_released(
        &self,
        cursor: LockedCursor,
        accepted: &[i64],
        refused: Option<(Failure, &Redrive)>,
        row: Option<&Message<'_>>,
    ) -> Result<Option<Failure>, TurnError> {
        let paced = self.has_rate() && (!accepted.is_empty() || refused.is_some());
        let (mut stopped, mut dead) = (None, None);
        if let Some((failure, parked)) = &refused {
            let letter = row.map_or_else(|| self.as_parked(parked), |row| letter(self.ready, row, failure));
            match self.copied_again(failure, &letter).await {
                Ok(()) => {
                    dead = Some(RefusedAgain { seq: parked.id, letter, error: report::error(failure, None) });
                }
                Err(failure) => stopped = Some(failure),
            }
        }
        let outcome = Unparked { accepted, refused: dead, by: &self.engine.replica, paced };
        let recorded = within(self.engine, cursor.unparked(&outcome)).await;
        recorded.map_err(|source| self.not_advanced(accepted.len(), source))?;
        if outcome.refused.is_some() {
            self.ready.metrics.dead_lettered();
        }
        Ok(stopped)
    }

    /// What is sent again keeps the rate of all replicas, as all that the cursor sends.
    fn has_rate(&self) -> bool {
        self.ready.sink.min_interval().is_some()
    }

    async fn copied_again(&self, failure: &Failure, letter: &DeadLetter<'_>) -> Result<(), Failure> {
        let Some(letters) = &self.ready.letters else { return Ok(()) };
        dead_letter::copy(&self.ready.config.relay, letters, failure, letter, self.engine.call_deadline).await
    }

    /// A parked row that cannot be read again, as it was parked.
    fn as_parked<'b>(&self, parked: &'b Redrive) -> DeadLetter<'b> {
        let config = &self.ready.config;
        DeadLetter {
            source: config.source.table().to_string(),
            created_at: parked.position.created_at,
            message_id: parked.position.id.clone().unwrap_or_default(),
            sink: config.sink.kind(),
            target: config.sink.target(),
            key: None,
            payload: Payload::None,
            fields: parked.fields.clone(),
            values: parked.values.iter().map(Option::as_deref).collect(),
        }
    }

    /// Records that nothing of a letter could be read to be sent.
    pub(in crate::relay) async fn not_read(
        &self,
        cursor: LockedCursor,
        letter: &Redrive,
        failure: Option<Failure>,
    ) -> Result<TurnOutcome, TurnError> {
        let message_id = letter.position.id.clone();
        match failure.as_ref().filter(|failure| is_refused(failure)) {
            Some(refused) => {
                let refused = Some((letter.id, report::error(refused, None)));
                let outcome = Redriven { accepted: &[], refused, by: &self.engine.replica, paced: false };
                within(self.engine, cursor.redriven(&outcome)).await?;
            }
            None => within(self.engine, cursor.release()).await?,
        }
        Ok(TurnOutcome::Redriven { rows: 0, failure, message_id })
    }

    async fn publish_again(
        &self,
        cursor: &LockedCursor,
        letters: &[Redrive],
        batch: &Batch,
        deadline: Instant,
    ) -> Result<Published, TurnError> {
        let mode = Mode {
            alone: true,
            mark: letters.first().map(mark),
            partitions: self.partitions,
            until: Some(deadline),
            cut: None,
            backlog: false,
        };
        let mut publication = match self.ready.sink.begin_within(mode, cursor.transaction()).await {
            Ok(publication) => publication,
            Err(failure) => return Ok(Published { acknowledged: 0, stopped: Some(failure), suspects: 1 }),
        };
        if let Some(trace) = &self.trace {
            trace.publishes(batch);
        }
        let closed = cursor.closed();
        tokio::select! {
            biased;
            () = closed.cancelled() => return Err(self.lock_lost(publication.acknowledged())),
            () = tokio::time::sleep_until(deadline.into()) => {}
            () = self.engine.cut.cancelled() => {}
            () = async {
                publication.push(batch).await;
                publication.settle().await;
            } => {}
        }
        Ok(publication.finish())
    }
}
