//! The verdict: what was due, against what the provider has. It knows nothing of the relay; it reads no claim but those
//! that a killed replica left behind and the list of unknown outcomes.

use std::collections::{HashMap, HashSet};

use crate::delivery::Verdict;
use outbox_relay::position::Timestamp;

/// A row, as the table says at the end.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// The key of its requests.
    pub(super) key: String,
    pub(super) due: Timestamp,
    pub(super) marked: bool,
}

/// A message that the provider has accepted.
#[derive(Clone, Debug)]
pub(super) struct Delivery {
    pub(super) key: String,
    pub(super) at: Timestamp,
    /// The sender got its answer, and in good time.
    pub(super) answered: bool,
}

/// What can be said of both systems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Rows that are due at the end.
    pub(super) due: usize,
    /// Different ones of them that have arrived.
    pub(super) delivered: usize,
    /// Deliveries before their row was due, or of rows that are not due.
    pub(super) early: usize,
    /// Deliveries of no row, or of one that was marked before the play.
    pub(super) phantom: usize,
    /// Deliveries behind the first of their row.
    pub(super) repeated: usize,
}

/// Judged as at least once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AtLeastOnce {
    pub(super) counts: Counts,
    /// Repeats without a fault or a kill behind them.
    pub(super) unexplained: usize,
    /// Due rows without their mark.
    pub(super) unmarked: usize,
}

/// Judged as at most once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AtMostOnce {
    pub(super) counts: Counts,
    /// The length of the list.
    pub(super) unknown: usize,
    /// Due rows that have neither arrived nor stand in the list.
    pub(super) unexplained: usize,
}

/// The rows of one system at the end, those that were marked before the play, and the instant at which it ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth<'a> {
    pub(super) rows: &'a [Row],
    pub(super) before: &'a HashSet<String>,
    pub(super) end: Timestamp,
}

impl Truth<'_> {
    fn due(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.due <= self.end && !self.before.contains(&row.key))
    }

    fn counts(&self, deliveries: &[Delivery]) -> Counts {
        let rows: HashMap<&str, &Row> = self.rows.iter().map(|row| (row.key.as_str(), row)).collect();
        let keys: HashSet<&str> = deliveries.iter().map(|delivery| delivery.key.as_str()).collect();
        let row = |delivery: &Delivery| {
            rows.get(delivery.key.as_str()).filter(|row| !self.before.contains(&row.key)).copied()
        };
        Counts {
            due: self.due().count(),
            delivered: self.due().filter(|row| keys.contains(row.key.as_str())).count(),
            early: deliveries.iter().filter(|one| row(one).is_some_and(|row| one.at < row.due)).count(),
            phantom: deliveries.iter().filter(|one| row(one).is_none()).count(),
            repeated: deliveries.len() - keys.len(),
        }
    }

    /// `held`: what a replica was sending when it was killed.
    pub(super) fn at_least_once(&self, deliveries: &[Delivery], held: &HashSet<String>) -> AtLeastOnce {
        let mut seen: HashMap<&str, bool> = HashMap::new();
        let mut unexplained = 0;
        for delivery in deliveries {
            let answered = seen.entry(&delivery.key).and_modify(|answered| {
                unexplained += usize::from(*answered && !held.contains(&delivery.key));
            });
            *answered.or_default() = delivery.answered;
        }
        let unmarked = self.due().filter(|row| !row.marked).count();
        AtLeastOnce { counts: self.counts(deliveries), unexplained, unmarked }
    }

    pub(super) fn at_most_once(&self, deliveries: &[Delivery], unknown: &HashSet<String>) -> AtMostOnce {
        let keys: HashSet<&str> = deliveries.iter().map(|delivery| delivery.key.as_str()).collect();
        let missing = self.due().filter(|row| !keys.contains(row.key.as_str()));
        let unexplained = missing.filter(|row| !unknown.contains(&row.key)).count();
        AtMostOnce { counts: self.counts(deliveries), unknown: unknown.len(), unexplained }
    }
}

/// Of both systems together.
pub(super) fn verdict(reminders: &AtLeastOnce, welcome: &AtMostOnce) -> Verdict {
    if reminders.counts.due == 0 || welcome.counts.due == 0 {
        return Verdict::Undecided;
    }
    let a = reminders.counts.delivered == reminders.counts.due && reminders.unexplained + reminders.unmarked == 0;
    let b = welcome.counts.repeated + welcome.unexplained == 0;
    let both = [&reminders.counts, &welcome.counts].iter().all(|counts| counts.early + counts.phantom == 0);
    if a && b && both { Verdict::Pass } else { Verdict::Fail }
}

#[cfg(test)]
mod tests;
