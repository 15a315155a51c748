//! What waits under a relay's name for a replica: schedules that have occurrences to come, actions and requests that have not ended.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::database::{Error, Session};

/// Rows of one kind are counted up to here.
const MOST: i64 = 10_000;

const OPEN: &str = include_str!("sql/open_work.sql");

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OpenWork {
    /// Schedules.
    pub schedules: i64,
    /// Actions.
    pub actions: i64,
    /// Requests.
    pub requests: i64,
}

impl OpenWork {
    /// Whether something waits.
    #[must_use]
    pub fn is_some(&self) -> bool {
        self.schedules + self.actions + self.requests > 0
    }

    /// `waits` or `wait`, after all of it.
    #[must_use]
    pub fn wait(&self) -> &'static str {
        if self.schedules + self.actions + self.requests == 1 { "waits" } else { "wait" }
    }
}

/// As in `2 schedules and 1 action`.
impl fmt::Display for OpenWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = [(self.schedules, "schedule"), (self.actions, "action"), (self.requests, "request")];
        for (n, (rows, kind)) in kinds.into_iter().filter(|(rows, _)| *rows > 0).enumerate() {
            let (and, more) = (if n > 0 { " and " } else { "" }, if rows >= MOST { "+" } else { "" });
            write!(f, "{and}{rows}{more} {kind}{}", if rows == 1 { "" } else { "s" })?;
        }
        Ok(())
    }
}

/// What waits under each of these names of relays; names that have nothing are left out.
///
/// # Errors
/// The database's.
pub async fn open_work(session: &Session, relays: &[&str]) -> Result<BTreeMap<String, OpenWork>, Error> {
    if relays.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = session.query(OPEN, &[&relays, &MOST]).await?;
    let mut found = BTreeMap::new();
    for row in rows {
        let open = OpenWork { schedules: row.try_get(1)?, actions: row.try_get(2)?, requests: row.try_get(3)? };
        if open.is_some() {
            found.insert(row.try_get(0)?, open);
        }
    }
    Ok(found)
}

/// Relays of schedules that have a cursor, are none of these, and have something that waits.
///
/// # Errors
/// The database's.
pub async fn left_schedules(session: &Session, relays: &[String]) -> Result<BTreeMap<String, OpenWork>, Error> {
    let sql =
        "SELECT c.relay FROM outbox.cursor AS c WHERE c.relay <> ALL ($1) AND c.identity ->> 'table' = 'outbox.action'";
    let rows = session.query(sql, &[&relays]).await?;
    let left = rows.iter().map(|row| row.try_get(0)).collect::<Result<Vec<&str>, _>>()?;
    open_work(session, &left).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_work_names_the_kinds_that_there_are() {
        let open = |schedules, actions, requests| OpenWork { schedules, actions, requests };
        assert_eq!(open(1, 0, 0).to_string() + " " + open(1, 0, 0).wait(), "1 schedule waits");
        assert_eq!(open(2, 1, 0).to_string() + " " + open(2, 1, 0).wait(), "2 schedules and 1 action wait");
        assert_eq!(open(0, 0, MOST).to_string(), "10000+ requests");
        assert!(!open(0, 0, 0).is_some());
    }
}
