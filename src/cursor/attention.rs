//! What of cursors waits for an operator, of many cursors by one statement.

use std::collections::HashMap;

use crate::database::{Error, Session};

const ATTENTION: &str = include_str!("sql/attention.sql");

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attention {
    /// Dead letters that are open.
    pub dead_letters: i64,
    /// Outcomes that nobody knows.
    pub unknown: i64,
    /// Keys that are parked.
    pub parked_keys: i64,
}

/// What of these cursors waits for an operator.
///
/// # Errors
/// The database's.
pub async fn attention(session: &Session, names: &[&str]) -> Result<HashMap<String, Attention>, Error> {
    let statement = session.prepare_cached(ATTENTION).await?;
    let rows = session.query(&statement, &[&names]).await?;
    let attention = |row: &tokio_postgres::Row| {
        Ok((
            row.try_get(0)?,
            Attention { dead_letters: row.try_get(1)?, unknown: row.try_get(2)?, parked_keys: row.try_get(3)? },
        ))
    };
    Ok(rows.iter().map(attention).collect::<Result<_, tokio_postgres::Error>>()?)
}
