//! A claimed request, and what became of it.

use std::time::Instant;

use crate::batch::Batch;
use crate::cursor::ledger::Named;
use crate::position::Timestamp;
use crate::sink::{Failure, Receipt};

/// A claimed request.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) token: String,
    /// How often sending it has failed before.
    pub(super) attempts: i32,
    pub(super) due_at: Timestamp,
    /// When it was claimed, by this process's clock.
    pub(super) claimed: Instant,
    /// It may have been sent before.
    pub(super) again: bool,
    /// What is sent stands in the ledger already.
    pub(super) pinned_before: bool,
    pub(super) plan: Plan,
    /// Its message alone.
    pub(super) message: Batch,
}

/// What is to be done with it.
#[derive(Debug)]
pub(super) enum Plan {
    /// Send this.
    Send(Vec<u8>),
    /// Ask the receiver first; send this when it has not got it.
    Ask(Vec<u8>),
    /// Nothing can be made of it.
    Refused(Failure),
}

/// What became of it.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) task: Task,
    pub(super) outcome: Outcome,
    /// A try before this one may have been accepted, for all that is known now.
    pub(super) doubted: bool,
    /// It is not the first time that this is to be recorded.
    pub(super) told: bool,
    /// A commit that would have recorded it was not answered.
    pub(super) perhaps_recorded: bool,
}

/// See [`Attempt`].
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The receiver has it.
    Accepted(Receipt),
    /// It was not sent by this try, or nobody knows.
    Failed(Failure),
    /// It was not even tried.
    Untried,
}

impl Attempt {
    pub(super) const fn is_acknowledged(&self) -> bool {
        matches!(self.outcome, Outcome::Accepted(_))
    }
}

impl Task {
    pub(super) fn named(&self) -> Named<'_> {
        Named { id: &self.id, token: &self.token }
    }

    /// What is sent.
    pub(super) fn body(&self) -> Option<&[u8]> {
        match &self.plan {
            Plan::Send(body) | Plan::Ask(body) => Some(body),
            Plan::Refused(_) => None,
        }
    }

    pub(super) fn ended(self, outcome: Outcome) -> Attempt {
        let doubted = self.again;
        Attempt { task: self, outcome, doubted, told: false, perhaps_recorded: false }
    }
}
