//! A cursor whose position rests on a stronger horizon rule than the table has now, or on another order of its rows.

use tokio_postgres::types::ToSql;

use super::audit_slices;
use super::lock::{LockedCursor, RestsOn};
use super::status::{self, ErrorReport};
use crate::database::Error;
use crate::position::{Position, Timestamp};

const WEAKEN: &str = include_str!("sql/rule_weaken.sql");

const NOTE: &str = include_str!("sql/rule_note.sql");

/// A halt that is written with what it follows from.
#[derive(Clone, Debug)]
pub struct Halting<'a> {
    /// Why.
    pub report: ErrorReport<'a>,
    /// The configuration under which the cursor is halted.
    pub fingerprint: &'a str,
}

impl LockedCursor {
    /// Records what positions rest on now, and the halt, and commits, which frees the lock. With `back`, the position goes back to that
    /// instant, whose rows come again; a row in `outbox.operation` shows it.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown, and the next holder reads what is true.
    pub async fn go_back(
        self,
        rests_on: &RestsOn,
        back: Option<Timestamp>,
        halt: &Halting<'_>,
        by: &str,
    ) -> Result<(), Error> {
        let connection = &self.connection;
        connection.batch_execute("SET LOCAL synchronous_commit TO on").await?;
        status::report(connection, &self.name, &halt.report, Some(halt.fingerprint), Some(false)).await?;
        if connection.execute(WEAKEN, &[&self.name, &rests_on.rule, &back, &rests_on.order, &rests_on.columns]).await?
            != 1
        {
            return Err(Error::Vanished(self.name));
        }
        // Rows that come again are not late, and what was passed in another order is not between the same two places.
        audit_slices::forget(connection, &self.name).await?;
        if let Some(back) = back {
            let from = self.position.as_ref().map(Position::to_string);
            let parameters: [&(dyn ToSql + Sync); 5] = [&by, &self.name, &rests_on.rule, &from, &back];
            connection.execute(NOTE, &parameters).await?;
        }
        connection.batch_execute("COMMIT").await?;
        self.connection.give_back();
        Ok(())
    }
}
