//! What cursors have passed between two places, as rows of `outbox.audit_slice`: they wait to be compared with the table, and then for
//! `verify`.
//!
//! Promise: a slice is written in the transaction that passes its last row, and what is found late is added to it in the transaction
//! that makes letters of it: it is found once, by whichever replica. Who compares a slice has it for a while, and another after that.
//! Of one that is compared no more, `check_at` is when it may be deleted, and none is deleted before an earlier one of its cursor: what
//! is not there behind a slice was not recorded.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;

use super::dead_letter::{self, LateRows};
use super::rule::Halting;
use super::{position, status};
use crate::audit::{MADE_UP_FOR, Recorded, Slice, Sums, Unrecorded};
use crate::database::{Error, Fragile, Loan, Session};
use crate::position::{Position, Timestamp};

mod reading;

pub use reading::{RecordedSlice, Recording, last_before, recorded};

const END: &str = include_str!("sql/audit_end.sql");
const TAKE: &str = include_str!("sql/audit_take.sql");
const FOUND: &str = include_str!("sql/audit_found.sql");
const NEXT: &str = include_str!("sql/audit_next.sql");
const AT_REST: &str = include_str!("sql/audit_at_rest.sql");
const TOO_OLD: &str = include_str!("sql/audit_too_old.sql");
/// Instead of sums: these rows, and what follows them in no slice, were passed by turns that record nothing.
const UNRECORDED: &[u8] = &[0];

/// A slice that is to be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedSlice {
    /// Its number.
    pub id: i64,
    /// Whose it is.
    pub cursor: String,
    /// What the relay read that passed its rows.
    pub reads: u64,
    /// After this place.
    pub after: Position,
    /// Up to this one.
    pub up_to: Position,
    /// Over the ids of its rows; none of what another version wrote.
    pub sums: Option<Sums>,
    /// How often it has been compared.
    pub checks: i32,
    /// How long ago it ended.
    pub age: Duration,
}

/// Writes what has ended; all is sent when this is asked for the first time, so that a commit may be sent behind it.
pub(super) async fn end(
    loan: &Fragile,
    statement: Option<&Statement>,
    cursor: &str,
    recorded: Option<&Recorded>,
) -> Result<(), tokio_postgres::Error> {
    let (Some(statement), Some(recorded)) = (statement, recorded) else { return Ok(()) };
    let writing = recorded.ended.iter().map(|slice| write(loan, statement, cursor, slice));
    let marking = recorded.unrecorded.iter().map(|first| mark(loan, statement, cursor, first));
    tokio::try_join!(biased; try_join_all(writing), try_join_all(marking)).map(drop)
}

/// The statement for that; none when nothing has ended.
pub(super) async fn ending(
    loan: &Fragile,
    recorded: Option<&Recorded>,
) -> Result<Option<Statement>, tokio_postgres::Error> {
    match recorded {
        Some(recorded) if !recorded.ended.is_empty() || recorded.unrecorded.is_some() => {
            Ok(Some(loan.prepare_cached(END).await?))
        }
        Some(_) | None => Ok(None),
    }
}

async fn write(
    loan: &Fragile,
    statement: &Statement,
    cursor: &str,
    Slice { after, up_to, reads, sums, .. }: &Slice,
) -> Result<(), tokio_postgres::Error> {
    insert(loan, statement, (cursor, *reads), (after, up_to), (row_count(sums), &sums.to_bytes())).await
}

async fn mark(
    loan: &Fragile,
    statement: &Statement,
    cursor: &str,
    Unrecorded { after, up_to, reads, rows }: &Unrecorded,
) -> Result<(), tokio_postgres::Error> {
    let rows = i64::try_from(*rows).unwrap_or(i64::MAX);
    insert(loan, statement, (cursor, *reads), (after, up_to), (rows, UNRECORDED)).await
}

/// Writes that a turn which did not advance had passed so many rows up to a place: which ones it was is not known.
pub(super) async fn unnamed(
    loan: &Fragile,
    cursor: &str,
    reads: u64,
    (from, to): (Option<&Position>, &Position),
    rows: i64,
) -> Result<(), Error> {
    let statement = loan.prepare_cached(END).await?;
    let before_all = Position { created_at: Timestamp::NEG_INFINITY, id: None };
    Ok(insert(loan, &statement, (cursor, reads), (from.unwrap_or(&before_all), to), (rows, &[])).await?)
}

async fn insert(
    loan: &Fragile,
    statement: &Statement,
    (cursor, reads): (&str, u64),
    (after, up_to): (&Position, &Position),
    (rows, sums): (i64, &[u8]),
) -> Result<(), tokio_postgres::Error> {
    let reads = i64::try_from(reads).unwrap_or(i64::MAX);
    let parameters: [&(dyn ToSql + Sync); 8] =
        [&cursor, &reads, &after.created_at, &after.id, &up_to.created_at, &up_to.id, &rows, &sums];
    loan.execute(statement, &parameters).await.map(drop)
}

