//! Whether anything that operators and other replicas say of cursors has changed, of all cursors by one cheap statement.

use crate::database::{Error, Session};

/// Every change of a row gives it another `xmin`.
const NEWS: &str = include_str!("sql/news.sql");

/// A digest of `outbox.control`, `outbox.cursor_status` and the dead letters that are to be sent again.
///
/// # Errors
/// The database's.
pub async fn news(session: &Session) -> Result<String, Error> {
    let statement = session.prepare_cached(NEWS).await?;
    Ok(session.query_one(&statement, &[]).await?.try_get(0)?)
}
