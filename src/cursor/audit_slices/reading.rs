//! What is recorded of a cursor, as `verify` reads it.

use crate::audit::{Slice, Sums};
use crate::cursor::position;
use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};

const RECORDED: &str = include_str!("../sql/audit_recorded.sql");
const LAST_BEFORE: &str =
    "SELECT pg_catalog.max(ended_at) FROM outbox.audit_slice WHERE cursor = $1 AND up_to_created_at < $2";

/// A slice, open or ended, as it is read to compare it by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedSlice {
    /// What the relay read that passed its rows.
    pub reads: u64,
    /// After this place.
    pub after: Position,
    /// Up to this one.
    pub up_to: Position,
    /// Over the ids of its rows; none where an interrupted turn has left only how many there were.
    pub sums: Option<Sums>,
    /// When the position had passed all of them; none of the slice that is open.
    pub ended_at: Option<Timestamp>,
}

/// What is recorded of a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Where it stands; none is before every row.
    pub position: Option<Position>,
    /// When this was read, by the database's clock.
    pub now: Timestamp,
    /// The slices in the order of their places, and the open one.
    pub slices: Vec<RecordedSlice>,
}

/// What is recorded of a cursor with rows from the first instant on and before the second; none of a cursor that is not there.
///
/// # Errors
/// The database's.
pub async fn recorded(
    session: &Session,
    cursor: &str,
    (since, until): (Timestamp, Timestamp),
) -> Result<Option<Recording>, Error> {
    let rows = session.query(RECORDED, &[&cursor, &since, &until]).await?;
    let Some(first) = rows.first() else { return Ok(None) };
    let mut slices = rows.iter().filter_map(|row| slice(row).transpose()).collect::<Result<Vec<_>, _>>()?;
    let open = first.try_get::<_, Option<&[u8]>>(2)?.and_then(Slice::from_bytes);
    slices.extend(open.map(|Slice { after, up_to, reads, sums, .. }| RecordedSlice {
        reads,
        after,
        up_to,
        sums: Some(sums),
        ended_at: None,
    }));
    Ok(Some(Recording { position: position(first.try_get(0)?, first.try_get(1)?), now: first.try_get(3)?, slices }))
}

/// That of a row; none where the cursor has none in the range.
fn slice(row: &tokio_postgres::Row) -> Result<Option<RecordedSlice>, tokio_postgres::Error> {
    let Some(reads) = row.try_get::<_, Option<i64>>(4)? else { return Ok(None) };
    Ok(Some(RecordedSlice {
        reads: u64::try_from(reads).unwrap_or_default(),
        after: Position { created_at: row.try_get(5)?, id: row.try_get(6)? },
        up_to: Position { created_at: row.try_get(7)?, id: row.try_get(8)? },
        sums: Sums::from_bytes(row.try_get(9)?),
        ended_at: row.try_get(10)?,
    }))
}

/// When the last slice ended that has no row at or after this instant; none where there is none.
///
/// # Errors
/// The database's.
pub async fn last_before(session: &Session, cursor: &str, at: Timestamp) -> Result<Option<Timestamp>, Error> {
    Ok(session.query_one(LAST_BEFORE, &[&cursor, &at]).await?.try_get(0)?)
}
