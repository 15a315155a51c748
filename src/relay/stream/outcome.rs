//! How a turn ended, and what was measured on the way.

use std::time::Duration;

use crate::database::{Error, sqlstate};
use crate::position::{Position, Timestamp};
use crate::sink::Failure;
use crate::source::fetch::FetchError;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TurnOutcome {
    /// Another holder has the cursor.
    Busy,
    /// An operator has paused it.
    Paused,
    /// It is halted, and the halt counts for this replica.
    Halted,
    /// Another holder has used up the sink's rate, or tries the sink that is out: not before this pause is over. Or nothing
    /// was left to do when the turn could begin, and the next look decides.
    Early(Duration),
    /// It belongs to something else than the relay is configured for.
    Foreign,
    /// The database's clock is behind the one of the last advance.
    Regressed {
        /// The clock of the last advance.
        observed_at: Timestamp,
        /// The clock now.
        clock: Timestamp,
    },
    /// An operator's change was carried out; nothing was published.
    Moved {
        /// The change's number.
        number: i64,
        /// Where the cursor stands now.
        position: Option<Position>,
    },
    /// The position was moved to where a turn had come that did not advance; nothing was published.
    Resumed {
        /// Over how many rows, all acknowledged in that turn.
        rows: usize,
    },
    /// There was nothing to publish.
    Idle,
    /// Rows were published and advanced over.
    Relayed {
        /// How many.
        rows: usize,
        /// The budget ended the turn: more rows may be waiting.
        more: bool,
    },
    /// The topic has another number of partitions than the one that the cursor's keys are spread over.
    Partitions {
        /// The cursor's.
        known: i32,
        /// The topic's.
        found: i32,
    },
    /// A row was refused together with its neighbours; the rows before were advanced over, and the next turns publish
    /// one by one.
    Searching {
        /// How many rows were advanced over.
        rows: usize,
        /// Among how many the offending row stands.
        suspects: usize,
        /// Why.
        failure: Failure,
    },
    /// A row will never be accepted: the rows before were published, it was dead-lettered, all were advanced over.
    Buried {
        /// How many were published.
        rows: usize,
        /// Why it was refused.
        failure: Failure,
        /// Its id.
        message_id: String,
    },
    /// Dead letters were sent again.
    Redriven {
        /// How many were accepted.
        rows: usize,
        /// Why the next one was not.
        failure: Option<Failure>,
        /// The next one's id.
        message_id: Option<String>,
    },
    /// Rows that an ended replica had in flight were recorded as unknown (`at_most_once`); nothing was published.
    Abandoned {
        /// How many.
        rows: u64,
        /// The replica.
        by: String,
    },
    /// Publishing stopped at a row that the receiver may have accepted; it was recorded as unknown and passed.
    Unknown {
        /// How many were published before it.
        rows: usize,
        /// Why it stopped.
        failure: Failure,
        /// The row.
        message_id: Option<String>,
    },
    /// The first row that was not accepted waits for its next attempt with its lane; rows of other lanes were sent.
    LaneWaits {
        /// How many.
        rows: usize,
        /// How long until the next attempt.
        pause: Duration,
        /// Why the row waits.
        failure: Failure,
        /// The row.
        message_id: Option<String>,
    },
    /// Publishing stopped; the rows before were advanced over.
    Stalled {
        /// How many.
        rows: usize,
        /// Why it stopped.
        failure: Failure,
        /// The message concerned.
        message_id: Option<String>,
    },
}

impl TurnOutcome {
    /// Whether the turn has moved the position forward, over how many rows that were sent; `Some(None)`: nothing is left after it.
    pub(in crate::relay) const fn advanced(&self) -> Option<Option<usize>> {
        match self {
            Self::Idle | Self::Relayed { more: false, .. } | Self::Moved { .. } => Some(None),
            Self::Relayed { rows, .. }
            | Self::Resumed { rows }
            | Self::Searching { rows, .. }
            | Self::Buried { rows, .. }
            | Self::Redriven { rows, .. }
            | Self::Unknown { rows, .. }
            | Self::LaneWaits { rows, .. }
            | Self::Stalled { rows, .. } => Some(Some(*rows)),
            Self::Busy
            | Self::Paused
            | Self::Halted
            | Self::Early(_)
            | Self::Foreign
            | Self::Regressed { .. }
            | Self::Partitions { .. }
            | Self::Abandoned { .. } => None,
        }
    }

