//! Everything that is written down about one cursor.

use tokio_postgres::Client;

use crate::database::Error;
use crate::position::Timestamp;

const DETAIL: &str = "SELECT c.name IS NOT NULL, c.identity::text, c.snapshot::text, c.relations, c.partitions, \
     c.observed_at, c.created_at, c.updated_at, c.seek_applied, k.seek_seq, k.paused_at, k.paused_by, s.message_id, \
     s.updated_at, (c.token - 'xid')::text, \
     CASE WHEN (k.adopt ->> 'number')::bigint = k.seek_seq THEN 'adopt ' || COALESCE((k.adopt -> 'identity' ->> 'table') || ' to ' \
     || (k.adopt -> 'identity' ->> 'sink') || ' ' || (k.adopt -> 'identity' ->> 'target'), '') \
     ELSE 'move to ' || COALESCE(k.seek_to ->> 'created_at', 'before every row') END \
     FROM (SELECT $1::text AS name) AS n \
     LEFT JOIN outbox.cursor AS c ON c.name = n.name \
     LEFT JOIN outbox.control AS k ON k.cursor = n.name \
     LEFT JOIN outbox.cursor_status AS s ON s.cursor = n.name";

/// See the module. What a list has is not repeated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// It has a row: a relay or an operator has made it.
    pub exists: bool,
    /// What it belongs to, as JSON.
    pub identity: Option<String>,
    /// The snapshot that its last rows were read with.
    pub snapshot: Option<String>,
    /// The table's oid, then the oids of the table and its descendants.
    pub relations: Vec<u32>,
    /// How many partitions its topic had.
    pub partitions: Option<i32>,
    /// The database's clock at the scan of the last advance.
    pub observed_at: Option<Timestamp>,
    /// When it was made.
    pub created_at: Option<Timestamp>,
    /// When its row was last written.
    pub updated_at: Option<Timestamp>,
    /// Number of the last wish that was carried out.
    pub wish_done: i64,
    /// Number of the last wish.
    pub wish: i64,
    /// What the last wish is, in words.
    pub wished: Option<String>,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// The message that its last error is about.
    pub message_id: Option<String>,
    /// When its relay last had something to say.
    pub reported_at: Option<Timestamp>,
    /// What somebody has in flight under `at_most_once`, or had when he ended, as JSON; the position stands behind it.
    pub in_flight: Option<String>,
}

/// Reads it; all empty when there is no such cursor.
///
/// # Errors
/// The database's.
pub async fn detail(client: &Client, name: &str) -> Result<Detail, Error> {
    let row = client.query_one(DETAIL, &[&name]).await?;
    Ok(Detail {
        exists: row.try_get(0)?,
        identity: row.try_get(1)?,
        snapshot: row.try_get(2)?,
        relations: row.try_get::<_, Option<_>>(3)?.unwrap_or_default(),
        partitions: row.try_get(4)?,
        observed_at: row.try_get(5)?,
        created_at: row.try_get(6)?,
        updated_at: row.try_get(7)?,
        wish_done: row.try_get::<_, Option<_>>(8)?.unwrap_or_default(),
        wish: row.try_get::<_, Option<_>>(9)?.unwrap_or_default(),
        paused_at: row.try_get(10)?,
        paused_by: row.try_get(11)?,
        message_id: row.try_get(12)?,
        reported_at: row.try_get(13)?,
        in_flight: row.try_get(14)?,
        wished: row.try_get(15)?,
    })
}
