//! Whether anything that operators and other replicas say of cursors has changed, of all cursors by one cheap statement.

use crate::database::{Error, Session};

/// Every change of a row gives it another `xmin`.
const NEWS: &str = "SELECT pg_catalog.concat_ws(' ', \
     (SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtext(k.cursor || ' ' || k.xmin::text))) \
     FROM outbox.control AS k), \
     (SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtext(s.cursor || ' ' || s.xmin::text))) \
     FROM outbox.cursor_status AS s), \
     (SELECT pg_catalog.concat_ws(' ', pg_catalog.count(*), pg_catalog.sum(d.id)) FROM outbox.dead_letter AS d \
     WHERE d.state = 'redriving'))";

/// A digest of `outbox.control`, `outbox.cursor_status` and the dead letters that are to be sent again.
///
/// # Errors
/// The database's.
pub async fn news(session: &Session) -> Result<String, Error> {
    let statement = session.prepare_cached(NEWS).await?;
    Ok(session.query_one(&statement, &[]).await?.try_get(0)?)
}
