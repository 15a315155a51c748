//! Outcomes that a receiver acknowledged and that are not recorded: the exit code is 1 exactly when there are some.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cursor::unknown;
use crate::database::{Error, Session};

/// The unrecorded outcomes of this process, by cursor.
#[derive(Debug, Default)]
pub struct Unrecorded {
    counts: Mutex<BTreeMap<String, Count>>,
    unanswered: Mutex<Vec<Unanswered>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// Never recorded.
    lost: usize,
    /// Rows of a stream, directly after its position: a later turn may advance over them.
    behind: usize,
}

/// Rows of a stream that PostgreSQL was told to record and gave no answer about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Unanswered {
    cursor: String,
    /// Of their reservation.
    token: String,
    rows: usize,
}

impl Unrecorded {
    /// So many outcomes will never be recorded.
    pub(in crate::relay) fn lost(&self, cursor: &str, outcomes: usize) {
        self.note(cursor, |count| count.lost += outcomes);
    }

    /// So many rows that this token reserved are recorded as sent, or will be as unknown.
    pub(in crate::relay) fn unanswered(&self, cursor: &str, token: &str, rows: usize) {
        let unanswered = Unanswered { cursor: cursor.to_owned(), token: token.to_owned(), rows };
        self.unanswered.lock().unwrap_or_else(PoisonError::into_inner).push(unanswered);
    }

    /// Finds out, on a session that is opened where there are any, what became of rows that PostgreSQL gave no answer about. Where
    /// that cannot be found out, they count as not recorded.
    ///
    /// # Errors
    /// The database's, or it does not answer within `limit`.
    pub async fn resolve(
        &self,
        session: impl Future<Output = Result<Arc<Session>, Error>>,
        limit: Duration,
    ) -> Result<(), Error> {
        let mut unanswered = std::mem::take(&mut *self.unanswered.lock().unwrap_or_else(PoisonError::into_inner));
        if unanswered.iter().all(|unanswered| unanswered.rows == 0) {
            return Ok(());
        }
        let asking = async {
            let session = session.await?;
            while let Some(Unanswered { cursor, token, rows }) = unanswered.last() {
                if unknown::is_lost(&session, cursor, token).await? {
                    self.lost(cursor, *rows);
                }
                unanswered.pop();
            }
            Ok(())
        };
        let asked = tokio::time::timeout(limit, asking).await.unwrap_or(Err(Error::Timeout(limit)));
        for Unanswered { cursor, rows, .. } in unanswered {
            self.lost(&cursor, rows);
        }
        asked
    }

    /// A turn ended with so many acknowledged rows that it has not advanced over.
    pub(in crate::relay) fn not_advanced(&self, cursor: &str, rows: usize) {
        self.note(cursor, |count| count.behind = count.behind.max(rows));
    }

    /// A turn has advanced over so many rows; over all there were, when there is no number.
    pub(in crate::relay) fn advanced(&self, cursor: &str, rows: Option<usize>) {
        self.note(cursor, |count| count.behind = rows.map_or(0, |rows| count.behind.saturating_sub(rows)));
    }

    fn note(&self, cursor: &str, change: impl FnOnce(&mut Count)) {
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = all.get(cursor).copied().unwrap_or_default();
        change(&mut count);
        if count == Count::default() {
            all.remove(cursor);
        } else {
            all.insert(cursor.to_owned(), count);
        }
    }

    /// Logs them, a line for each cursor; whether there are any.
    #[must_use]
    pub fn reported(&self) -> bool {
        let all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        for (cursor, count) in &*all {
            let outcomes = count.lost + count.behind;
            tracing::error!(cursor, outcomes, "exiting with unrecorded outcomes; see the lines above");
        }
        !all.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_behind_are_recorded_by_later_turns_and_lost_ones_never() {
        let unrecorded = Unrecorded::default();
        unrecorded.not_advanced("a", 3);
        unrecorded.advanced("a", Some(2));
        assert!(unrecorded.reported());
        unrecorded.advanced("a", Some(1));
        assert!(!unrecorded.reported());
        unrecorded.not_advanced("a", 3);
        unrecorded.advanced("a", None);
        assert!(!unrecorded.reported());
        unrecorded.lost("b", 1);
        unrecorded.advanced("b", None);
        unrecorded.lost("c", 0);
        assert!(unrecorded.reported());
        assert_eq!(unrecorded.counts.into_inner().expect("no panic").len(), 1);
    }
}
