//! What the schema `outbox` knows of a relay's rows besides its positions: dead letters, rows of unknown outcome, and where
//! operators have moved its cursors.

use std::collections::HashMap;

use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};
use crate::relay::Start;
use crate::source::range::{ANSWER, within};

use super::decide::Known;

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
        let mut history = History { names: vec![self.relay.clone()], ..History::default() };
        // The newest first: a former name is met after the one that replaced it.
        for row in within(ANSWER, session.query(include_str!("sql/operations.sql"), &[])).await? {
            let (verb, cursor): (String, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
            let cursor = cursor.unwrap_or_default();
            let of = cursor.split('#').next().unwrap_or_default();
            if !history.names.iter().any(|name| name == of) {
                continue;
            }
            match verb.as_str() {
                "cursor rename" => history.names.extend(row.try_get::<_, Option<String>>(3)?),
                // Its cursors are younger than the relay.
                "cursor reshard" => history.resharded = true,
                "cursor create" if history.created.is_none() => {
                    history.created = Some(row.try_get::<_, Option<Timestamp>>(6)?.unwrap_or(Timestamp::NEG_INFINITY));
                }
                "cursor create" => {}
                "cursor skip" => history.skipped.extend(row.try_get::<_, Option<String>>(2)?),
                _ => {
                    let place = |at: Option<Timestamp>| at.unwrap_or(Timestamp::NEG_INFINITY);
                    history.moves.push(Move { from: place(row.try_get(4)?), to: place(row.try_get(5)?) });
                }
            }
        }
        Ok(history)
    }

    /// Dead letters that are rows of the range.
    ///
    /// # Errors
    /// The database's.
    pub async fn dead_letters(&self, session: &Session, (since, until): (Timestamp, Timestamp)) -> Result<u64, Error> {
        let sql = include_str!("sql/dead_letters.sql");
        let row = within(ANSWER, session.query_one(sql, &[&self.names, &since, &until])).await?;
        Ok(u64::try_from(row.try_get::<_, i64>(0)?).unwrap_or(0))
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
        let rows = within(ANSWER, session.query(include_str!("sql/known.sql"), &[&self.names, &ids])).await?;
        let known = rows.iter().map(|row| {
            let what = if row.try_get(2)? { Known::DeadLetter } else { Known::Unknown };
            Ok(((row.try_get(0)?, row.try_get(1)?), what))
        });
        Ok(known.collect::<Result<_, tokio_postgres::Error>>()?)
    }
}

/// What operators have done with a relay's cursors.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The relay's names, the former ones too: records have the one of their time.
    pub names: Vec<String>,
    skipped: Vec<String>,
    moves: Vec<Move>,
    created: Option<Timestamp>,
    resharded: bool,
}

#[derive(Clone, Copy, Debug)]
struct Move {
    from: Timestamp,
    to: Timestamp,
}

impl History {
    /// Whether an operator has moved a cursor over a row.
    #[must_use]
    pub fn has_skipped(&self, id: &str, at: Timestamp) -> bool {
        let over = |step: &Move| step.from <= at && at <= step.to;
        self.skipped.iter().any(|skipped| skipped == id) || self.moves.iter().any(over)
    }

    /// When the relay began: what is older is not its to deliver. None where that is not known.
    #[must_use]
    pub fn began(&self, start: Start, standings: &[Option<Standing>]) -> Option<Timestamp> {
        match (self.created, start) {
            (Some(created), _) => Some(created),
            (None, Start::Beginning) => None,
            (None, Start::At(instant)) => Some(instant),
            (None, Start::Now) if self.resharded => None,
            (None, Start::Now) => standings.iter().flatten().map(|standing| standing.created_at).min(),
        }
    }

    /// How often an operator has moved a cursor back over a row.
    #[must_use]
    pub fn moved_back(&self, at: Timestamp) -> u64 {
        self.moves.iter().filter(|step| step.to <= at && at <= step.from).count() as u64
    }
}
