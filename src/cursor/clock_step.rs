//! Steps back of the database's clock behind a cursor's last advance, recorded in `outbox.operation`.
//!
//! A row that is stamped after such a step, and before the clock has passed the position, is skipped. The record stands, also
//! beyond a rename, until an operator has moved the cursor to an instant that is not after the step's end.

use crate::database::{Error, Session};
use crate::position::Timestamp;

const NOTE: &str = include_str!("sql/clock_step_note.sql");

const OPEN: &str = include_str!("sql/clock_step_open.sql");

/// A step back of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStep {
    /// No later than the clock right after the step: what was stamped between here and `to` may have been skipped. None where no
    /// replica knows: none was running before the step.
    pub from: Option<Timestamp>,
    /// The clock at the last advance before the step.
    pub to: Timestamp,
}

/// Records a step, unless a replica has recorded it with a start that is as early.
///
/// # Errors
/// The database's.
pub async fn note(session: &Session, cursor: &str, by: &str, step: ClockStep) -> Result<(), Error> {
    session.execute(NOTE, &[&by, &cursor, &step.from, &step.to]).await?;
    Ok(())
}

/// By cursor, the steps that no operator has answered, as one.
///
/// # Errors
/// The database's.
pub async fn open(session: &Session) -> Result<Vec<(String, ClockStep)>, Error> {
    let rows = session.query(OPEN, &[]).await?;
    let step =
        |row: &tokio_postgres::Row| Ok((row.try_get(0)?, ClockStep { from: row.try_get(1)?, to: row.try_get(2)? }));
    rows.iter().map(step).collect()
}