    /// Why it did not end well, or a row was refused.
    pub(in crate::relay) const fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Stalled { failure, .. }
            | Self::Searching { failure, .. }
            | Self::Buried { failure, .. }
            | Self::Unknown { failure, .. }
            | Self::LaneWaits { failure, .. } => Some(failure),
            Self::Redriven { failure, .. } => failure.as_ref(),
            Self::Busy
            | Self::Paused
            | Self::Halted
            | Self::Early(_)
            | Self::Foreign
            | Self::Regressed { .. }
            | Self::Moved { .. }
            | Self::Resumed { .. }
            | Self::Idle
            | Self::Relayed { .. }
            | Self::Partitions { .. }
            | Self::Abandoned { .. } => None,
        }
    }
}

/// Why a turn could not be finished. Nothing was advanced over.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The lock's connection ended, after this many rows were acknowledged: they may come again.
    #[error(
        "the connection that holds the cursor's lock ended after {acknowledged} published rows: publishing stopped at once"
    )]
    LockLost {
        /// How many.
        acknowledged: usize,
    },
    /// The commit failed or its outcome is unknown, after this many rows were acknowledged: they may come again.
    #[error("{acknowledged} published rows could not be advanced over and may be sent again: {source}")]
    NotAdvanced {
        /// How many.
        acknowledged: usize,
        /// Why.
        source: Error,
    },
    /// How sending ended could not be recorded (`at_most_once`), after this many rows were acknowledged: unless the commit
    /// took place, they are recorded as unknown.
    #[error("{acknowledged} published rows could not be recorded as such and count as unknown: {source}")]
    NotSettled {
        /// How many.
        acknowledged: usize,
        /// Of their reservation.
        token: String,
        /// Why.
        source: Error,
    },
    /// The rows cannot be read.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The database said no.
    #[error(transparent)]
    Database(#[from] Error),
}

impl TurnError {
    /// How many rows were acknowledged, and not recorded as such.
    pub(in crate::relay) const fn acknowledged(&self) -> usize {
        match self {
            Self::LockLost { acknowledged }
            | Self::NotAdvanced { acknowledged, .. }
            | Self::NotSettled { acknowledged, .. } => *acknowledged,
            Self::Fetch(_) | Self::Database(_) => 0,
        }
    }

    /// Its code, for its span; none for what is no failure: the catalog is read again, or the row decided about.
    pub(in crate::relay) fn code(&self) -> Option<String> {
        let code = match self {
            Self::Fetch(FetchError::FamilyChanged | FetchError::Unreadable(_)) => return None,
            Self::Fetch(FetchError::Replaced { .. }) => "relation_replaced",
            Self::Fetch(FetchError::AttachedBehind { .. }) => "partition_attached",
            Self::Fetch(FetchError::Detached { .. } | FetchError::Away { .. }) => "partition_detached",
            Self::Fetch(FetchError::Late(_)) => "read_timeout",
            Self::LockLost { .. } => "lock_lost",
            Self::NotAdvanced { source, .. }
            | Self::NotSettled { source, .. }
            | Self::Fetch(FetchError::Database(source))
            | Self::Database(source) => return Some(sqlstate::word(source)),
        };
        Some(code.to_owned())
    }

    /// The token of the rows whose record PostgreSQL gave no answer about: it may be there.
    pub(in crate::relay) fn unanswered(&self) -> Option<&str> {
        match self {
            Self::NotSettled { token, source, .. } if source.may_have_committed() => Some(token),
            _ => None,
        }
    }
}

/// How long each part of a turn took, and what was measured on the way.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timings {
    /// Getting the lock.
    pub lock: Duration,
    /// Reading.
    pub fetch: Duration,
    /// Publishing, overlapping with reading.
    pub publish: Duration,
    /// The part of it that only waited for the last acknowledgements.
    pub tail: Duration,
    /// Moving the position.
    pub advance: Duration,
    /// Committing, sent together with the move.
    pub commit: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unanswered_commits_may_have_recorded_rows() {
        let unanswered = || Error::Timeout(Duration::from_secs(1));
        let unopened = || Error::Standby("h".to_owned());
        let settled =
            |source| TurnError::NotSettled { acknowledged: 1, token: "t".to_owned(), source }.unanswered().is_some();
        assert!(settled(unanswered()) && !settled(unopened()));
        assert_eq!(TurnError::NotAdvanced { acknowledged: 1, source: unanswered() }.unanswered(), None);
        assert_eq!(TurnError::LockLost { acknowledged: 1 }.unanswered(), None);
    }
}
