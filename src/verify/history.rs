//! What the schema `outbox` knows of a relay's rows besides its positions: dead letters, rows that wait behind them, rows of unknown
//! outcome, and where operators have moved its cursors.

use std::collections::HashMap;
use std::sync::Arc;

use crate::database::{Error, Session};
use crate::late::LateRow;
use crate::position::{Position, Timestamp};
use crate::relay::Start;
use crate::source::range::{ANSWER, within};
use crate::source::shape::Shape;
use crate::source::sweep::to_come;

use super::Problem;
use super::decide::Known;
use super::operations::{GivenUp, History, Operation};

/// Ids of one question.
pub(super) const IDS: usize = 1_000;

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

    /// What must be said where a cursor is not made yet: nothing is compared of what it has never passed.
    pub(super) fn note_without_cursor(&self, standings: &[Option<Standing>]) -> Option<String> {
        let without = self.names.iter().zip(standings).filter(|(_, standing)| standing.is_none());
        let without: Vec<&str> = without.map(|(name, _)| name.as_str()).collect();
        let (is, it) = if without.len() == 1 { ("is no cursor", "it") } else { ("are no cursors", "them") };
        (!without.is_empty()).then(|| {
            format!(
                "there {is} {} yet, so nothing was passed that could be compared: the first `outbox-relay run` makes {it} where \
                 `start` says, `outbox-relay cursor create {}` at a place of your choice",
                without.join(", "),
                self.relay
            )
        })
    }

    /// What operators have done.
    ///
    /// # Errors
    /// The database's, or that a note of an operation cannot be read.
    pub async fn history(&self, session: &Session) -> Result<History, super::Error> {
        let rows = within(ANSWER, session.query(include_str!("sql/operations.sql"), &[])).await?;
        let operations = rows.iter().map(operation).collect::<Result<Vec<_>, super::Error>>()?;
        Ok(History::of(&self.relay, operations))
    }

    /// Rows of the range that are dead letters, and rows that wait behind those; both without the rows that were counted as still to come
    /// late, which may be dead letters by now.
    ///
    /// # Errors
    /// The database's.
    pub async fn dead_letters(
        &self,
        session: &Session,
        (since, until): (Timestamp, Timestamp),
        to_come: &[(Timestamp, String)],
    ) -> Result<(u64, u64), Error> {
        let sql = include_str!("sql/dead_letters.sql");
        let (instants, ids): (Vec<Timestamp>, Vec<&str>) = to_come.iter().map(|(at, id)| (*at, id.as_str())).unzip();
        let row = within(ANSWER, session.query_one(sql, &[&self.names, &since, &until, &instants, &ids])).await?;
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

    /// Those of these rows, each with the number of its part, that its cursor is still to send late. To be asked before [`Self::known`]: in
    /// the commit after which such a row is not found here any more, it has become a dead letter.
    ///
    /// # Errors
    /// The database's.
    pub async fn to_come(
        &self,
        session: &Session,
        parts: &[Arc<Shape>],
        rows: &[(usize, &str)],
    ) -> Result<HashMap<(String, Timestamp), Known>, Error> {
        let mut found = HashMap::new();
        for (part, (shape, cursor)) in parts.iter().zip(&self.names).enumerate() {
            let ids: Vec<&str> = rows.iter().filter(|(of, _)| *of == part).map(|(_, id)| *id).collect();
            for some in ids.chunks(IDS) {
                for LateRow { position, .. } in to_come::of_ids(session, shape, cursor, some).await? {
                    found.insert((position.id.unwrap_or_default(), position.created_at), Known::LateToCome);
                }
            }
        }
        Ok(found)
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
    if ids.is_empty() {
        return Ok(found);
    }
    let ended = history.ended();
    if !ended.is_empty() {
        let cursors: Vec<&str> = ended.iter().map(|ended| ended.cursor.as_str()).collect();
        let ends: Vec<Timestamp> = ended.iter().map(|ended| ended.at).collect();
        let sql = include_str!("sql/former_letters.sql");
        for row in within(ANSWER, session.query(sql, &[&cursors, &ends, &ids])).await? {
            let number = usize::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0);
            if let Some(ended) = number.checked_sub(1).and_then(|number| ended.get(number)) {
                found.insert((row.try_get(0)?, row.try_get(1)?), &ended.given_up);
            }
        }
    }
    let notes = history.discards();
    // They say more than letters of former cursors. Every question reads all rows of these notes.
    if !notes.is_empty() {
        for row in within(ANSWER, session.query(include_str!("sql/discarded.sql"), &[&notes, &ids])).await? {
            if let Some(given_up) = history.given_up(row.try_get(2)?) {
                found.insert((row.try_get(0)?, row.try_get(1)?), given_up);
            }
        }
    }
    Ok(found)
}

fn operation(row: &tokio_postgres::Row) -> Result<Operation, super::Error> {
    let number: i64 = row.try_get(0)?;
    let place = |first: usize| -> Result<Option<Position>, super::Error> {
        let (text, id): (Option<String>, Option<String>) = (row.try_get(first)?, row.try_get(first + 1)?);
        let Some(text) = text else { return Ok(None) };
        let created_at = Timestamp::parse_noted(&text).ok_or_else(|| unreadable(number, &text))?;
        Ok(Some(Position { created_at, id }))
    };
    Ok(Operation {
        id: number,
        at: row.try_get(10)?,
        verb: row.try_get(1)?,
        cursor: row.try_get::<_, Option<_>>(2)?.unwrap_or_default(),
        former: row.try_get(3)?,
        from: place(4)?,
        to: place(6)?,
        number: row.try_get(8)?,
        moved: row.try_get(9)?,
        is_placed: row.try_get(11)?,
        is_of_topic: row.try_get(12)?,
    })
}

fn unreadable(number: i64, text: &str) -> Problem {
    Problem::new(
        format!("operation {number} of outbox.operation names an instant that cannot be read: {text:?}"),
        format!("Correct it as its owner: `SELECT detail FROM outbox.operation WHERE id = {number}` shows it."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_that_are_not_made_yet_are_named_with_the_command_that_makes_them() {
        let names = ["r#0", "r#1"].map(str::to_owned).to_vec();
        let cursors = Cursors { relay: "r".to_owned(), names, start: Start::Beginning };
        let made = || Some(Standing { position: None, created_at: Timestamp::INFINITY });
        assert_eq!(cursors.note_without_cursor(&[made(), made()]), None);
        let one = cursors.note_without_cursor(&[made(), None]).expect("one is missing");
        assert!(one.starts_with("there is no cursor r#1 yet, "), "{one}");
        assert!(one.contains("`outbox-relay cursor create r`"), "{one}");
        let both = cursors.note_without_cursor(&[None, None]).expect("both are missing");
        assert!(both.starts_with("there are no cursors r#0, r#1 yet, "), "{both}");
    }
}
