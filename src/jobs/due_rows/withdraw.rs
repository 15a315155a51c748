//! Claims of rows that are gone, or not due any more as they were.

use super::{ClaimedRow, DONE};
use crate::cursor::{LockedCursor, Taking};
use crate::database::{Error, sqlstate};

/// After so many seconds a mark is tried to be taken back again when the server has refused it.
const REFUSED: f64 = 60.0;

const POSTPONE: &str = include_str!("../sql/due_rows_postpone.sql");

/// What has become of a claim that was to be withdrawn.
#[derive(Debug)]
pub enum Withdrawal {
    /// It has ended, and so has the mark.
    Done,
    /// It waits: the application keeps the row locked.
    Locked,
    /// It waits longer: the server refuses to take the mark back.
    Refused(Error),
}

impl LockedCursor {
    /// A row that was taken again is gone, or not due any more: its mark is taken back, if it has one, and its claim ends.
    ///
    /// # Errors
    /// The database's.
    pub async fn withdraw(&self, unmark: Option<Taking<'_>>, row: ClaimedRow<'_>) -> Result<Withdrawal, Error> {
        let withdrawal = match unmark {
            Some(unmark) => self.unmark(unmark).await?,
            None => Withdrawal::Done,
        };
        let postponed = |pause: f64| async move {
            let statement = self.transaction().prepare_cached(POSTPONE).await?;
            self.transaction().execute(&statement, &[&row.relay, &row.key, &row.token, &pause]).await
        };
        match withdrawal {
            Withdrawal::Done => {
                let statement = self.transaction().prepare_cached(DONE).await?;
                self.transaction().execute(&statement, &[&row.relay, &row.key, &row.token]).await?
            }
            Withdrawal::Locked => postponed(1.0).await?,
            Withdrawal::Refused(_) => postponed(REFUSED).await?,
        };
        Ok(withdrawal)
    }

    /// Takes a mark back. What the server refuses for this row must not end the transaction, in which others are claimed.
    async fn unmark(&self, unmark: Taking<'_>) -> Result<Withdrawal, Error> {
        self.transaction().batch_execute("SAVEPOINT unmark").await?;
        let answers = match self.claim(unmark).await {
            Err(error) if sqlstate::is_about_a_row(&error) || sqlstate::is_lock_timeout(&error) => {
                self.transaction().batch_execute("ROLLBACK TO SAVEPOINT unmark; RELEASE SAVEPOINT unmark").await?;
                return Ok(Withdrawal::Refused(error));
            }
            answers => answers?,
        };
        self.transaction().batch_execute("RELEASE SAVEPOINT unmark").await?;
        for answer in answers {
            let (there, unmarked): (bool, bool) = (answer.try_get(0)?, answer.try_get(1)?);
            if there && !unmarked {
                return Ok(Withdrawal::Locked);
            }
        }
        Ok(Withdrawal::Done)
    }
}
