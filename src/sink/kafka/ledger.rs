//! Which records of a publication are acknowledged. Reports can be handled out of order, so it is kept by row, and the
//! prefix is computed: never "the last report seen".

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
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    acknowledged: Vec<bool>,
    reported: usize,
    /// The failed record with the lowest number, and why.
    failed: Option<(usize, RDKafkaErrorCode)>,
    /// A record was refused for what it is, so that its neighbours' failures only follow from it.
    refused: Option<RDKafkaErrorCode>,
    waiting: bool,
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
    /// Why the broker refused a record for what it is, if it did.
    pub(super) refused: Option<RDKafkaErrorCode>,
}

impl Ledger {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the publication before.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        state.acknowledged.clear();
        state.reported = 0;
        state.failed = None;
        state.refused = None;
        state.waiting = false;
    }

    /// The record number `row`, the next one, is about to be handed to the client.
    pub(super) fn sending(&self, row: usize) {
        let mut state = self.state();
        debug_assert_eq!(row, state.acknowledged.len(), "records are sent in order");
        state.acknowledged.push(false);
    }

    /// The client did not take the record number `row`, the last one.
    pub(super) fn not_sent(&self, row: usize) {
        self.state().acknowledged.truncate(row);
    }

    /// The client reports on the record number `row`.
    pub(super) fn report(&self, row: usize, error: Option<RDKafkaErrorCode>) {
        let mut state = self.state();
        state.reported += 1;
        match error {
            None => {
                if let Some(slot) = state.acknowledged.get_mut(row) {
                    *slot = true;
                }
            }
            Some(error) => {
                if state.refused.is_none() && errors::meaning(error).class == Class::Poison {
                    state.refused = Some(error);
                }
                if state.failed.is_none_or(|(lowest, _)| row < lowest) {
                    state.failed = Some((row, error));
                }
            }
        }
        let wake = state.waiting
            && (state.failed.is_some()
                || state.reported == state.acknowledged.len()
                || state.reported.is_multiple_of(256));
        drop(state);
        if wake {
            self.changed.notify_one();
        }
    }

    /// Whether a record has failed.
    pub(super) fn failed(&self) -> bool {
        self.state().failed.is_some()
    }

    /// Waits for some reports, after the client's queue was full.
    pub(super) async fn progress(&self) {
        self.state().waiting = true;
        // The queue may have emptied between the refusal and this wait: the pause bounds a lost wake-up.
        let _ = tokio::time::timeout(Duration::from_millis(5), self.changed.notified()).await;
    }

    /// Waits until every record is reported on, or one has failed; then the others' reports for a little while, so that
    /// what the broker has accepted counts.
    pub(super) async fn settled(&self) {
        self.reported(true).await;
        // When this passes, the prefix is shorter than it might be, and some records come again.
        let _ = tokio::time::timeout(LAST_REPORTS, self.reported(false)).await;
    }

    async fn reported(&self, or_failed: bool) {
        loop {
            {
                let mut state = self.state();
                if (or_failed && state.failed.is_some()) || state.reported == state.acknowledged.len() {
                    return;
                }
                state.waiting = true;
            }
            self.changed.notified().await;
        }
    }

    /// How it stands now.
    pub(super) fn outcome(&self) -> Outcome {
        let state = self.state();
        let acknowledged = state.acknowledged.iter().take_while(|acknowledged| **acknowledged).count();
        Outcome {
            acknowledged,
            complete: acknowledged == state.acknowledged.len(),
            error: state.failed,
            refused: state.refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
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
