//! Dead letters that an operator redrives.

use std::time::Instant;

use tokio_postgres::types::ToSql;

use crate::batch::Batch;
use crate::cursor::LockedCursor;
use crate::cursor::dead_letter::{DeadLetter, Payload, Redrive, Redriven};
use crate::cursor::parked::{RefusedAgain, Unparked};
use crate::database::codec::Raw;
use crate::database::{Error, Loan, sqlstate};
use crate::message::Message;
use crate::relay::engine::dead_letter;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::{ForMessage, Sender, disposition};
use crate::relay::engine::report;
use crate::relay::engine::unreadable;
use crate::relay::stream::learned::SLOW_READS;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::publish_decision::letter;
use crate::relay::stream::resend::Resend;
use crate::relay::stream::turn::Turn;
use crate::sink::{Class, Failure, Mark, Mode, Published, Subject};
use crate::source::fetch::{FetchError, Unreadable, WantedRow, columns_stand, too_large, types_stand};

/// How many dead letters one turn sends again at most: each waits for the one before.
const REDRIVES: usize = 100;

/// The place of a row is found in this part of a call's time by a server that is not slow itself.
const QUICK: u32 = 10;

/// Whether a dead letter that was sent again stays one.
pub(in crate::relay) fn is_refused(failure: &Failure) -> bool {
    disposition(Sender::Redrive { passed: false }, failure).message == ForMessage::Fails
}

/// What receivers see of it: a row that came late is not sent again, but for the first time.
pub(in crate::relay) const fn mark(letter: &Redrive) -> Mark {
    if letter.late { Mark::Late } else { Mark::Replayed }
}

/// The result of reading a dead letter's row again.
enum Again {
    /// It was appended.
    Read,
    /// It is larger than the relay reads.
    Large(Unreadable),
    /// The row is gone, and what was read of it then is of no use.
    Gone,
    /// The table has other columns than the relay knows yet.
    Changed,
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
        let outcome = Redriven { accepted: &accepted, refused, by: &self.engine.replica };
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
        let outcome = Unparked { accepted, refused: dead, by: &self.engine.replica };
        let recorded = within(self.engine, cursor.unparked(&outcome)).await;
        recorded.map_err(|source| self.not_advanced(accepted.len(), source))?;
        if outcome.refused.is_some() {
            self.ready.metrics.dead_lettered();
        }
        Ok(stopped)
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

    /// The same as [`Self::read_again`]. A row that takes too long again and again, although PostgreSQL finds its place quickly, stays a
    /// dead letter, and no other waits for it.
    pub(in crate::relay) async fn read_in_time(
        &mut self,
        reader: &Loan,
        letter: &Redrive,
        batch: &mut Batch,
    ) -> Result<Option<Failure>, TurnError> {
        let read = within(self.engine, self.read_again(reader, letter, batch)).await.map_err(FetchError::Database);
        if !read.as_ref().is_err_and(FetchError::is_too_slow) {
            self.learned.slow_resends = 0;
            return Ok(read?);
        }
        let (position, limit) = (letter.position.clone(), self.engine.call_deadline);
        let failure = unreadable::failure(&Unreadable::Slow { position, limit });
        self.learned.slow_resends = self.learned.slow_resends.saturating_add(1);
        if self.learned.slow_resends >= SLOW_READS && self.is_found_quickly(letter).await? {
            self.learned.slow_resends = 0;
            return Ok(Some(failure));
        }
        // A server that is slow says nothing of the row.
        let hint = "The relay retries by itself: see what keeps PostgreSQL from answering in time".to_owned();
        Ok(Some(Failure { class: Class::Retry, hint, ..failure }.about(Subject::Elsewhere)))
    }

