//! Everything that is written down about a cursor.

use tokio_postgres::{Client, Row};

use crate::database::Error;
use crate::position::Timestamp;

const DETAIL: &str = include_str!("sql/detail.sql");

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
    /// Number of the last change that was carried out.
    pub change_done: i64,
    /// Number of the last change.
    pub change: i64,
    /// What the last change is, in words.
    pub requested: Option<String>,
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
    Ok(details(client, &[name]).await?.swap_remove(0))
}

/// The same of several cursors, in the order of these names.
///
/// # Errors
/// The database's.
pub async fn details(client: &Client, names: &[&str]) -> Result<Vec<Detail>, Error> {
    let rows = client.query(DETAIL, &[&names]).await?;
    Ok(rows.iter().map(read).collect::<Result<_, _>>()?)
}

fn read(row: &Row) -> Result<Detail, tokio_postgres::Error> {
    Ok(Detail {
        exists: row.try_get(0)?,
        identity: row.try_get(1)?,
        snapshot: row.try_get(2)?,
        relations: row.try_get::<_, Option<_>>(3)?.unwrap_or_default(),
        partitions: row.try_get(4)?,
        observed_at: row.try_get(5)?,
        created_at: row.try_get(6)?,
        updated_at: row.try_get(7)?,
        change_done: row.try_get::<_, Option<_>>(8)?.unwrap_or_default(),
        change: row.try_get::<_, Option<_>>(9)?.unwrap_or_default(),
        paused_at: row.try_get(10)?,
        paused_by: row.try_get(11)?,
        message_id: row.try_get(12)?,
        reported_at: row.try_get(13)?,
        in_flight: row.try_get(14)?,
        requested: row.try_get(15)?,
    })
}
