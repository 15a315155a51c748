//! Ways of getting rule and reading wrong. Those that the product once had are marked with the loss that showed them.

use std::collections::HashMap;

use super::*;

/// The rule as it is, or with one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    Right,
    /// The clock is read after the locks.
    ClockAfterScan,
    /// The rows are read with a snapshot older than the scan.
    SnapshotBeforeScan,
    /// A holder is bounded by the scan that sees it.
    NewestScanAsBound,
    /// A holder of the first scan without a known start is skipped.
    UnknownSkipped,
    /// No holder counts.
    WindowOnly,
    /// As it was: activity is read after the locks, and gives a prepared transaction its session's next start.
    StartsAfterLocks,
    /// A prepared transaction is taken for one that its session still runs.
    PreparedTakenForRunning,
    /// As it was: the rule of first absence, for a stamp that is the message's.
    FirstSeenUnderTransactions,
    /// Transactions are read before sessions.
    TransactionsBeforeSessions,
    /// A session between two transactions of a message does not count.
    MessageIgnored,
    /// A prepared transaction that was not seen running is bounded by the scan before.
    PreparedByFirstSeen,
    /// A session that reports nothing is taken for idle.
    SilentSkipped,
    /// A session that is being opened is taken for idle, although a login trigger stamps a row with its beginning.
    LoginTriggerIgnored,
    /// As it was: every session of the relay's role is left out.
    RelayRoleLeftOut,
    /// As it was: the rule `writers` for `now()`, after the default changed.
    NowUnderWriters,
    /// As it was: each step of the clock alone is compared with the window.
    StepsComparedSingly,
    /// After a step of the clock, the history starts over, as when a partition comes at that moment. No fault: a start above the clock
    /// tells of the step, too.
    StepForgotten,
    /// As it was: the snapshot is taken before the table's lock is granted.
    SnapshotBeforeTableLock,
    /// As it was: the leaves of the catalog are written down as read, while the snapshot read others.
    CatalogTakenForRead,
    /// As it was: a leaf whose detachment is pending is written down as read.
    PendingTakenForRead,
    /// As it was: a default is taken for proof, while a writer sets a column of its own.
    DefaultTakenForProof,
}

/// All faulty ones.
pub(super) const FAULTY: [Variant; 20] = [
    Variant::ClockAfterScan,
    Variant::SnapshotBeforeScan,
    Variant::NewestScanAsBound,
    Variant::UnknownSkipped,
    Variant::WindowOnly,
    Variant::StartsAfterLocks,
    Variant::PreparedTakenForRunning,
    Variant::FirstSeenUnderTransactions,
    Variant::TransactionsBeforeSessions,
    Variant::MessageIgnored,
    Variant::PreparedByFirstSeen,
    Variant::SilentSkipped,
    Variant::LoginTriggerIgnored,
    Variant::RelayRoleLeftOut,
    Variant::NowUnderWriters,
    Variant::StepsComparedSingly,
    Variant::SnapshotBeforeTableLock,
    Variant::CatalogTakenForRead,
    Variant::PendingTakenForRead,
    Variant::DefaultTakenForProof,
];

impl Variant {
    /// The rule that it is a fault of; either when none.
    pub(super) fn rule(self) -> Option<Rule> {
        match self {
            Self::StartsAfterLocks
            | Self::PreparedTakenForRunning
            | Self::UnknownSkipped
            | Self::NewestScanAsBound
            | Self::NowUnderWriters
            | Self::StepsComparedSingly
            | Self::StepForgotten
            | Self::DefaultTakenForProof => Some(Rule::Writers),
            Self::FirstSeenUnderTransactions
            | Self::TransactionsBeforeSessions
            | Self::MessageIgnored
            | Self::PreparedByFirstSeen
            | Self::SilentSkipped
            | Self::LoginTriggerIgnored
            | Self::RelayRoleLeftOut => Some(Rule::Transactions),
            Self::Right
            | Self::ClockAfterScan
            | Self::SnapshotBeforeScan
            | Self::WindowOnly
            | Self::SnapshotBeforeTableLock
            | Self::CatalogTakenForRead
            | Self::PendingTakenForRead => None,
        }
    }

    /// Whether the horizon is computed as it was.
    pub(super) fn by_first_rule(self) -> bool {
        matches!(self, Self::StartsAfterLocks | Self::StepsComparedSingly | Self::NewestScanAsBound)
    }
}

/// The first version of the rule: whatever start is read counts, and each step of the clock is compared by itself.
#[derive(Debug, Default)]
pub(super) struct FirstRule {
    last: Option<Timestamp>,
    bounds: HashMap<String, Option<Timestamp>>,
}

impl FirstRule {
    /// The horizon, from the clock, the time since the scan before, and holders with their starts.
    pub(super) fn observe(
        &mut self,
        at: Timestamp,
        elapsed: Duration,
        holders: Vec<(String, Option<Timestamp>)>,
        window: Duration,
    ) -> Timestamp {
        let previous = self.last.replace(at);
        let stepped = previous.is_some_and(|last| last.plus(elapsed).since(at) > window);
        let known = std::mem::take(&mut self.bounds);
        let mut lowest = at;
        for (transaction, started) in holders {
            let before = known.get(&transaction).copied();
            let bound = if stepped { None } else { before.unwrap_or(previous).max(started) };
            let bound = if before == Some(None) && started.is_none() { None } else { bound };
            lowest = lowest.min(bound.unwrap_or(Timestamp::NEG_INFINITY));
            self.bounds.insert(transaction, bound);
        }
        lowest.minus(window)
    }
}
