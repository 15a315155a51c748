//! What the schema `outbox` knows of a relay's rows besides its positions: dead letters, rows that wait behind them, rows of unknown
//! outcome, and where operators have moved its cursors.

use std::collections::HashMap;

use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};
use crate::relay::Start;
use crate::source::range::{ANSWER, within};

use super::decide::Known;
use super::operations::{GivenUp, History, Operation};

/// A relay's cursors.
#[derive(Clone, Debug)]
pub struct Cursors {
    /// The relay's name.
    pub relay: String,
    /// Their names, one a shard.
    pub names: Vec<String>,
    /// Where they began.
    pub start: Start,
}

/// Where a cursor is.
#[derive(Clone, Debug)]
pub struct Standing {
    /// After which row; none is before every row.
    pub position: Option<Position>,
    /// When it was made.
    pub created_at: Timestamp,
}

impl Cursors {
    /// Where they are, in the order of their names; none of a cursor that its relay has not made yet.
    ///
    /// # Errors
    /// The database's.
    pub async fn standings(&self, session: &Session) -> Result<Vec<Option<Standing>>, Error> {
        let rows = within(ANSWER, session.query(include_str!("sql/cursors.sql"), &[&self.names])).await?;
        let mut found = HashMap::new();
        for row in &rows {
            let created_at: Option<Timestamp> = row.try_get(1)?;
            let id = row.try_get(2)?;
            let position = created_at.map(|created_at| Position { created_at, id });
            found.insert(row.try_get::<_, String>(0)?, Standing { position, created_at: row.try_get(3)? });
        }
        Ok(self.names.iter().map(|name| found.remove(name)).collect())
    }

    /// What operators have done.
    ///
    /// # Errors
    /// The database's.
    pub async fn history(&self, session: &Session) -> Result<History, Error> {
        let rows = within(ANSWER, session.query(include_str!("sql/operations.sql"), &[])).await?;
        let operations = rows.iter().map(operation).collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
        Ok(History::of(&self.relay, operations))
    }

    /// Rows of the range that are dead letters, and rows that wait behind those.
    ///
    /// # Errors
    /// The database's.
    pub async fn dead_letters(
        &self,
        session: &Session,
        (since, until): (Timestamp, Timestamp),
    ) -> Result<(u64, u64), Error> {
        let sql = include_str!("sql/dead_letters.sql");
        let row = within(ANSWER, session.query_one(sql, &[&self.names, &since, &until])).await?;
        let (letters, parked): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        Ok((letters.unsigned_abs(), parked.unsigned_abs()))
    }

    /// Rows that a turn has passed and may not have published yet (`at_most_once`), or that a killed replica left so.
    ///
    /// # Errors
    /// The database's.
    pub async fn in_flight(&self, session: &Session) -> Result<HashMap<(String, Timestamp), Known>, Error> {
        let rows = within(ANSWER, session.query(include_str!("sql/in_flight.sql"), &[&self.names])).await?;
        let rows = rows.iter().map(|row| Ok(((row.try_get(0)?, row.try_get(1)?), Known::Unknown)));
        Ok(rows.collect::<Result<_, tokio_postgres::Error>>()?)
    }

    /// What is known of rows by themselves.
    ///
    /// # Errors
    /// The database's.
    pub async fn known(&self, session: &Session, ids: &[&str]) -> Result<HashMap<(String, Timestamp), Known>, Error> {
        let mut known: HashMap<(String, Timestamp), Known> = HashMap::new();
        for row in within(ANSWER, session.query(include_str!("sql/known.sql"), &[&self.names, &ids])).await? {
            let what = match row.try_get::<_, &str>(2)? {
                "dead_letter" => Known::DeadLetter,
                "parked" => Known::Parked,
                _ => Known::Unknown,
            };
            let first = known.entry((row.try_get(0)?, row.try_get(1)?)).or_insert(what);
            // The row that its key waits for is a dead letter and is parked, and counts as a dead letter.
            *first = what.min(*first);
        }
        Ok(known)
    }
}

/// Rows whose dead letters operators have given up, whether or not these are there still: each with the newest note of that.
///
/// # Errors
/// The database's.
pub(super) async fn given_up<'h>(
    session: &Session,
    history: &'h History,
    ids: &[&str],
) -> Result<HashMap<(String, Timestamp), &'h GivenUp>, Error> {
    let mut found = HashMap::new();
    let notes = history.discards();
    // Every question reads all rows of these notes.
    if notes.is_empty() || ids.is_empty() {
        return Ok(found);
    }
    for row in within(ANSWER, session.query(include_str!("sql/discarded.sql"), &[&notes, &ids])).await? {
        if let Some(given_up) = history.given_up(row.try_get(2)?) {
            found.insert((row.try_get(0)?, row.try_get(1)?), given_up);
        }
    }
    Ok(found)
}

fn operation(row: &tokio_postgres::Row) -> Result<Operation, tokio_postgres::Error> {
    let place = |first: usize| {
        let (created_at, id): (Option<Timestamp>, Option<String>) = (row.try_get(first)?, row.try_get(first + 1)?);
        Ok::<_, tokio_postgres::Error>(created_at.map(|created_at| Position { created_at, id }))
    };
    Ok(Operation {
        id: row.try_get(0)?,
        at: row.try_get(10)?,
        verb: row.try_get(1)?,
        cursor: row.try_get::<_, Option<_>>(2)?.unwrap_or_default(),
        former: row.try_get(3)?,
        from: place(4)?,
        to: place(6)?,
        number: row.try_get(8)?,
        moved: row.try_get(9)?,
    })
}
