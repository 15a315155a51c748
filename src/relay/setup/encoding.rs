//! The database's encoding, which rows that are claimed depend on.

use crate::database::{Error, Session};
use crate::source::finding::{Finding, Level};

/// What is wrong with the encoding, for relays of due work, requests and schedules. They read many rows by one statement, and write what
/// receivers answer: a single value that one of the two encodings does not have would stop all. Streams read such a row on its own.
pub(in crate::relay) async fn finding(session: &Session) -> Result<Option<Finding>, Error> {
    let encoding: String = session.query_one("SHOW server_encoding", &[]).await?.try_get(0)?;
    if encoding == "UTF8" {
        return Ok(None);
    }
    let message = format!("the database's encoding is {encoding}; due work, requests and schedules need UTF8");
    let fix = "Create a database with ENCODING 'UTF8' and move the tables there (pg_dump and pg_restore convert text), or read the table \
               as a stream ([relay.source.stream]).";
    Ok(Some(Finding::new(Level::Error, "encoding_not_utf8", message).setting(fix)))
}
