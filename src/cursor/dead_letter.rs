//! Dead letters in a cursor's transaction: written together with the advance over them, sent again under its lock.

use std::borrow::Cow;

use tokio_postgres::types::ToSql;

use super::status::{self, ErrorReport};
use crate::database::{Error, Fragile, Session};
use crate::late::LateRow;
use crate::position::{Position, Timestamp};

const BURY: &str = include_str!("sql/dead_letter_bury.sql");

const OPEN: &str = include_str!("sql/dead_letter_open.sql");

const WANTED: &str = "SELECT pg_catalog.count(*) FROM outbox.dead_letter WHERE cursor = $1 AND state = 'redriving'";

/// The sizes are those of payloads, which PostgreSQL knows without reading them.
const REDRIVING: &str = include_str!("sql/dead_letter_redriving.sql");

/// How many bytes of payload are read at a time to be sent again; the letter that passes it is the last.
const REDRIVING_BYTES: i64 = 8 << 20;

const REDRIVEN: &str = include_str!("sql/dead_letter_redriven.sql");

const REFUSED: &str = include_str!("sql/dead_letter_refused.sql");

const LATE: &str = include_str!("sql/dead_letter_late.sql");

const NOT_SENT: &str = include_str!("sql/dead_letter_not_sent.sql");

/// The position stays, and with it the snapshot that its rows were read with.
const PACED: &str = include_str!("sql/dead_letter_paced.sql");

/// A row that the receiver will never accept, with all that is needed to send it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter<'a> {
    /// The table.
    pub source: String,
    /// The row's place.
    pub created_at: Timestamp,
    /// Its id, and the message's.
    pub message_id: String,
    /// Kind of the sink.
    pub sink: &'static str,
    /// Where it should have gone.
    pub target: String,
    /// Its key.
    pub key: Option<String>,
    /// The payload as sent.
    pub payload: Payload<'a>,
    /// What was read of the row, in words.
    pub fields: Vec<String>,
    /// The values read.
    pub values: Vec<Option<&'a [u8]>>,
}

/// What would have been sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// Nothing can be made of the row.
    None,
    /// The value of this number, as it was read: it is sent to the server once.
    Value(usize),
    /// These bytes.
    Made(Cow<'a, [u8]>),
}

impl DeadLetter<'_> {
    /// The payload's bytes.
    #[must_use]
    pub fn payload(&self) -> Option<&[u8]> {
        match &self.payload {
            Payload::None => None,
            Payload::Value(number) => self.values.get(*number).copied().flatten(),
            Payload::Made(bytes) => Some(bytes),
        }
    }
}

/// A dead letter that an operator wants to be sent again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redrive {
    /// Its number.
    pub id: i64,
    /// The row's place.
    pub position: Position,
    /// What was read of the row, in words.
    pub fields: Vec<String>,
    /// The values read.
    pub values: Vec<Option<Vec<u8>>>,
    /// The row came late.
    pub late: bool,
}

/// Rows that were found late, to be sent by the redriven letters' way.
#[derive(Clone, Debug)]
pub struct LateRows<'a> {
    /// The rows.
    pub rows: &'a [LateRow],
    /// The table.
    pub source: String,
    /// Kind of the sink.
    pub sink: &'static str,
    /// Where they should have gone.
    pub target: String,
    /// They wait for an operator.
    pub halts: bool,
    /// A row whose letter was closed is another row by now; else it was delivered by that letter, or given up.
    pub again: bool,
    /// What they are.
    pub error: ErrorReport<'a>,
}

/// What became of dead letters that were sent again.
#[derive(Debug)]
pub struct Redriven<'a> {
    /// Those that were accepted.
    pub accepted: &'a [i64],
    /// The one that was refused again, and why.
    pub refused: Option<(i64, ErrorReport<'a>)>,
    /// This replica's name.
    pub by: &'a str,
    /// The sink has a rate, and something was sent: the cursor counts as advanced now, for the pause of all replicas.
    pub paced: bool,
}

/// How many dead letters of a cursor wait for an operator or for their turn.
///
/// # Errors
/// The database's.
pub async fn open(session: &Session, cursor: &str) -> Result<i64, Error> {
    let statement = session.prepare_cached(OPEN).await?;
    Ok(session.query_one(&statement, &[&cursor]).await?.try_get(0)?)
}

/// How many dead letters of a cursor an operator wants sent again.
///
/// # Errors
/// The database's.
pub async fn wanted(session: &Session, cursor: &str) -> Result<i64, Error> {
    let statement = session.prepare_cached(WANTED).await?;
    Ok(session.query_one(&statement, &[&cursor]).await?.try_get(0)?)
}

