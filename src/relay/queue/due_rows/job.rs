//! A claimed due row, and what became of it.

use std::time::{Duration, Instant};

use super::prepare::PreparedPending;
use crate::batch::Batch;
use crate::cursor::dead_letter::DeadLetter;
use crate::jobs::due_rows::ClaimedRow;
use crate::position::Timestamp;
use crate::relay::engine::dead_letter;
use crate::relay::engine::unreadable;
use crate::relay::queue::work::{Job, Outcome};
use crate::sink::Failure;
use crate::source::fetch::Unreadable;
use crate::source::pending::Key;

/// A claimed row.
#[derive(Clone, Debug)]
pub(super) struct PendingJob {
    pub(super) relay: String,
    pub(super) key: Key,
    pub(super) token: String,
    pub(super) due_at: Timestamp,
    /// How often sending it has failed before.
    pub(super) attempts: i32,
    /// How long it had been due then.
    pub(super) late: Duration,
    /// When it was claimed, by this process's clock.
    pub(super) claimed: Instant,
    /// An operator wants it sent again.
    pub(super) replayed: bool,
    /// Its message alone.
    pub(super) message: Batch,
    /// How many bytes the row takes, when that is more than is read: its message has no values then.
    pub(super) too_large: Option<usize>,
}

/// What became of it.
#[derive(Clone, Debug)]
pub(super) enum SendOutcome {
    /// The receiver has it.
    Sent,
    /// It was not sent, or nobody knows.
    Failed(Failure),
    /// It was not even tried.
    Untried,
}

impl Outcome for SendOutcome {
    fn is_acknowledged(&self) -> bool {
        matches!(self, Self::Sent)
    }
}

impl Job for PendingJob {
    fn id(&self) -> String {
        self.key.message_id()
    }

    fn claimed_at(&self) -> Instant {
        self.claimed
    }
}

impl PendingJob {
    pub(super) fn claim(&self) -> ClaimedRow<'_> {
        ClaimedRow { relay: &self.relay, key: &self.key.0, token: &self.token }
    }

    /// Why it is not sent, if it was not read.
    pub(super) fn refused(&self, most: usize) -> Option<Failure> {
        let bytes = self.too_large?;
        Some(unreadable::failure(&Unreadable::large(self.message.position(0), bytes, most)))
    }

    /// What is dead-lettered of it.
    pub(super) fn letter(&self, prepared: &PreparedPending, failure: &Failure) -> DeadLetter<'_> {
        let message = self.message.message(0);
        match self.too_large {
            Some(_) => dead_letter::unread(&prepared.config, &message),
            None => dead_letter::letter(&prepared.config, (&prepared.sink, prepared.sink.fields()), &message, failure),
        }
    }
}
