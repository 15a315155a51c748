//! Which records of a publication are acknowledged. Reports can be handled out of order, so it is kept by row, and the
//! prefix is computed: never "the last report seen".
//!
//! Whoever sends and the client's thread that reports meet at every record, so that they share as little as possible:
//! the sender writes a number and reads a flag, and takes no lock.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::error::RDKafkaErrorCode;
use tokio::sync::Notify;

use super::errors;
use crate::sink::Class;

/// How long a failed publication waits for the reports that are still to come.
const LAST_REPORTS: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// How many records have been handed to the client.
    sent: AtomicUsize,
    failed: AtomicBool,
    reports: Mutex<Reports>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Reports {
    /// Leading records that are acknowledged.
    prefix: usize,
    /// Acknowledged records behind a gap.
    beyond: BTreeSet<usize>,
    reported: usize,
    /// The failed record with the lowest number, and why.
    failed: Option<(usize, RDKafkaErrorCode)>,
    /// A record was refused for what it is, or for its topic, so that its neighbours' failures only follow from it.
    refused: Option<RDKafkaErrorCode>,
    /// Somebody waits for so many reports.
    wake_at: Option<usize>,
}

/// How a publication stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Leading records that are acknowledged.
    pub(super) acknowledged: usize,
    /// Every record sent is acknowledged.
    pub(super) complete: bool,
    /// The failed record with the lowest number, and why.
    pub(super) error: Option<(usize, RDKafkaErrorCode)>,
    /// Why the broker refused a record for what it is, or for its topic, if it did.
    pub(super) refused: Option<RDKafkaErrorCode>,
}

impl Reports {
    fn acknowledged(&mut self, row: usize) {
        if row != self.prefix {
            self.beyond.insert(row);
            return;
        }
        self.prefix += 1;
        while self.beyond.first() == Some(&self.prefix) {
            self.beyond.pop_first();
            self.prefix += 1;
        }
    }

    fn failed(&mut self, row: usize, error: RDKafkaErrorCode) {
        let is_refusal =
            errors::meaning(error).class == Class::Poison || error == RDKafkaErrorCode::TopicAuthorizationFailed;
        if self.refused.is_none() && is_refusal {
            self.refused = Some(error);
        }
        if self.failed.is_none_or(|(lowest, _)| row < lowest) {
            self.failed = Some((row, error));
        }
    }
}

impl Ledger {
    fn reports(&self) -> MutexGuard<'_, Reports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the publication before.
    pub(super) fn begin(&self) {
        let mut reports = self.reports();
        *reports = Reports::default();
        self.sent.store(0, Ordering::Release);
        self.failed.store(false, Ordering::Release);
    }

    /// The record number `row`, the next one, is about to be handed to the client.
    pub(super) fn sending(&self, row: usize) {
        debug_assert_eq!(row, self.sent.load(Ordering::Relaxed), "records are sent in order");
        self.sent.store(row + 1, Ordering::Release);
    }

    /// The client did not take the record number `row`, the last one.
    pub(super) fn not_sent(&self, row: usize) {
        self.sent.store(row, Ordering::Release);
    }

    /// The client reports on the record number `row`.
    pub(super) fn report(&self, row: usize, error: Option<RDKafkaErrorCode>) {
        let mut reports = self.reports();
        reports.reported += 1;
        match error {
            None => reports.acknowledged(row),
            Some(error) => {
                reports.failed(row, error);
                self.failed.store(true, Ordering::Release);
            }
        }
        let wake = reports.wake_at.is_some_and(|at| reports.failed.is_some() || reports.reported >= at);
        if wake {
            reports.wake_at = None;
        }
        drop(reports);
        if wake {
            self.changed.notify_one();
        }
    }

    /// Whether a record has failed.
    pub(super) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits for a third of the reports that are to come, after the client's queue was full.
    pub(super) async fn progress(&self) {
        {
            let mut reports = self.reports();
            let missing = self.sent.load(Ordering::Acquire).saturating_sub(reports.reported);
            reports.wake_at = Some(reports.reported + (missing / 3).max(1));
        }
        // The queue may have emptied between the refusal and this wait: the pause bounds a lost wake-up.
        let _ = tokio::time::timeout(Duration::from_millis(5), self.changed.notified()).await;
    }

    /// Waits until every record is reported on, or one has failed; then the others' reports for a little while, so that
    /// what the broker has accepted counts.
    pub(super) async fn settled(&self) {
        self.answered().await;
        // When this passes, the prefix is shorter than it might be, and some records come again.
        let _ = tokio::time::timeout(LAST_REPORTS, self.reported(false)).await;
    }

    /// Waits until every record is reported on, or one has failed.
    pub(super) async fn answered(&self) {
        self.reported(true).await;
    }

    async fn reported(&self, or_failed: bool) {
        loop {
            {
                let mut reports = self.reports();
                let sent = self.sent.load(Ordering::Acquire);
                if (or_failed && reports.failed.is_some()) || reports.reported == sent {
                    return;
                }
                reports.wake_at = Some(sent);
            }
            self.changed.notified().await;
        }
    }

    /// How many leading records are acknowledged.
    pub(super) fn acknowledged(&self) -> usize {
        self.reports().prefix
    }

    /// How it stands now.
    pub(super) fn outcome(&self) -> Outcome {
        let reports = self.reports();
        Outcome {
            acknowledged: reports.prefix,
            complete: reports.prefix == self.sent.load(Ordering::Acquire),
            error: reports.failed,
            refused: reports.refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        // Guarantee: delivery.prefix
        #[test]
        fn prefix_is_what_is_acknowledged_without_a_gap_in_whatever_order_reports_come(
            fates in prop::collection::vec(prop::option::weighted(0.9, Just(())), 0..200),
            order in any::<u64>(),
        ) {
            let ledger = Ledger::default();
            ledger.begin();
            (0..fates.len()).for_each(|row| ledger.sending(row));
            let mut rows: Vec<usize> = (0..fates.len()).collect();
            fastrand::Rng::with_seed(order).shuffle(&mut rows);
            for row in rows {
                ledger.report(row, fates[row].is_none().then_some(RDKafkaErrorCode::InvalidRecord));
            }
            let prefix = fates.iter().take_while(|fate| fate.is_some()).count();
            let outcome = ledger.outcome();
            prop_assert_eq!(outcome.acknowledged, prefix);
            prop_assert_eq!(outcome.complete, prefix == fates.len());
            prop_assert_eq!(outcome.error.map(|(row, _)| row), (prefix < fates.len()).then_some(prefix));
        }
    }
}