    /// Whether PostgreSQL finds the place of a row, which takes none of its values, in a tenth of a call's time. On a connection of its own: the
    /// other may be at the row still.
    async fn is_found_quickly(&self, letter: &Redrive) -> Result<bool, TurnError> {
        let connection = within(self.engine, self.engine.connection()).await?;
        let sql = self.ready.shape.row_sql(&[], self.ready.config.turn.max_row_bytes);
        let id = letter.position.id.as_deref().unwrap_or_default();
        let statement = within(self.engine, async { Ok(connection.prepare_cached(&sql).await?) }).await?;
        let parameters: [&(dyn ToSql + Sync); 2] = [&letter.position.created_at, &id];
        let found =
            tokio::time::timeout(self.engine.call_deadline / QUICK, connection.query_opt(&statement, &parameters));
        Ok(found.await.is_ok_and(|found| found.is_ok()))
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
                let outcome = Redriven { accepted: &[], refused, by: &self.engine.replica };
                within(self.engine, cursor.redriven(&outcome)).await?;
            }
            None => within(self.engine, cursor.release()).await?,
        }
        Ok(TurnOutcome::Redriven { rows: 0, failure, message_id })
    }

    /// Appends the row as it is now, so that a fixed one goes out fixed; a row that is gone, as it was read then. Says
    /// why when neither can be had.
    pub(in crate::relay) async fn read_again(
        &self,
        reader: &Loan,
        letter: &Redrive,
        batch: &mut Batch,
    ) -> Result<Option<Failure>, Error> {
        let read = self.read_row(reader, letter, batch).await;
        if let Err(error) = &read {
            let wanted = WantedRow {
                shape: &self.ready.shape,
                fields: &self.ready.fields,
                most: self.ready.config.turn.max_row_bytes,
                position: &letter.position,
            };
            if let Some(row) = too_large(reader, wanted, error).await? {
                return Ok(Some(unreadable::failure(&row)));
            }
        }
        match read {
            Ok(Again::Read) => Ok(None),
            Ok(Again::Large(row)) => Ok(Some(unreadable::failure(&row))),
            Ok(Again::Changed) => {
                let message = "The table's columns have changed since the relay read the catalog";
                let hint = "The relay retries by itself, with the columns of now";
                Ok(Some(Failure::of(Class::Retry, "columns_changed", message, hint)))
            }
            Ok(Again::Gone) => Ok(Some(Failure::of(
                Class::Poison,
                "row_gone",
                "The row is gone, and what was read of it then is not what the relay reads now",
                "Give the relay the payload, key and headers back that it had, or discard the dead letter.",
            ))),
            // About this row or its id, not about the server: the others shall not wait for it.
            Err(error) if ["22", "42"].contains(&error.state_class()) => {
                let hint = "Fix the row or what the relay reads of it, or discard the dead letter.";
                Ok(Some(Failure::of(Class::Poison, &sqlstate::word(&error), error.to_string(), hint)))
            }
            Err(error) => Err(error),
        }
    }

    async fn read_row(&self, reader: &Loan, letter: &Redrive, batch: &mut Batch) -> Result<Again, Error> {
        let fields = &self.ready.fields;
        let most = self.ready.config.turn.max_row_bytes;
        let sql = reader.prepare_cached(&self.ready.shape.row_sql(fields, most)).await?;
        let Some(id) = &letter.position.id else { return Ok(Again::Gone) };
        let row = reader.query_opt(&sql, &[&letter.position.created_at, id]).await?;
        let Some(row) = row else {
            let same = letter.fields == dead_letter::words(fields) && letter.values.len() == fields.len();
            if same {
                batch.push(letter.position.created_at, id, letter.values.iter().map(Option::as_deref));
            }
            return Ok(if same { Again::Read } else { Again::Gone });
        };
        let values = (0..fields.len())
            .map(|field| row.try_get::<_, Option<Raw<'_>>>(field + 2).map(|value| value.map(|raw| raw.0)))
            .collect::<Result<Vec<_>, _>>()?;
        // After the row: a column that came later is in the next reading.
        if !columns_stand(reader, &self.ready.shape, fields).await? {
            return Ok(Again::Changed);
        }
        let bytes = values.iter().flatten().map(|value| value.len()).sum();
        if bytes > most {
            return Ok(Again::Large(Unreadable::large(letter.position.clone(), bytes, most)));
        }
        batch.push(letter.position.created_at, id, values);
        Ok(Again::Read)
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
