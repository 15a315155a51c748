//! Reserve, commit, lock again, settle: rows that are passed before they are sent (`at_most_once`).
//!
//! Promise: a row is sent only under a lock under which the token of its own reservation still stood in the cursor, and the
//! position behind it had been committed durably before. So no two holders ever send the same row, whatever ends in
//! between; what a holder leaves in flight is recorded as unknown by whoever locks next, in one transaction. The types say
//! so: [`LockedCursor::reserve`] consumes the first lock, and only a [`Reserved`] can be settled.
//!
//! Between the two transactions nobody holds the row, and the holder must not pass for dead. So it holds an advisory lock
//! of its session meanwhile, which ends with the session; who finds a token tries that lock first.

use std::time::{Duration, Instant};

use tokio_postgres::types::ToSql;
use tokio_util::sync::CancellationToken;

use super::ErrorReport;
use super::advance::{self, Advance, durability};
use super::ahead;
use super::audit_slices;
use super::dead_letter::{self, DeadLetter};
use super::lock::{self, LockedCursor};
use super::unknown::{self, Unknown};
use crate::database::{Error, Fragile, Loan};
use crate::position::{Position, Timestamp};

/// Names the lock of whoever has rows of a cursor in flight.
macro_rules! holder {
    ($function:literal) => {
        concat!("SELECT pg_catalog.", $function, "(pg_catalog.hashtextextended('outbox-relay token ' || $1::text, 0))")
    };
}

const HOLD: &str = holder!("pg_advisory_lock");
const LET_GO: &str = holder!("pg_advisory_unlock");
const IS_GONE: &str = holder!("pg_try_advisory_xact_lock");

const RESERVE: &str = include_str!("sql/reserve.sql");

const AGAIN: &str = "SELECT token ->> 'token' = $2 FROM outbox.cursor WHERE name = $1 FOR UPDATE";

/// COMMIT is sent with it: see [`advance::deleted`].
const SETTLE: &str = include_str!("sql/reserve_settle.sql");

const FORGET: &str = "UPDATE outbox.cursor SET token = NULL, updated_at = pg_catalog.clock_timestamp() WHERE name = $1";

/// Rows that somebody had in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The replica.
    pub by: String,
    /// How many.
    pub rows: i32,
}

/// What a reservation writes.
#[derive(Clone, Debug)]
pub struct Reservation<'a> {
    /// The position behind all of its rows, and what an advance writes besides.
    pub advance: Advance<'a>,
    /// Names it.
    pub token: &'a str,
    /// Its rows.
    pub rows: &'a [Position],
    /// Its row is this dead letter, sent again.
    pub letter: Option<i64>,
}

/// A reservation that is written and not committed. Dropping it closes the connection, and nothing was reserved.
#[derive(Debug)]
pub struct Reserving {
    name: String,
    token: String,
    xid: String,
    connection: Fragile,
    closed: CancellationToken,
}

/// A committed reservation whose cursor is locked again: its rows may be sent. Dropping it closes the connection, and
/// whoever locks next records them as unknown.
#[derive(Debug)]
pub struct Reserved {
    pub(super) name: String,
    pub(super) token: String,
    pub(super) connection: Fragile,
    closed: CancellationToken,
}

