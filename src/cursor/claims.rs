//! Claims of due work: what becomes of rows that a replica has claimed.
//!
//! Promise: who no longer has the claim's token changes nothing. A claim is made in the transaction that locks the
//! relay's cursor ([`super::LockedCursor::claim`]); it ends by itself only after its claimant has given up.

use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::LockedCursor;
use super::advance::durability;
use super::dead_letter::{self, DeadLetter};
use super::status::{self, ErrorReport};
use crate::database::{Error, Fragile, Loan, Session};
use crate::position::Timestamp;

mod withdraw;

pub use withdraw::Withdrawal;

const CLAIMED: &str = include_str!("sql/claims_claimed.sql");

const EXPIRE: &str = include_str!("sql/claims_expire.sql");

/// Claims of rows that have gone or are no longer due: nobody takes them up again.
const PRUNE: &str = include_str!("sql/claims_prune.sql");

/// The lanes of claims that have run out before their rows were recorded as sent.
const LAPSE: &str = include_str!("sql/claims_lapse.sql");

const DONE: &str = "DELETE FROM outbox.claim WHERE relay = $1 AND key = $2::text[] AND token = $3";

const LETTERS: &str = "SELECT message_id, created_at FROM outbox.dead_letter WHERE cursor = $1 AND state = 'redriving'";

const WAIT: &str = include_str!("sql/claims_wait.sql");

const SETTLE: &str = include_str!("sql/claims_settle.sql");

const KEEP: &str = include_str!("sql/claims_keep.sql");

const REDRIVEN: &str = include_str!("sql/claims_redriven.sql");

const WAITING: &str = include_str!("sql/claims_waiting.sql");

/// A claimed row, named for what follows.
#[derive(Clone, Copy, Debug)]
pub struct Claimed<'a> {
    /// Its relay.
    pub relay: &'a str,
    /// Its key columns' text.
    pub key: &'a [String],
    /// Its claim's token.
    pub token: &'a str,
}

/// A statement that claims, with its parameters.
#[derive(Clone, Copy)]
pub struct Taking<'a> {
    /// The statement.
    pub sql: &'a str,
    /// Its parameters.
    pub parameters: &'a [&'a (dyn ToSql + Sync)],
}

impl std::fmt::Debug for Taking<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Taking").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl LockedCursor {
    /// Records claims that have run out while their rows were being sent as unknown; their keys.
    ///
    /// # Errors
    /// The database's.
    pub async fn expire_claims(&self) -> Result<Vec<Vec<String>>, Error> {
        let statement = self.connection.prepare_cached(EXPIRE).await?;
        let rows = self.connection.query(&statement, &[&self.name]).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }

    /// Frees the lanes of claims that have run out: another row of theirs may be first by now.
    ///
    /// # Errors
    /// The database's.
    pub async fn lapse_claims(&self) -> Result<(), Error> {
        let statement = self.connection.prepare_cached(LAPSE).await?;
        self.connection.execute(&statement, &[&self.name]).await?;
        Ok(())
    }

    /// Forgets claims of rows that nobody takes up any more, unless they are marked: then the claim is all that knows of them.
    ///
    /// # Errors
    /// The database's.
    pub async fn prune_claims(&self) -> Result<u64, Error> {
        let statement = self.connection.prepare_cached(PRUNE).await?;
        Ok(self.connection.execute(&statement, &[&self.name]).await?)
    }

    /// The dead letters that an operator wants sent again: their messages' ids, and when their rows were due.
    ///
    /// # Errors
    /// The database's.
    pub async fn letters_to_send(&self) -> Result<Vec<(String, Timestamp)>, Error> {
        let statement = self.connection.prepare_cached(LETTERS).await?;
        let rows = self.connection.query(&statement, &[&self.name]).await?;
        let letter = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        Ok(rows.iter().map(letter).collect::<Result<_, tokio_postgres::Error>>()?)
    }

    /// Claims rows; nothing is claimed before [`Self::claimed`].
    ///
    /// # Errors
    /// The database's.
    pub async fn claim(&self, taking: Taking<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.connection.prepare_cached(taking.sql).await?;
        Ok(self.connection.query(&statement, taking.parameters).await?)
    }

    /// Commits, which frees the lock; `durable` when the claim is also the mark.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown, and nothing of it may be sent.
    pub async fn claimed(self, by: &str, durable: bool) -> Result<(), Error> {
        let statement = self.connection.prepare_cached(CLAIMED).await?;
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.name, &by];
        let ((), updated, ()) = tokio::try_join!(
            biased;
            self.connection.batch_execute(durability(durable)),
            self.connection.execute(&statement, &parameters),
            self.connection.batch_execute("COMMIT"),
        )?;
        if updated != 1 {
            return Err(Error::Vanished(self.name));
        }
        self.connection.give_back();
        Ok(())
    }
}

