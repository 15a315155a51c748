//! The cursors of one relay that has shards: that they are of one number.
//!
//! Promise: two sets of cursors never read one relay's rows. A cursor is made only where no cursor of another set is, and
//! whoever made one looks once more.

use crate::database::{Error, Session};

/// Cursors of the relay $1 that are of another set than the identity $2 says.
const STRANGERS: &str = "SELECT c.name, c.identity::text FROM outbox.cursor AS c WHERE c.relay = $1 AND \
     (c.identity ->> 'shards', c.identity ->> 'shard_key') IS DISTINCT FROM \
     ($2::text::jsonb ->> 'shards', $2::text::jsonb ->> 'shard_key') ORDER BY c.name";

/// A cursor of another set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// Its name.
    pub name: String,
    /// What it belongs to, as JSON.
    pub identity: String,
}

/// Cursors of this relay that are of another set than the one that `identity` says.
///
/// # Errors
/// The database's.
pub async fn strangers(session: &Session, relay: &str, identity: &str) -> Result<Vec<Stranger>, Error> {
    let rows = session.query(STRANGERS, &[&relay, &identity]).await?;
    rows.iter().map(|row| Ok(Stranger { name: row.try_get(0)?, identity: row.try_get(1)? })).collect()
}