/// How sending ended.
#[derive(Clone, Debug, Default)]
pub struct ReservedEnd<'a> {
    /// Behind the last row that was sent, perhaps, or dead-lettered; `None` is before every row. Nothing behind it was sent.
    pub position: Option<&'a Position>,
    /// The row whose outcome is not known.
    pub unknown: Option<Unknown<'a>>,
    /// The row at [`Self::position`] was not published but dead-lettered, for this reason.
    pub dead: Option<(&'a DeadLetter<'a>, ErrorReport<'a>)>,
    /// This dead letter was not sent; why, when it was refused.
    pub not_sent: Option<(i64, Option<ErrorReport<'a>>)>,
    /// This replica's name.
    pub by: &'a str,
    /// Whether the commit waits for the disk. Without it, a crash of PostgreSQL lists rows as unknown that were sent.
    pub durable: bool,
}

impl LockedCursor {
    /// Writes the reservation.
    ///
    /// # Errors
    /// The database's: nothing was reserved.
    pub async fn reserve(self, reservation: &Reservation<'_>) -> Result<Reserving, Error> {
        let to = &reservation.advance;
        let loan = &self.connection;
        let (hold, reserve) = (loan.prepare_cached(HOLD).await?, loan.prepare_cached(RESERVE).await?);
        let (ending, audit) = (audit_slices::ending(loan, to.audit).await?, to.open_slice());
        let created_at = to.position.map(|position| position.created_at);
        let id = to.position.and_then(|position| position.id.as_deref());
        let relations = to.oids();
        let ids: Vec<&str> = reservation.rows.iter().map(|row| row.id.as_deref().unwrap_or_default()).collect();
        let instants: Vec<Timestamp> = reservation.rows.iter().map(|row| row.created_at).collect();
        let parameters: [&(dyn ToSql + Sync); 19] = [
            &self.name,
            &created_at,
            &id,
            &to.observed_at,
            &to.snapshot,
            &relations,
            &to.seek_applied,
            &to.identity,
            &to.by,
            &to.partitions,
            &reservation.token,
            &ids,
            &instants,
            &to.rests_on.rule,
            &to.rests_on.open_since,
            &to.sweep,
            &to.rests_on.order,
            &to.rests_on.columns,
            &audit,
        ];
        let names: [&(dyn ToSql + Sync); 1] = [&self.name];
        let ((), _, (), row) = tokio::try_join!(
            biased;
            loan.batch_execute("SET LOCAL synchronous_commit TO on"),
            loan.query_one(&hold, &names),
            audit_slices::end(loan, ending.as_ref(), &self.name, to.audit),
            loan.query_opt(&reserve, &parameters),
        )?;
        let Some(row) = row else { return Err(Error::Vanished(self.name)) };
        if let Some(letter) = reservation.letter {
            dead_letter::sent_again(loan, letter, to.by).await?;
        }
        if let Some(late) = &to.late {
            dead_letter::note_late(loan, &self.name, late, to.by).await?;
        }
        if let Some(beyond) = to.beyond {
            ahead::leave(loan, &self.name, to.position, beyond, to.by).await?;
        }
        let xid = row.try_get(0)?;
        let closed = self.closed();
        Ok(Reserving { name: self.name, token: reservation.token.to_owned(), xid, connection: self.connection, closed })
    }

    /// Records the rows that an ended replica had in flight as unknown and commits, which frees the lock; says how many.
    /// None when that replica lives: it is between its two transactions.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown, and the next holder reads what is true.
    pub async fn record_in_flight(self) -> Result<Option<u64>, Error> {
        let gone: bool = self.connection.query_one(IS_GONE, &[&self.name]).await?.try_get(0)?;
        if !gone {
            self.release().await?;
            return Ok(None);
        }
        self.connection.batch_execute("SET LOCAL synchronous_commit TO on").await?;
        let rows = unknown::record_in_flight(&self.connection, &self.name).await?;
        self.connection.execute(FORGET, &[&self.name]).await?;
        self.connection.batch_execute("COMMIT").await?;
        self.connection.give_back();
        Ok(Some(rows))
    }
}

impl Reserving {
    /// The transaction, to ask what became of it when its commit was not answered.
    #[must_use]
    pub fn xid(&self) -> &str {
        &self.xid
    }

    /// Commits, durably, and locks the cursor again. None when somebody else has taken its rows for lost meanwhile.
    ///
    /// # Errors
    /// The database's: whether the commit took place is unknown, and nothing may be sent.
    pub async fn commit(self) -> Result<Option<Reserved>, Error> {
        let Self { name, token, connection, closed, .. } = self;
        let (again, let_go) = (connection.prepare_cached(AGAIN).await?, connection.prepare_cached(LET_GO).await?);
        let cursor: [&(dyn ToSql + Sync); 2] = [&name, &token];
        let names: [&(dyn ToSql + Sync); 1] = [&name];
        // One message: a process that is stopped between the two would hold its advisory lock outside of any transaction,
        // where no time-out ends it.
        let ((), row, _) = tokio::try_join!(
            biased;
            connection.batch_execute("COMMIT; BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"),
            connection.query_opt(&again, &cursor),
            connection.query_one(&let_go, &names),
        )?;
        Reserved { name, token, connection, closed }.if_own(row.as_ref()).await
    }
}

impl Reserved {
    /// Locks a cursor on another connection, after a commit that was not answered and took place. None when somebody else
    /// has the cursor or has taken its rows for lost.
    ///
    /// # Errors
    /// The database's.
    pub async fn again(loan: Loan, name: &str, token: &str) -> Result<Option<Self>, Error> {
        let connection = Fragile::new(loan);
        let closed = connection.closed();
        connection.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await?;
        // The session that is gone may still hold the row for an instant.
        let row = connection.query_opt(AGAIN, &[&name, &token]).await?;
        Self { name: name.to_owned(), token: token.to_owned(), connection, closed }.if_own(row.as_ref()).await
    }

    async fn if_own(self, row: Option<&tokio_postgres::Row>) -> Result<Option<Self>, Error> {
        let own: Option<bool> = row.map(|row| row.try_get(0)).transpose()?.flatten();
        if own == Some(true) {
            return Ok(Some(self));
        }
        self.connection.batch_execute("ROLLBACK").await?;
        self.connection.give_back();
        Ok(None)
    }

    /// Names the reservation.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Ends when the connection does, and the lock with it.
    #[must_use]
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }

    /// See [`LockedCursor::may_probe`]; the first transaction's answer ended with it.
    ///
    /// # Errors
    /// The database's.
    pub async fn may_probe(&self, circuit: &str, looked: Timestamp) -> Result<bool, Error> {
        lock::may_probe(&self.connection, &self.name, circuit, looked).await
    }

    /// Writes how sending ended, takes the token away and commits, which frees the lock; says how long each took.
    ///
    /// # Errors
    /// The database's: unless the commit took place, whoever locks next records all rows as unknown.
    pub async fn settle(self, to: ReservedEnd<'_>) -> Result<[Duration; 2], Error> {
        let begun = Instant::now();
        if let Some(unknown) = &to.unknown {
            unknown::record(&self.connection, &self.name, &self.token, unknown, to.by).await?;
        }
        if let Some((letter, error)) = &to.dead {
            dead_letter::bury(&self.connection, &self.name, letter, error, to.by).await?;
        }
        if let Some((letter, refused)) = &to.not_sent {
            dead_letter::not_sent(&self.connection, *letter, refused.as_ref(), to.by).await?;
        }
        let statement = self.connection.prepare_cached(SETTLE).await?;
        let created_at = to.position.map(|position| position.created_at);
        let id = to.position.and_then(|position| position.id.as_deref());
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.name, &created_at, &id, &self.token];
        let update = async {
            self.connection.query_one(&statement, &parameters).await?;
            Ok(begun.elapsed())
        };
        let settled = tokio::try_join!(
            biased;
            self.connection.batch_execute(durability(to.durable)),
            update,
            self.connection.batch_execute("COMMIT"),
        );
        let ((), settled, ()) = settled.map_err(|error| advance::deleted(&self.name, error))?;
        self.connection.give_back();
        Ok([settled, begun.elapsed().saturating_sub(settled)])
    }
}

/// Reads what is in flight from two columns: whose, and how many.
pub(super) fn in_flight(row: &tokio_postgres::Row, first: usize) -> Result<Option<InFlight>, tokio_postgres::Error> {
    let by: Option<String> = row.try_get(first)?;
    let rows: Option<i32> = row.try_get(first + 1)?;
    Ok(rows.map(|rows| InFlight { by: by.unwrap_or_default(), rows }))
}