/// How many rows of a relay wait after a failure, in how many seconds the first of them is retried, and the code of its
/// failure; none when none waits.
///
/// # Errors
/// The database's.
pub async fn waiting(session: &Session, relay: &str) -> Result<Option<(i64, f64, String)>, Error> {
    let Some(row) = session.query_opt(WAITING, &[&relay]).await? else { return Ok(None) };
    Ok(Some((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)))
}

/// One transaction that records what became of claims.
#[derive(Debug)]
pub struct Settlement {
    connection: Fragile,
}

impl Settlement {
    /// Begins.
    ///
    /// # Errors
    /// The database's.
    pub async fn begin(loan: Loan, durable: bool) -> Result<Self, Error> {
        let connection = Fragile::new(loan);
        tokio::try_join!(
            biased;
            connection.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"),
            connection.batch_execute(durability(durable)),
        )?;
        Ok(Self { connection })
    }

    /// Runs a statement of the source.
    ///
    /// # Errors
    /// The database's.
    pub async fn query(&self, taking: Taking<'_>) -> Result<Vec<Row>, Error> {
        let statement = self.connection.prepare_cached(taking.sql).await?;
        Ok(self.connection.query(&statement, taking.parameters).await?)
    }

    /// The row was sent, or is not to be sent: its claim ends.
    ///
    /// # Errors
    /// The database's.
    pub async fn done(&self, row: Claimed<'_>) -> Result<(), Error> {
        self.execute(DONE, &[&row.relay, &row.key, &row.token]).await
    }

    /// The row was not sent and is retried after `pause`; `attempts` failures are added.
    ///
    /// # Errors
    /// The database's.
    pub async fn wait(
        &self,
        row: Claimed<'_>,
        error: &ErrorReport<'_>,
        attempts: i32,
        pause: Duration,
    ) -> Result<(), Error> {
        let (error, seconds) = (status::json(error), pause.as_secs_f64());
        self.execute(WAIT, &[&row.relay, &row.key, &row.token, &attempts, &seconds, &error]).await
    }

    /// The row was sent or not, nobody knows, and it is not sent again.
    ///
    /// # Errors
    /// The database's.
    pub async fn unknown(&self, row: Claimed<'_>, error: &ErrorReport<'_>) -> Result<(), Error> {
        self.execute(SETTLE, &[&row.relay, &row.key, &row.token, &"unknown", &status::json(error)]).await
    }

    /// The row is dead-lettered.
    ///
    /// # Errors
    /// The database's.
    pub async fn bury(
        &self,
        row: Claimed<'_>,
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
    pub async fn keep(&self, row: Claimed<'_>, lease: Duration) -> Result<bool, Error> {
        self.changed(KEEP, &[&row.relay, &row.key, &row.token, &lease.as_secs_f64()]).await
    }

    /// The dead letter of the row that was due then, which an operator wanted sent again, was accepted.
    ///
    /// # Errors
    /// The database's.
    pub async fn redriven(&self, relay: &str, message_id: &str, due_at: Timestamp, by: &str) -> Result<(), Error> {
        self.execute(REDRIVEN, &[&relay, &message_id, &due_at, &by]).await
    }

    /// The transaction, for what changes this database in it.
    #[must_use]
    pub fn transaction(&self) -> &ClientWrapper {
        &self.connection
    }

    /// Commits.
    ///
    /// # Errors
    /// The database's; whether it took place is then unknown.
    pub async fn commit(self) -> Result<(), Error> {
        self.connection.batch_execute("COMMIT").await?;
        self.connection.give_back();
        Ok(())
    }

    async fn execute(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<(), Error> {
        self.changed(sql, parameters).await.map(drop)
    }

    /// Whether the statement has changed a row.
    pub(super) async fn changed(&self, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<bool, Error> {
        let statement = self.connection.prepare_cached(sql).await?;
        Ok(self.connection.execute(&statement, parameters).await? > 0)
    }
}
