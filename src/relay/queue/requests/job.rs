//! A claimed request, and what became of it.

use std::time::Instant;

use crate::batch::Batch;
use crate::jobs::ledger::NamedRequest;
use crate::position::Timestamp;
use crate::relay::queue::work::{Job, Outcome};
use crate::sink::{Failure, Receipt};

/// A claimed request.
#[derive(Debug)]
pub(super) struct RequestJob {
    pub(super) id: String,
    pub(super) token: String,
    /// How often sending it has failed before.
    pub(super) attempts: i32,
    pub(super) due_at: Timestamp,
    /// When it was claimed, by this process's clock.
    pub(super) claimed: Instant,
    /// It may have been sent before: a refusal of this try says nothing of the request.
    pub(super) again: bool,
    /// What is sent stands in the ledger already.
    pub(super) pinned_before: bool,
    pub(super) plan: RequestPlan,
    /// Its message alone.
    pub(super) message: Batch,
}

/// What is to be done with it.
#[derive(Debug)]
pub(super) enum RequestPlan {
    /// Send this.
    Send(Vec<u8>),
    /// Ask the receiver first; send this when it has not got it.
    Ask(Vec<u8>),
    /// Nothing can be made of it.
    Refused(Failure),
}

/// What became of it.
#[derive(Clone, Debug)]
pub(super) enum RequestOutcome {
    /// The receiver has it.
    Accepted(Receipt),
    /// It was not sent by this try, or nobody knows.
    Failed(Failure),
    /// It was not even tried.
    Untried,
}

impl Outcome for RequestOutcome {
    fn is_acknowledged(&self) -> bool {
        matches!(self, Self::Accepted(_))
    }
}

impl Job for RequestJob {
    fn id(&self) -> String {
        self.id.clone()
    }

    fn claimed_at(&self) -> Instant {
        self.claimed
    }
}

impl RequestJob {
    pub(super) fn named(&self) -> NamedRequest<'_> {
        NamedRequest { id: &self.id, token: &self.token }
    }

    /// What is sent.
    pub(super) fn body(&self) -> Option<&[u8]> {
        match &self.plan {
            RequestPlan::Send(body) | RequestPlan::Ask(body) => Some(body),
            RequestPlan::Refused(_) => None,
        }
    }
}
