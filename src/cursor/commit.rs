//! What became of a transaction whose commit was not answered.

use crate::database::{Error, Session};

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// It took place.
    Committed,
    /// It did not.
    Aborted,
    /// Its session has not noticed yet that nobody is there any more.
    InProgress,
    /// The server does not know it: it is too old, or it was another server's.
    Unknown,
}

/// Asks what became of a transaction whose commit was not answered.
///
/// # Errors
/// The database's.
pub async fn fate_of(session: &Session, xid: &str) -> Result<Commit, Error> {
    let row = session.query_one("SELECT pg_catalog.pg_xact_status($1::text::xid8)", &[&xid]).await?;
    let word: Option<String> = row.try_get(0)?;
    Ok(match word.as_deref() {
        Some("committed") => Commit::Committed,
        Some("aborted") => Commit::Aborted,
        Some("in progress") => Commit::InProgress,
        Some(_) | None => Commit::Unknown,
    })
}
