//! A claimed action, and what became of it.

use std::sync::Arc;
use std::time::Instant;

use super::renew::RenewedClaim;
use crate::jobs::actions::{ClaimedAction, NamedAction};
use crate::relay::queue::work::{Job, Outcome};
use crate::sink::Failure;

/// A claimed action.
#[derive(Debug)]
pub(super) struct ActionJob {
    pub(super) action: ClaimedAction,
    pub(super) token: String,
    /// Its claim, which is renewed while this is there.
    pub(super) claim: Arc<RenewedClaim>,
    /// When it was claimed, by this process's clock.
    pub(super) claimed: Instant,
}

/// What became of it.
#[derive(Clone, Debug)]
pub(super) enum ActionOutcome {
    /// It was done; what was answered.
    Done(String),
    /// It was done, and recorded in the transaction that did it.
    Recorded,
    /// There was nothing to do; why.
    Skipped(String),
    /// It was not done, or whether it was is unknown.
    Failed(Failure),
    /// It took longer than its schedule allows, and was stopped.
    TimedOut {
        /// Whether it may have been done all the same.
        ambiguous: bool,
    },
    /// The process ended, or lost its claim, before anything of it was run.
    NotBegun,
    /// The process ended, or lost its claim, while it was at work.
    Cut {
        /// Whether it may have been done all the same.
        ambiguous: bool,
    },
}

impl Outcome for ActionOutcome {
    fn is_acknowledged(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    fn was_begun(&self) -> bool {
        !matches!(self, Self::NotBegun)
    }
}

impl Job for ActionJob {
    fn id(&self) -> String {
        self.action.id.to_string()
    }

    fn claimed_at(&self) -> Instant {
        self.claimed
    }
}

impl ActionJob {
    pub(super) fn named(&self) -> NamedAction<'_> {
        NamedAction { id: self.action.id, token: &self.token, ran: self.claim.ran() }
    }
}