/// Ends slices of these cursors, some at a time, that have been open for a minute although no advance follows: their last rows are to be
/// compared, too. A cursor that a turn has locked is left to it, and so is one whose interrupted turn has recorded its progress.
///
/// # Errors
/// The database's.
pub async fn end_at_rest(loan: Loan, cursors: &[&str]) -> Result<(), Error> {
    let connection = Fragile::new(loan);
    connection.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await?;
    let resting = connection.query(AT_REST, &[&cursors]).await?;
    for row in &resting {
        let (name, now): (&str, Timestamp) = (row.try_get(0)?, row.try_get(2)?);
        let slice = row.try_get::<_, Option<&[u8]>>(1)?.and_then(Slice::from_bytes);
        if let Some(slice) = &slice {
            write(&connection, &connection.prepare_cached(END).await?, name, slice).await?;
        }
        let next = slice.map(|slice| Slice::empty(slice.up_to, slice.reads, now).to_bytes());
        connection.execute("UPDATE outbox.cursor SET audit = $2 WHERE name = $1", &[&name, &next]).await?;
    }
    connection.batch_execute(if resting.is_empty() { "ROLLBACK" } else { "COMMIT" }).await?;
    connection.give_back();
    Ok(())
}

fn row_count(sums: &Sums) -> i64 {
    i64::try_from(sums.rows()).unwrap_or(i64::MAX)
}

/// Another table or order is taken over, of which the slices say nothing, or rows come again, which are not late.
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
    let parameters: [&(dyn ToSql + Sync); 3] = [&cursors, &lease.as_secs_f64(), &MADE_UP_FOR.as_secs_f64()];
    let Some(row) = session.query_opt(&statement, &parameters).await? else { return Ok(None) };
    let place = |at: Timestamp, id| position(Some(at), id).unwrap_or(Position { created_at: at, id: None });
    Ok(Some(EndedSlice {
        id: row.try_get(0)?,
        cursor: row.try_get(1)?,
        reads: u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or_default(),
        after: place(row.try_get(3)?, row.try_get(4)?),
        up_to: place(row.try_get(5)?, row.try_get(6)?),
        sums: Sums::from_bytes(row.try_get(7)?),
        checks: row.try_get(8)?,
        age: Duration::try_from_secs_f64(row.try_get(9)?).unwrap_or_default(),
    }))
}

/// It has been compared, and is looked at again so long after its end: by [`take`], or from [`MADE_UP_FOR`] on by [`too_old`].
///
/// # Errors
/// The database's.
pub async fn compared(session: &Session, slice: &EndedSlice, next: Duration) -> Result<(), Error> {
    let EndedSlice { id, checks, .. } = slice;
    session.execute(&session.prepare_cached(NEXT).await?, &[id, checks, &next.as_secs_f64()]).await?;
    Ok(())
}

/// Rows that a comparison has found, and what follows.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The slice, and what it had.
    pub slice: (i64, &'a Sums),
    /// What it has with them.
    pub with_them: &'a Sums,
    /// The relations that were read: the table's own oid, then its own and its descendants'.
    pub relations: (u32, &'a BTreeSet<u32>),
    /// The letters.
    pub late: &'a LateRows<'a>,
    /// The halt, if that is the policy.
    pub halt: Option<&'a Halting<'a>>,
}

/// Makes letters of rows that the table has and the slice had not, adds them to it, and halts the relay if that is the policy and there are
/// new letters: rows that have one, closed perhaps by `verify --repair`, are missed no more. How many are new; none when another replica
/// has been quicker, or an operator is to decide first: the relay is halted, or has not seen these relations yet.
///
/// # Errors
/// The database's; then nothing is written, or all of it.
pub async fn found(
    loan: Loan,
    cursor: &str,
    Found { slice: (id, had), with_them, relations: (root, others), late, halt }: Found<'_>,
    by: &str,
) -> Result<Option<u64>, Error> {
    let connection = Fragile::new(loan);
    connection
        .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit TO on")
        .await?;
    let relations: Vec<u32> = std::iter::once(root).chain(others.iter().copied()).collect();
    let (had, has) = (had.to_bytes(), with_them.to_bytes());
    let parameters: [&(dyn ToSql + Sync); 5] = [&id, &had, &has, &row_count(with_them), &relations];
    let is_first = connection.execute(FOUND, &parameters).await? == 1;
    let mut letters = None;
    if is_first {
        let new = dead_letter::note_late(&connection, cursor, late, by).await?;
        if let Some(Halting { report, fingerprint }) = halt.filter(|_| new > 0) {
            status::report(&connection, cursor, report, Some(fingerprint), Some(false)).await?;
        }
        letters = Some(new);
    }
    connection.batch_execute(if is_first { "COMMIT" } else { "ROLLBACK" }).await?;
    connection.give_back();
    Ok(letters)
}

/// Deletes slices, some at a time, that have stayed for so long after their end, whether they could be compared in time or not, and before
/// which none of their cursor is left; how many of each cursor were never compared.
///
/// # Errors
/// The database's.
pub async fn too_old(session: &Session, stay: Duration) -> Result<Vec<(String, u64)>, Error> {
    let (stay, made_up_for) = (stay.as_secs_f64(), MADE_UP_FOR.as_secs_f64());
    let rows = session.query(&session.prepare_cached(TOO_OLD).await?, &[&stay, &made_up_for]).await?;
    let count =
        |row: &tokio_postgres::Row| Ok((row.try_get(0)?, u64::try_from(row.try_get::<_, i64>(1)?).unwrap_or(0)));
    rows.iter().map(count).collect::<Result<_, tokio_postgres::Error>>().map_err(Error::from)
}
