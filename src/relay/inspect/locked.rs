//! Locks on tables that keep a relay, and those who ask about it, from reading them.

use crate::database::{Error, Session};
use crate::relay::inspect::explain::Why;

/// So many are named.
const MOST: i64 = 5;

/// A lock that a session or a prepared transaction has.
#[derive(Clone, Debug, PartialEq)]
pub struct TableLock {
    /// The table, with its schema.
    pub table: String,
    /// What PostgreSQL calls the lock.
    pub mode: String,
    /// The session's server process; none of a prepared transaction.
    pub pid: Option<i32>,
    /// What the session calls itself.
    pub application: Option<String>,
    /// How long its transaction has been open, where that can be read.
    pub age_seconds: Option<f64>,
    /// The prepared transaction.
    pub gid: Option<String>,
    /// It has it; else it waits for it, and others wait behind it.
    pub granted: bool,
}

impl TableLock {
    /// Who has it, on what, since when.
    fn told(&self) -> String {
        let age = self.age_seconds.map(|age| format!(", open for {age:.0} s")).unwrap_or_default();
        let who = match (self.pid, &self.gid) {
            (Some(pid), _) => {
                let application = self.application.as_deref().filter(|text| !text.is_empty());
                format!("pid {pid} ({}){age}", application.unwrap_or("no application name"))
            }
            (None, Some(gid)) => format!("the prepared transaction {gid}"),
            (None, None) => "a prepared transaction".to_owned(),
        };
        let has = if self.granted { "has" } else { "waits, before all others, for" };
        format!("{who} {has} {} on {}", self.mode, self.table)
    }

    /// What ends it; of a prepared transaction what keeps its work.
    fn end(&self) -> String {
        match (self.pid, &self.gid) {
            (Some(pid), _) => format!("SELECT pg_terminate_backend({pid});"),
            (None, Some(gid)) => format!("COMMIT PREPARED '{}';", gid.replace('\'', "''")),
            (None, None) => "SELECT gid, prepared, owner FROM pg_prepared_xacts ORDER BY prepared;".to_owned(),
        }
    }
}

/// What undoes a prepared transaction.
fn undo(gid: &str) -> String {
    format!("ROLLBACK PREPARED '{}';", gid.replace('\'', "''"))
}

/// The locks on tables of the schema, and on these (`schema.table`) with their partitions.
///
/// # Errors
/// The database's.
pub async fn locks(session: &Session, tables: &[String]) -> Result<Vec<TableLock>, Error> {
    let sql = format!("SELECT * FROM ({}) AS l LIMIT {MOST}", include_str!("sql/locked_by.sql"));
    let rows = session.query(&sql, &[&tables]).await?;
    let lock = |row: &tokio_postgres::Row| {
        Ok(TableLock {
            table: row.try_get(0)?,
            mode: row.try_get(1)?,
            pid: row.try_get(2)?,
            application: row.try_get(3)?,
            age_seconds: row.try_get(4)?,
            gid: row.try_get(5)?,
            granted: row.try_get(6)?,
        })
    };
    rows.iter().map(lock).collect::<Result<_, tokio_postgres::Error>>().map_err(Error::from)
}

/// The answer for a cursor of which nothing can be read for them; none when there are none.
#[must_use]
pub fn why(name: &str, locks: &[TableLock]) -> Option<Why> {
    let first = locks.first()?;
    let more = locks.len() - 1;
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    let step = if first.pid.is_some() {
        "Let its owner end the transaction. To end its session, which rolls its work back, as a superuser or a member of \
         pg_signal_backend:"
    } else {
        "A prepared transaction ends by hand, and its owner decides how. To keep what it wrote; or, below, to undo it:"
    };
    let mut advice = vec![step.to_owned()];
    advice.extend(locks.iter().map(TableLock::end));
    advice.dedup();
    let mut instead: Vec<String> = locks.iter().filter_map(|lock| lock.gid.as_deref()).map(undo).collect();
    instead.dedup();
    Some(Why {
        reason: "locked",
        well: false,
        sentence: format!("{name} cannot be looked at, and does not move: {}{more}.", first.told()),
        advice,
        instead,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> TableLock {
        TableLock {
            table: "public.bookings".to_owned(),
            mode: "AccessExclusiveLock".to_owned(),
            pid: Some(4711),
            application: Some("psql".to_owned()),
            age_seconds: Some(31.6),
            gid: None,
            granted: true,
        }
    }

    #[test]
    fn lock_is_told_with_its_table_its_owner_and_what_ends_it() {
        let told = why("b", &[lock(), TableLock { table: "outbox.cursor".to_owned(), ..lock() }]).expect("a reason");
        let sentence = "b cannot be looked at, and does not move: pid 4711 (psql), open for 32 s has AccessExclusiveLock on \
                        public.bookings, and 1 more.";
        assert_eq!((told.sentence.as_str(), told.advice.len()), (sentence, 2), "one session is ended once");
        assert_eq!(told.advice[1], "SELECT pg_terminate_backend(4711);");
        let prepared =
            TableLock { pid: None, application: None, age_seconds: None, gid: Some("it's".to_owned()), ..lock() };
        let told = why("b", &[prepared]).expect("a reason");
        assert!(told.sentence.contains("the prepared transaction it's has"), "{}", told.sentence);
        assert_eq!(told.advice[1], "COMMIT PREPARED 'it''s';");
        assert_eq!(told.instead, ["ROLLBACK PREPARED 'it''s';"], "one of the two, not one after the other");
        let waiting = why("b", &[TableLock { granted: false, ..lock() }]).expect("a reason");
        assert!(waiting.sentence.contains("waits, before all others, for AccessExclusiveLock"), "{}", waiting.sentence);
        assert_eq!(why("b", &[]), None);
    }
}
