//! What cursors have passed between two places, and waits to be compared with the table, as rows of `outbox.audit_slice`.
//!
//! Promise: a slice is written in the transaction that passes its last row, and what is found late is added to it in the transaction
//! that makes letters of it: it is found once, by whichever replica. Who compares a slice has it for a while, and another after that.

use std::time::Duration;

use tokio_postgres::types::ToSql;

use super::dead_letter::{self, LateRows};
use super::position;
use crate::audit::{Recorded, Sums};
use crate::database::{Error, Fragile, Loan, Session};
use crate::position::{Position, Timestamp};

const END: &str = include_str!("sql/audit_end.sql");
const TAKE: &str = include_str!("sql/audit_take.sql");
const FOUND: &str = "UPDATE outbox.audit_slice SET sums = $3, row_count = $4 WHERE id = $1 AND sums = $2";
const NEXT: &str = include_str!("sql/audit_next.sql");
const COMPARED: &str = "DELETE FROM outbox.audit_slice WHERE id = $1";
const TOO_OLD: &str = include_str!("sql/audit_too_old.sql");

/// What an advance records.
#[derive(Clone, Copy, Debug)]
pub struct Audited<'a> {
    /// The slice that goes on, and those that have ended.
    pub recorded: &'a Recorded,
    /// What the relay reads: of what another one passes, nothing is said.
    pub reads: &'a str,
}

/// A slice that is to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSlice {
    /// Its number.
    pub id: i64,
    /// Whose it is.
    pub cursor: String,
    /// What the relay read that passed its rows.
    pub reads: String,
    /// After this place.
    pub after: Position,
    /// Up to this one.
    pub up_to: Position,
    /// Over the ids of its rows; none of what another version wrote.
    pub sums: Option<Sums>,
    /// How often it has been compared.
    pub checks: i32,
}

pub(super) async fn end(loan: &Fragile, cursor: &str, audited: &Audited<'_>) -> Result<(), Error> {
    for slice in &audited.recorded.ended {
        let statement = loan.prepare_cached(END).await?;
        let (after, up_to) = (&slice.after, &slice.up_to);
        let (rows, sums) = (row_count(&slice.sums), slice.sums.to_bytes());
        let parameters: [&(dyn ToSql + Sync); 8] =
            [&cursor, &audited.reads, &after.created_at, &after.id, &up_to.created_at, &up_to.id, &rows, &sums];
        loan.execute(&statement, &parameters).await?;
    }
    Ok(())
}

fn row_count(sums: &Sums) -> i64 {
    i64::try_from(sums.rows()).unwrap_or(i64::MAX)
}

/// Another table, or other partitions, are taken over: the slices say nothing of these.
pub(super) async fn forget(loan: &Fragile, cursor: &str) -> Result<(), Error> {
    loan.execute("DELETE FROM outbox.audit_slice WHERE cursor = $1", &[&cursor]).await?;
    Ok(())
}

/// Takes the slice of these cursors that has waited longest, if one is due: no other replica takes it before `lease` is over.
///
/// # Errors
/// The database's.
pub async fn take(session: &Session, cursors: &[&str], lease: Duration) -> Result<Option<EndedSlice>, Error> {
    let statement = session.prepare_cached(TAKE).await?;
    let Some(row) = session.query_opt(&statement, &[&cursors, &lease.as_secs_f64()]).await? else { return Ok(None) };
    let place = |at: Timestamp, id| position(Some(at), id).unwrap_or(Position { created_at: at, id: None });
    Ok(Some(EndedSlice {
        id: row.try_get(0)?,
        cursor: row.try_get(1)?,
        reads: row.try_get(2)?,
        after: place(row.try_get(3)?, row.try_get(4)?),
        up_to: place(row.try_get(5)?, row.try_get(6)?),
        sums: Sums::from_bytes(row.try_get(7)?),
        checks: row.try_get(8)?,
    }))
}

/// It has been compared, and is again so long after its end; without that never again.
///
/// # Errors
/// The database's.
pub async fn compared(session: &Session, id: i64, next: Option<Duration>) -> Result<(), Error> {
    match next {
        Some(after) => session.execute(&session.prepare_cached(NEXT).await?, &[&id, &after.as_secs_f64()]).await?,
        None => session.execute(&session.prepare_cached(COMPARED).await?, &[&id]).await?,
    };
    Ok(())
}

/// Makes letters of rows that the table has and the slice had not, and adds them to it. False when another has been quicker.
///
/// # Errors
/// The database's; then nothing is written, or all of it.
pub async fn found(
    loan: Loan,
    slice: (i64, &Sums),
    with_them: &Sums,
    cursor: &str,
    late: &LateRows<'_>,
    by: &str,
) -> Result<bool, Error> {
    let connection = Fragile::new(loan);
    connection
        .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO on")
        .await?;
    let (id, had) = (slice.0, slice.1.to_bytes());
    let parameters: [&(dyn ToSql + Sync); 4] = [&id, &had, &with_them.to_bytes(), &row_count(with_them)];
    let is_first = connection.execute(FOUND, &parameters).await? == 1;
    if is_first {
        dead_letter::note_late(&connection, cursor, late, by).await?;
    }
    connection.batch_execute(if is_first { "COMMIT" } else { "ROLLBACK" }).await?;
    connection.give_back();
    Ok(is_first)
}

/// Deletes slices of these cursors that could not be compared in time; how many of which cursor.
///
/// # Errors
/// The database's.
pub async fn too_old(session: &Session, cursors: &[&str]) -> Result<Vec<(String, u64)>, Error> {
    let rows = session.query(&session.prepare_cached(TOO_OLD).await?, &[&cursors]).await?;
    let count =
        |row: &tokio_postgres::Row| Ok((row.try_get(0)?, u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0)));
    rows.iter().map(count).collect::<Result<_, tokio_postgres::Error>>().map_err(Error::from)
}
