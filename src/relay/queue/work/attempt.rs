//! A job with its outcome, until that is recorded.

use std::time::Instant;

use super::{Job, Outcome};

/// A job that was sent, or was to be, until its outcome is recorded.
#[derive(Clone, Debug)]
pub(in super::super) struct Attempt<J, O> {
    pub(in super::super) job: J,
    pub(in super::super) outcome: O,
    /// It is logged and counted.
    pub(in super::super) reported: bool,
    /// The server has refused to record it, and that is logged.
    pub(in super::super) refused: bool,
    /// Its record has held others up: it is recorded by itself.
    pub(in super::super) alone: bool,
    /// The commit of its claim was not answered: nothing of it was begun, and there may be no such claim.
    pub(in super::super) unanswered: bool,
    /// A commit that would have recorded it was not answered.
    pub(in super::super) may_be_recorded: bool,
    /// Its claim was another replica's when it was to be renewed.
    pub(in super::super) lost: bool,
    /// When its claim was last made or renewed, by this process's clock.
    pub(in super::super) renewed: Instant,
    /// Since when it is to be recorded.
    pub(in super::super) ended: Instant,
}

impl<J: Job, O: Outcome> Attempt<J, O> {
    pub(in super::super) fn new(job: J, outcome: O) -> Self {
        let (renewed, ended) = (job.claimed_at(), Instant::now());
        Self {
            renewed,
            ended,
            job,
            outcome,
            reported: false,
            refused: false,
            alone: false,
            unanswered: false,
            may_be_recorded: false,
            lost: false,
        }
    }

    /// Of a claim whose commit was not answered; the outcome says that nothing was begun.
    pub(in super::super) fn unanswered(job: J, outcome: O) -> Self {
        Self { unanswered: true, reported: true, ..Self::new(job, outcome) }
    }

    pub(in super::super) fn is_acknowledged(&self) -> bool {
        self.outcome.is_acknowledged()
    }
}
