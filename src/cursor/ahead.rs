//! Rows beyond a cursor's position that were acknowledged, while an earlier row of another lane was not (`[relay.turn] in_flight`).
//!
//! Promise: a row stands in `outbox.ahead` only if the receiver has acknowledged it, or if it must not be sent again whatever became of
//! it (`at_most_once`, where it is written before it is sent, and deleted if it provably was not). A turn passes such rows without sending them;
//! they are deleted as the position passes them. A move back makes them count no longer, because it has rows sent again: each
//! names the last change that was applied when it was written.
//!
//! The turn that runs writes them by another session, as it does its progress, and with its end. Rows that are read before their
//! turn are another matter: `relay/stream/read_ahead.rs`.

use std::collections::HashSet;
use std::time::Duration;

use tokio_postgres::types::ToSql;

use super::advance::durability;
use super::lock::LockedCursor;
use super::reserve::Reserved;
use super::turn_progress::{self, TurnFacts};
use super::unknown::{self, Unknown};
use crate::database::{Error, Fragile, Session};
use crate::position::{Position, Timestamp};

const LOAD: &str = include_str!("sql/ahead_load.sql");
const RECORD: &str = include_str!("sql/ahead_record.sql");
const ADD: &str = include_str!("sql/ahead_add.sql");
const KEEP: &str = "UPDATE outbox.ahead SET seek = $3 WHERE cursor = $1 AND seek = $2";
const NOT_SENT: &str = include_str!("sql/ahead_not_sent.sql");
const SETTLED: &str = include_str!("sql/ahead_settled.sql");
const PASSED: &str = include_str!("sql/ahead_passed.sql");

/// Rows of one cursor, by instant and id.
pub type AheadRows = HashSet<(Timestamp, String)>;

/// What a turn leaves beyond the position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Rows that it has sent, and that are not passed by its advance.
    pub rows: Vec<Position>,
    /// No row stands beyond the position afterwards: all that is remembered of others is deleted.
    pub is_last: bool,
}

/// How far a running turn has come: `rows` rows up to `prefix`, all acknowledged, if that may be recorded, and single rows beyond.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    /// The end of the acknowledged prefix, and how many rows it has.
    pub prefix: Option<(usize, Position)>,
    /// Acknowledged rows that the prefix does not contain.
    pub beyond: Vec<Position>,
}

/// How the sending of rows ended that stand in `outbox.ahead` because they were reserved (`at_most_once`).
#[derive(Clone, Debug)]
pub struct AheadSettlement<'a> {
    /// Rows that provably were not sent: they come again.
    pub not_sent: &'a [Position],
    /// Rows whose outcome is not known.
    pub unknown: &'a [Unknown<'a>],
    /// This replica's name.
    pub by: &'a str,
}

/// Records how far a turn has come. Does nothing, and says false, when another transaction has locked the cursor since.
///
/// # Errors
/// The database's, or another server; nothing depends on it but how many rows a crash repeats.
pub async fn record(
    session: &Session,
    facts: &TurnFacts,
    reached: &Reached,
    snapshot: Option<&str>,
) -> Result<bool, Error> {
    facts.lock.server.same_as(&session.server)?;
    let statement = session.prepare_cached(RECORD).await?;
    let (rows, end) = reached.prefix.as_ref().map_or((0, None), |(rows, end)| (*rows, Some(end)));
    let rows = i64::try_from(rows).unwrap_or(i64::MAX);
    let (created_at, id) = (end.map(|end| end.created_at), end.and_then(|end| end.id.as_deref()));
    let (instants, ids) = columns(&reached.beyond);
    let mut parameters = turn_progress::parameters(facts, (&created_at, &id), &rows, &snapshot).to_vec();
    parameters.extend([&instants as &(dyn ToSql + Sync), &ids]);
    Ok(session.query_one(&statement, &parameters).await?.try_get(0)?)
}

/// Writes what a turn leaves beyond the position in the transaction that advances to it.
pub(super) async fn leave(
    loan: &Fragile,
    cursor: &str,
    position: Option<&Position>,
    beyond: &Beyond,
    by: &str,
) -> Result<(), Error> {
    let statement = loan.prepare_cached(PASSED).await?;
    let passed = position.map(|position| position.created_at);
    let id = position.and_then(|position| position.id.as_deref());
    loan.execute(&statement, &[&cursor, &beyond.is_last, &passed, &id]).await?;
    if !beyond.rows.is_empty() {
        let statement = loan.prepare_cached(ADD).await?;
        let (instants, ids) = columns(&beyond.rows);
        loan.execute(&statement, &[&cursor, &instants, &ids, &by]).await?;
    }
    Ok(())
}

/// What is ahead stays acknowledged when a change moves the position forward, or leaves it.
pub(super) async fn keep(loan: &Fragile, cursor: &str, (before, now): (i64, i64)) -> Result<(), Error> {
    loan.execute(KEEP, &[&cursor, &before, &now]).await?;
    Ok(())
}

fn columns(rows: &[Position]) -> (Vec<Timestamp>, Vec<&str>) {
    rows.iter().filter_map(|row| Some((row.created_at, row.id.as_deref()?))).unzip()
}

impl Reserved {
    /// Writes how sending ended. Nothing of it counts before the cursor that this gives back advances or is released, which commits;
    /// without that, all of the reservation is recorded as unknown.
    ///
    /// # Errors
    /// The database's.
    pub async fn settle_ahead(self, identity: &str, to: &AheadSettlement<'_>) -> Result<LockedCursor, Error> {
        let Self { name, token, connection, .. } = self;
        connection.batch_execute(durability(true)).await?;
        for unknown in to.unknown {
            unknown::record(&connection, &name, &token, unknown, to.by).await?;
        }
        if !to.not_sent.is_empty() {
            let statement = connection.prepare_cached(NOT_SENT).await?;
            let (instants, ids) = columns(to.not_sent);
            connection.execute(&statement, &[&name, &instants, &ids]).await?;
        }
        if connection.execute(SETTLED, &[&name, &token]).await? != 1 {
            return Err(Error::Vanished(name));
        }
        LockedCursor::settling(connection, &name, identity).await
    }
}

impl LockedCursor {
    /// The rows beyond the position that were acknowledged, and how long ago the last of them was recorded.
    ///
    /// # Errors
    /// The database's.
    pub async fn rows_ahead(&self) -> Result<(AheadRows, Option<Duration>), Error> {
        if !self.has_ahead {
            return Ok((AheadRows::default(), None));
        }
        let statement = self.connection.prepare_cached(LOAD).await?;
        let rows = self.connection.query(&statement, &[&self.name]).await?;
        let rested: Option<i64> = rows.first().map(|row| row.try_get(2)).transpose()?;
        let rested = rested.map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or(0)));
        let ahead = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, Error>>()?;
        Ok((ahead, rested))
    }

    /// Commits what a turn leaves beyond a position that does not move, which frees the lock.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown.
    pub async fn leave_ahead(self, beyond: &Beyond, durable: bool, by: &str) -> Result<(), Error> {
        leave(&self.connection, &self.name, None, beyond, by).await?;
        self.connection.batch_execute(&format!("{}; COMMIT", durability(durable))).await?;
        self.connection.give_back();
        Ok(())
    }
}
