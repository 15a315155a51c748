//! Claims of due rows (`[relay.source.pending]`), as rows of `outbox.claim`: what becomes of rows that a replica has claimed.
//!
//! Promise: who no longer has the claim's token changes nothing. A claim is made in the transaction that locks the
//! relay's cursor ([`LockedCursor::claim`]); it ends by itself only after its claimant has given up.

use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Settlement;
use crate::cursor::dead_letter::{self, DeadLetter};
use crate::cursor::status;
use crate::cursor::{ErrorReport, LockedCursor};
use crate::database::Error;
use crate::position::Timestamp;

mod names;
mod withdraw;

pub use withdraw::Withdrawal;

const EXPIRE: &str = include_str!("sql/due_rows_expire.sql");

/// Claims of rows that have gone or are no longer due: no replica takes them up again.
const PRUNE: &str = include_str!("sql/due_rows_prune.sql");

/// The lanes of claims that have run out before their rows were recorded as sent.
const LAPSE: &str = include_str!("sql/due_rows_lapse.sql");

const DONE: &str = "DELETE FROM outbox.claim WHERE relay = $1 AND key = $2::text[] AND token = $3";

const LETTERS: &str = "SELECT message_id, created_at FROM outbox.dead_letter WHERE cursor = $1 AND state = 'redriving'";

const WAIT: &str = include_str!("sql/due_rows_wait.sql");

const SETTLE: &str = include_str!("sql/due_rows_settle.sql");

const KEEP: &str = include_str!("sql/due_rows_keep.sql");

const REDRIVEN: &str = include_str!("sql/due_rows_redriven.sql");

/// A claimed row, named for what follows.
#[derive(Clone, Copy, Debug)]
pub struct ClaimedRow<'a> {
    /// Its relay.
    pub relay: &'a str,
    /// Its key columns' text.
    pub key: &'a [String],
    /// Its claim's token.
    pub token: &'a str,
}

impl LockedCursor {
    /// Records claims that have run out while their rows were being sent as unknown; their keys.
    ///
    /// # Errors
    /// The database's.
    pub async fn expire_claims(&self) -> Result<Vec<Vec<String>>, Error> {
        let statement = self.transaction().prepare_cached(EXPIRE).await?;
        let rows = self.transaction().query(&statement, &[&self.name()]).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }

    /// Frees the lanes of claims that have run out: another row of theirs may be first by now.
    ///
    /// # Errors
    /// The database's.
    pub async fn lapse_claims(&self) -> Result<(), Error> {
        let statement = self.transaction().prepare_cached(LAPSE).await?;
        self.transaction().execute(&statement, &[&self.name()]).await?;
        Ok(())
    }

    /// Forgets claims of rows that no replica takes up any more, unless they are marked: then only the claim knows of them.
    ///
    /// # Errors
    /// The database's.
    pub async fn prune_claims(&self) -> Result<u64, Error> {
        let statement = self.transaction().prepare_cached(PRUNE).await?;
        Ok(self.transaction().execute(&statement, &[&self.name()]).await?)
    }

    /// The dead letters that an operator wants sent again: their messages' ids, and when their rows were due.
    ///
    /// # Errors
    /// The database's.
    pub async fn letters_to_send(&self) -> Result<Vec<(String, Timestamp)>, Error> {
        let statement = self.transaction().prepare_cached(LETTERS).await?;
        let rows = self.transaction().query(&statement, &[&self.name()]).await?;
        let letter = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        Ok(rows.iter().map(letter).collect::<Result<_, tokio_postgres::Error>>()?)
    }
}

impl Settlement {
    /// The row was sent, or is not to be sent: its claim ends.
    ///
    /// # Errors
    /// The database's.
    pub async fn done(&self, row: ClaimedRow<'_>) -> Result<(), Error> {
        self.execute(DONE, &[&row.relay, &row.key, &row.token]).await
    }

    /// The row was not sent and is retried after `pause`; `attempts` failures are added.
    ///
    /// # Errors
    /// The database's.
    pub async fn wait(
        &self,
        row: ClaimedRow<'_>,
        error: &ErrorReport<'_>,
        attempts: i32,
        pause: Duration,
    ) -> Result<(), Error> {
        let (error, seconds) = (status::json(error), pause.as_secs_f64());
        self.execute(WAIT, &[&row.relay, &row.key, &row.token, &attempts, &seconds, &error]).await
    }

    /// Whether the row was sent is unknown, and it is not sent again.
    ///
    /// # Errors
    /// The database's.
    pub async fn unknown(&self, row: ClaimedRow<'_>, error: &ErrorReport<'_>) -> Result<(), Error> {
        self.execute(SETTLE, &[&row.relay, &row.key, &row.token, &"unknown", &status::json(error)]).await
    }

    /// The row is dead-lettered.
    ///
    /// # Errors
    /// The database's.
    pub async fn bury(
        &self,
        row: ClaimedRow<'_>,
        letter: &DeadLetter<'_>,
        error: &ErrorReport<'_>,
        by: &str,
    ) -> Result<(), Error> {
        let statement = self.connection.prepare_cached(SETTLE).await?;
        let error_json = status::json(error);
        let parameters: [&(dyn ToSql + Sync); 5] = [&row.relay, &row.key, &row.token, &"dead", &error_json];
        if self.connection.execute(&statement, &parameters).await? == 1 {
            dead_letter::bury(&self.connection, row.relay, letter, error, by).await?;
        }
        Ok(())
    }

    /// The claim lasts for this long from now: the row was sent, and cannot be marked yet. False when another replica has
    /// taken the row.
    ///
    /// # Errors
    /// The database's.
    pub async fn keep(&self, row: ClaimedRow<'_>, lease: Duration) -> Result<bool, Error> {
        self.changed(KEEP, &[&row.relay, &row.key, &row.token, &lease.as_secs_f64()]).await
    }

    /// The dead letter of the row that was due then, which an operator wanted sent again, was accepted.
    ///
    /// # Errors
    /// The database's.
    pub async fn redriven(&self, relay: &str, message_id: &str, due_at: Timestamp, by: &str) -> Result<(), Error> {
        self.execute(REDRIVEN, &[&relay, &message_id, &due_at, &by]).await
    }
}
