//! What is recorded of a cursor, as `verify` reads it.

use super::UNRECORDED;
use crate::audit::{Slice, Sums};
use crate::cursor::position;
use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};

const RECORDED: &str = include_str!("../sql/audit_recorded.sql");
const LAST_BEFORE: &str = include_str!("../sql/audit_last_before.sql");

/// A slice, open or ended, as it is read to compare it by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedSlice {
    /// What the relay read that passed its rows.
    pub reads: u64,
    /// After this place.
    pub after: Position,
    /// Up to this one.
    pub up_to: Position,
    /// Over the ids of its rows; none where a turn has left only how many there were.
    pub sums: Option<Sums>,
    /// A turn of a replica that records nothing has passed its rows, and others may have passed what follows it in no slice.
    pub is_unrecorded: bool,
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
    // One that has just begun has no place yet.
    let open = open.filter(|slice| slice.after != slice.up_to);
    slices.extend(open.map(|Slice { after, up_to, reads, sums, .. }| RecordedSlice {
        reads,
        after,
        up_to,
        sums: Some(sums),
        is_unrecorded: false,
        ended_at: None,
    }));
    Ok(Some(Recording { position: position(first.try_get(0)?, first.try_get(1)?), now: first.try_get(3)?, slices }))
}

/// That of a row; none where the cursor has none in the range.
fn slice(row: &tokio_postgres::Row) -> Result<Option<RecordedSlice>, tokio_postgres::Error> {
    let Some(reads) = row.try_get::<_, Option<i64>>(4)? else { return Ok(None) };
    let sums: &[u8] = row.try_get(9)?;
    Ok(Some(RecordedSlice {
        reads: u64::try_from(reads).unwrap_or_default(),
        after: Position { created_at: row.try_get(5)?, id: row.try_get(6)? },
        up_to: Position { created_at: row.try_get(7)?, id: row.try_get(8)? },
        sums: Sums::from_bytes(sums),
        is_unrecorded: sums == UNRECORDED,
        ended_at: row.try_get(10)?,
    }))
}

/// When the last slice ended that has no row at or after this instant, and whether turns that record nothing came after it; none
/// where there is none.
///
/// # Errors
/// The database's.
pub async fn last_before(session: &Session, cursor: &str, at: Timestamp) -> Result<Option<(Timestamp, bool)>, Error> {
    let Some(row) = session.query_opt(LAST_BEFORE, &[&cursor, &at]).await? else { return Ok(None) };
    Ok(Some((row.try_get(0)?, row.try_get::<_, &[u8]>(1)? == UNRECORDED)))
}
