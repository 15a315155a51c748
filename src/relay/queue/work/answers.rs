//! What a kind of work answers the runner.

use std::time::Duration;

/// The outcome of recording an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Recorded {
    /// It is recorded.
    Done,
    /// What marks the job as done has no effect: it is recorded as failed.
    Ineffective,
    /// Not yet: another transaction has locked its row.
    NotYet,
    /// Another replica has the claim, or the outcome was recorded before.
    Taken {
        /// The job is marked as done all the same.
        marked: bool,
    },
}

/// How claims are kept alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Renewal {
    /// A claim lasts for this long, which is enough for a send. The runner renews it while its outcome is not recorded.
    WhileUnrecorded(Duration),
    /// A claim is short. The kind of work renews it from its beginning on, in the background, and stops a job whose claim is
    /// lost.
    Always,
}

/// What became of a claim that was to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Renewed {
    /// It lasts as long again.
    Yes,
    /// It is still this replica's, and its row was locked: it lasts no longer than before.
    Locked,
    /// It is another replica's.
    Lost,
}

/// What a poll found.
#[derive(Debug)]
pub(in super::super) struct Poll<D> {
    /// Jobs can be claimed, or claims that have expired are to be looked after.
    pub(in super::super) due: bool,
    /// In how long there is something to do; none when that is not known.
    pub(in super::super) next_in: Option<Duration>,
    /// Something is on its way, here or in another replica.
    pub(in super::super) under_way: bool,
    /// What the claim must know.
    pub(in super::super) detail: D,
}

impl<D> Poll<D> {
    /// Not all was looked at: whether there is something to do is known after this long.
    pub(in super::super) fn looks_again(self, pause: Duration) -> Self {
        Self { next_in: Some(self.next_in.map_or(pause, |next| next.min(pause))), under_way: true, ..self }
    }
}

/// What was claimed.
#[derive(Debug)]
pub(in super::super) struct Begun<J> {
    /// To be sent now.
    pub(in super::super) jobs: Vec<J>,
    /// With no job: the claim has got something done all the same, and the next poll follows soon.
    pub(in super::super) progressed: bool,
}
