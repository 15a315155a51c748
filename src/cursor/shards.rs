//! The cursors of one relay that has shards: that they are of one number, and that an idle one follows the others.
//!
//! Promise: two sets of cursors never read one relay's rows. A cursor is made only where no cursor of another set is, and
//! whoever made one looks once more.

use tokio_postgres::types::ToSql;

use crate::database::{Error, Session};
use crate::position::Position;

/// Cursors of the relay $1 that are of another set than the identity $2 says.
const STRANGERS: &str = "SELECT c.name, c.identity::text FROM outbox.cursor AS c WHERE c.relay = $1 AND \
     (c.identity ->> 'shards', c.identity ->> 'shard_key') IS DISTINCT FROM \
     ($2::text::jsonb ->> 'shards', $2::text::jsonb ->> 'shard_key') ORDER BY c.name";

/// Never in the place of an operator's wish; one of his takes its place.
const FOLLOW: &str = "INSERT INTO outbox.control AS k (cursor, seek_seq, seek_to, updated_at) \
     SELECT c.name, c.seek_applied + 1, pg_catalog.jsonb_build_object('created_at', $2::timestamptz, 'id', $3::text, \
     'from', CASE WHEN $4::timestamptz IS NOT NULL \
     THEN pg_catalog.jsonb_build_object('created_at', $4::timestamptz, 'id', $5::text) END), pg_catalog.clock_timestamp() \
     FROM outbox.cursor AS c WHERE c.name = $1 \
     ON CONFLICT (cursor) DO UPDATE SET seek_seq = GREATEST(k.seek_seq + 1, excluded.seek_seq), seek_to = excluded.seek_to, \
     adopt = NULL, updated_at = excluded.updated_at \
     WHERE NOT k.paused AND k.seek_seq <= (SELECT c.seek_applied FROM outbox.cursor AS c WHERE c.name = k.cursor)";

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

/// Has a cursor move, by its next turn, from where it stands over rows that are other shards', unless it moves meanwhile.
///
/// # Errors
/// The database's.
pub async fn follow(session: &Session, name: &str, from: Option<&Position>, to: &Position) -> Result<(), Error> {
    let statement = session.prepare_cached(FOLLOW).await?;
    let from_at = from.map(|from| from.created_at);
    let from_id = from.and_then(|from| from.id.as_deref());
    let parameters: [&(dyn ToSql + Sync); 5] = [&name, &to.created_at, &to.id, &from_at, &from_id];
    session.execute(&statement, &parameters).await?;
    Ok(())
}
