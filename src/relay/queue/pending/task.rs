//! A claimed row, and what became of it.

use std::time::{Duration, Instant};

use super::ready::Ready;
use crate::batch::Batch;
use crate::cursor::claims::Claimed;
use crate::cursor::dead_letter::DeadLetter;
use crate::position::Timestamp;
use crate::relay::engine::dead_letter;
use crate::relay::engine::unreadable;
use crate::sink::Failure;
use crate::source::fetch::Unreadable;
use crate::source::pending::Key;

/// A claimed row.
#[derive(Clone, Debug)]
pub(super) struct Task {
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

/// What became of a claimed row.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub(super) task: Task,
    pub(super) outcome: Outcome,
    /// It is not the first time that this is to be recorded.
    pub(super) again: bool,
    /// The server has refused to record it, and that is logged.
    pub(super) refused: bool,
    /// A commit that would have recorded it was not answered.
    pub(super) perhaps_recorded: bool,
    /// When its claim was last made or renewed, by this process's clock.
    pub(super) renewed: Instant,
}

/// See [`Attempt`].
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The receiver has it.
    Sent,
    /// It was not sent, or nobody knows.
    Failed(Failure),
    /// It was not even tried.
    Untried,
}

impl Attempt {
    pub(super) const fn is_acknowledged(&self) -> bool {
        matches!(self.outcome, Outcome::Sent)
    }
}

impl Task {
    pub(super) fn claim(&self) -> Claimed<'_> {
        Claimed { relay: &self.relay, key: &self.key.0, token: &self.token }
    }

    /// Why it is not sent, if it was not read.
    pub(super) fn refused(&self, most: usize) -> Option<Failure> {
        let bytes = self.too_large?;
        Some(unreadable::failure(&Unreadable::large(self.message.position(0), bytes, most)))
    }

    /// What is put aside of it.
    pub(super) fn letter(&self, ready: &Ready) -> DeadLetter<'_> {
        let message = self.message.message(0);
        match self.too_large {
            Some(_) => dead_letter::unread(&ready.config, &message),
            None => dead_letter::letter(&ready.config, &ready.sink, &message),
        }
    }

    pub(super) fn ended(self, outcome: Outcome) -> Attempt {
        Attempt { renewed: self.claimed, task: self, outcome, again: false, refused: false, perhaps_recorded: false }
    }
}
