//! Steps back of the database's clock behind a cursor's position, written down in `outbox.operation`.
//!
//! What is stamped after such a step, and before the clock has passed the position, is skipped without a trace. The row
//! stands until an operator has moved the cursor since.

use crate::database::{Error, Session};
use crate::position::Timestamp;

const NOTE: &str = "INSERT INTO outbox.operation (operator, verb, cursor, detail) \
     SELECT session_user || '/' || $1::text, 'clock stepped back', $2::text, \
     pg_catalog.jsonb_build_object('from', $3::timestamptz, 'to', $4::timestamptz) \
     WHERE NOT EXISTS (SELECT FROM outbox.operation AS o WHERE o.cursor = $2 AND o.verb = 'clock stepped back' \
     AND (o.detail ->> 'to')::timestamptz = $4)";

const OPEN: &str = "SELECT o.cursor, pg_catalog.min((o.detail ->> 'from')::timestamptz), \
     pg_catalog.max((o.detail ->> 'to')::timestamptz) FROM outbox.operation AS o \
     WHERE o.verb = 'clock stepped back' AND o.cursor IS NOT NULL AND NOT EXISTS (SELECT FROM outbox.operation AS a \
     WHERE a.cursor = o.cursor AND a.verb = 'cursor seek' AND a.id > o.id) GROUP BY o.cursor";

/// A step back of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// Nothing that was stamped after the step is older.
    pub from: Timestamp,
    /// The clock at the last advance before the step.
    pub to: Timestamp,
}

/// Writes a step down, once however many replicas have seen it.
///
/// # Errors
/// The database's.
pub async fn note(session: &Session, cursor: &str, by: &str, step: ClockStep) -> Result<(), Error> {
    session.execute(NOTE, &[&by, &cursor, &step.from, &step.to]).await?;
    Ok(())
}

/// By cursor, the steps since which no operator has moved it, as one.
///
/// # Errors
/// The database's.
pub async fn open(session: &Session) -> Result<Vec<(String, ClockStep)>, Error> {
    let rows = session.query(OPEN, &[]).await?;
    let step =
        |row: &tokio_postgres::Row| Ok((row.try_get(0)?, ClockStep { from: row.try_get(1)?, to: row.try_get(2)? }));
    rows.iter().map(step).collect()
}
