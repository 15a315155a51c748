//! A claimed action, and what became of it.

use std::sync::Arc;
use std::time::Instant;

use super::keep::Kept;
use crate::cursor::actions::{Claimed, Named};
use crate::sink::Failure;

/// A claimed action.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) action: Claimed,
    pub(super) token: String,
    /// Its claim, which is kept while it runs.
    pub(super) kept: Arc<Kept>,
    /// When it was claimed, by this process's clock.
    pub(super) claimed: Instant,
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) task: Task,
    pub(super) outcome: Outcome,
    /// A commit that would have recorded it was not answered.
    pub(super) perhaps_recorded: bool,
}

impl Attempt {
    pub(super) const fn is_acknowledged(&self) -> bool {
        matches!(self.outcome, Outcome::Done(_))
    }
}

/// See [`Attempt`].
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// It was done; what was answered.
    Done(String),
    /// It was done, and recorded in the transaction that did it.
    Recorded,
    /// There was nothing to do; why.
    Skipped(String),
    /// It was not done, or nobody knows.
    Failed(Failure),
    /// It took longer than its schedule allows, and was stopped.
    TimedOut {
        /// Whether it may have been done all the same.
        ambiguous: bool,
    },
    /// The process ended, or lost its claim, while it was at work.
    Cut {
        /// Whether it may have been done all the same.
        ambiguous: bool,
    },
}

impl Task {
    pub(super) fn named(&self) -> Named<'_> {
        Named { id: self.action.id, token: &self.token }
    }

    pub(super) const fn ended(self, outcome: Outcome) -> Attempt {
        Attempt { task: self, outcome, perhaps_recorded: false }
    }
}