/// The dead letters of a cursor that an operator wants sent again.
///
/// # Errors
/// The database's.
pub async fn wanted_ids(session: &Session, cursor: &str) -> Result<Vec<i64>, Error> {
    let sql = "SELECT id FROM outbox.dead_letter WHERE cursor = $1 AND state = 'redriving'";
    let rows = session.query(sql, &[&cursor]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// How many of these dead letters wait for an operator.
///
/// # Errors
/// The database's.
pub async fn refused_again(session: &Session, ids: &[i64]) -> Result<i64, Error> {
    let sql = "SELECT pg_catalog.count(*) FROM outbox.dead_letter WHERE id = ANY ($1) AND state = 'dead'";
    Ok(session.query_one(sql, &[&ids]).await?.try_get(0)?)
}

/// Writes it down; gives its number.
pub(crate) async fn bury(
    loan: &Fragile,
    cursor: &str,
    letter: &DeadLetter<'_>,
    error: &ErrorReport<'_>,
    by: &str,
) -> Result<i64, Error> {
    let statement = loan.prepare_cached(BURY).await?;
    let error = status::json(error);
    let (made, number) = match &letter.payload {
        Payload::None => (None, None),
        // Arrays count from 1.
        Payload::Value(number) => (None, i32::try_from(number + 1).ok()),
        Payload::Made(bytes) => (Some(&**bytes), None),
    };
    let parameters: [&(dyn ToSql + Sync); 13] = [
        &cursor,
        &letter.source,
        &letter.created_at,
        &letter.message_id,
        &letter.sink,
        &letter.target,
        &letter.key,
        &made,
        &letter.fields,
        &letter.values,
        &error,
        &by,
        &number,
    ];
    Ok(loan.query_one(&statement, &parameters).await?.try_get(0)?)
}

/// Makes letters of them; of how many there was none, or none that leaves them to be sent.
pub(super) async fn note_late(loan: &Fragile, cursor: &str, late: &LateRows<'_>, by: &str) -> Result<u64, Error> {
    let statement = loan.prepare_cached(LATE).await?;
    let instants: Vec<Timestamp> = late.rows.iter().map(|row| row.position.created_at).collect();
    let ids: Vec<&str> = late.rows.iter().map(|row| row.position.id.as_deref().unwrap_or_default()).collect();
    let transactions: Vec<&str> = late.rows.iter().map(|row| row.transaction.as_str()).collect();
    let state = if late.halts { "dead" } else { "redriving" };
    let error = status::json(&late.error);
    let LateRows { source, sink, target, again, .. } = late;
    let parameters: [&(dyn ToSql + Sync); 11] =
        [&cursor, source, sink, target, &state, &error, &by, &instants, &ids, &transactions, again];
    Ok(loan.execute(&statement, &parameters).await?)
}

pub(super) async fn redriving(loan: &Fragile, cursor: &str, most: i64) -> Result<Vec<Redrive>, Error> {
    let statement = loan.prepare_cached(REDRIVING).await?;
    redrives(&loan.query(&statement, &[&cursor, &most, &REDRIVING_BYTES]).await?)
}

pub(super) fn redrives(rows: &[tokio_postgres::Row]) -> Result<Vec<Redrive>, Error> {
    let redrive = |row: &tokio_postgres::Row| {
        Ok(Redrive {
            id: row.try_get(0)?,
            position: Position { created_at: row.try_get(1)?, id: Some(row.try_get(2)?) },
            fields: row.try_get(3)?,
            values: row.try_get(4)?,
            late: row.try_get(5)?,
        })
    };
    rows.iter().map(redrive).collect::<Result<_, tokio_postgres::Error>>().map_err(Error::from)
}

/// Counts as sent again from here on, whatever comes (`at_most_once`).
pub(super) async fn sent_again(loan: &Fragile, id: i64, by: &str) -> Result<(), Error> {
    loan.execute(REDRIVEN, &[&[id].as_slice(), &by]).await?;
    Ok(())
}

/// It was not sent after all: it waits for the next turn, or for an operator when it was refused.
pub(super) async fn not_sent(
    loan: &Fragile,
    id: i64,
    refused: Option<&ErrorReport<'_>>,
    by: &str,
) -> Result<(), Error> {
    loan.execute(NOT_SENT, &[&id]).await?;
    if let Some(error) = refused {
        loan.execute(REFUSED, &[&id, &status::json(error), &by]).await?;
    }
    Ok(())
}

/// The next message of the cursor, whichever replica sends it, is not to begin before its rate allows it.
pub(super) async fn paced(loan: &Fragile, cursor: &str, by: &str) -> Result<(), Error> {
    loan.execute(PACED, &[&cursor, &by]).await?;
    Ok(())
}

pub(super) async fn redriven(loan: &Fragile, cursor: &str, outcome: &Redriven<'_>) -> Result<(), Error> {
    loan.execute(REDRIVEN, &[&outcome.accepted, &outcome.by]).await?;
    if let Some((id, error)) = &outcome.refused {
        loan.execute(REFUSED, &[id, &status::json(error), &outcome.by]).await?;
    }
    if outcome.paced {
        paced(loan, cursor, outcome.by).await?;
    }
    loan.batch_execute("COMMIT").await?;
    Ok(())
}
