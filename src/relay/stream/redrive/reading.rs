//! Reading a dead letter's row again.

use tokio_postgres::types::ToSql;

use crate::batch::Batch;
use crate::cursor::dead_letter::Redrive;
use crate::database::codec::Raw;
use crate::database::{Error, Loan, sqlstate};
use crate::relay::engine::dead_letter;
use crate::relay::engine::deadline::within;
use crate::relay::engine::unreadable;
use crate::relay::stream::learned::SLOW_READS;
use crate::relay::stream::outcome::TurnError;
use crate::relay::stream::turn::Turn;
use crate::sink::{Class, Failure, Subject};
use crate::source::fetch::{FetchError, Unreadable, WantedRow, columns_stand, too_large};

/// The place of a row is found in this part of a call's time by a server that is not slow itself.
const QUICK: u32 = 10;

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
            Err(error) if sqlstate::is_about_a_read_row(&error) => {
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
}
