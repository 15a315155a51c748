//! The verdict: what was to happen, against `outbox.action`, against what the endpoints received. It knows nothing of the
//! planner.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use serde::Serialize;

use super::lateness::Lateness;
use crate::delivery::Verdict;
use outbox_relay::position::Timestamp;

/// One instant of one schedule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Occurrence {
    pub(super) tenant: String,
    pub(super) schedule: String,
    pub(super) planned: Timestamp,
}

/// What may become of an occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// It is completed; received again only when a killed replica had it in hand.
    Retry,
    /// It is received at most once; failed only when a killed replica had it in hand.
    Fail,
    /// Its endpoint does not answer: it is there once, whatever became of it.
    Hangs,
}

/// What is to happen.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) of: Occurrence,
    pub(super) care: Care,
}

/// A row of `outbox.action` at the end.
#[derive(Clone, Debug)]
pub(super) struct Action {
    pub(super) of: Occurrence,
    pub(super) id: String,
    pub(super) status: String,
}

/// What an endpoint got.
#[derive(Clone, Debug)]
pub(super) struct Receipt {
    pub(super) of: Occurrence,
    /// The action, by its idempotency key.
    pub(super) id: String,
    pub(super) at: Timestamp,
    pub(super) accepted: bool,
}

/// Of a tenant, or of all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counts {
    pub(super) expected: usize,
    pub(super) completed: usize,
    pub(super) failed: usize,
    pub(super) skipped: usize,
    /// Expected, and not there, or never ended, or completed and not received.
    pub(super) lost: usize,
    /// There under two ids, in the table or at the endpoint.
    pub(super) twice: usize,
    /// There, or received, and not expected.
    pub(super) phantom: usize,
    /// Received before its instant.
    pub(super) early: usize,
    /// Accepted more than once, under one key.
    pub(super) repeated: usize,
    /// Repeated ones that no kill explains, or that were not to be retried.
    pub(super) unexplained: usize,
    /// Failed or skipped without a reason.
    pub(super) wrong: usize,
}

/// Everything that is known at the end.
#[derive(Debug, Default)]
pub(super) struct Truth {
    pub(super) expected: Vec<Expected>,
    pub(super) actions: Vec<Action>,
    pub(super) receipts: Vec<Receipt>,
    /// What a replica had in hand when it was killed, by id, and when that was.
    pub(super) held: HashMap<String, Timestamp>,
}

impl Truth {
    /// `of`: whose are counted.
    pub(super) fn counts(&self, of: impl Fn(&str) -> bool) -> Counts {
        let expected: BTreeMap<&Occurrence, Care> =
            self.expected.iter().filter(|one| of(&one.of.tenant)).map(|one| (&one.of, one.care)).collect();
        let mut rows: HashMap<&Occurrence, Vec<&Action>> = HashMap::new();
        for action in self.actions.iter().filter(|one| of(&one.of.tenant)) {
            rows.entry(&action.of).or_default().push(action);
        }
        let mut receipts: HashMap<&Occurrence, Vec<&Receipt>> = HashMap::new();
        for receipt in self.receipts.iter().filter(|one| of(&one.of.tenant)) {
            receipts.entry(&receipt.of).or_default().push(receipt);
        }
        let there: BTreeSet<&Occurrence> = rows.keys().chain(receipts.keys()).copied().collect();
        let mut counts = Counts { expected: expected.len(), ..Counts::default() };
        counts.phantom = there.iter().filter(|one| !expected.contains_key(**one)).count();
        for (one, care) in expected {
            let rows = rows.remove(one).unwrap_or_default();
            counts.add(&rows, &receipts.remove(one).unwrap_or_default(), care, &self.held);
        }
        counts
    }

    /// The longest that something a killed replica had in hand waited for its next try.
    pub(super) fn taken_up(&self) -> Option<Duration> {
        let again = |id: &str, kill: Timestamp| {
            let behind = self.receipts.iter().filter(|one| one.id == id && one.at > kill);
            behind.map(|one| one.at.since(kill)).min()
        };
        self.held.iter().filter_map(|(id, kill)| again(id, *kill)).max()
    }
}

impl Counts {
    /// One occurrence.
    fn add(&mut self, rows: &[&Action], receipts: &[&Receipt], care: Care, held: &HashMap<String, Timestamp>) {
        let accepted: Vec<&&Receipt> = receipts.iter().filter(|one| one.accepted).collect();
        let ids: HashSet<&str> = receipts.iter().map(|one| one.id.as_str()).collect();
        self.twice += usize::from(rows.len() > 1 || ids.len() > 1);
        self.early += usize::from(receipts.iter().any(|one| one.at < one.of.planned));
        let Some(row) = rows.first() else {
            self.lost += 1;
            return;
        };
        let held = held.contains_key(&row.id);
        match row.status.as_str() {
            "completed" => {
                self.completed += 1;
                self.lost += usize::from(accepted.is_empty());
            }
            "failed" => {
                self.failed += 1;
                self.wrong += usize::from(!(care == Care::Hangs || care == Care::Fail && held));
            }
            "skipped" => {
                self.skipped += 1;
                self.wrong += usize::from(care != Care::Hangs);
            }
            _ => self.lost += 1,
        }
        if accepted.len() > 1 {
            self.repeated += 1;
            self.unexplained += usize::from(!held || care == Care::Fail);
        }
    }

    fn is_sound(&self) -> bool {
        self.lost + self.twice + self.phantom + self.early + self.unexplained + self.wrong == 0
    }
}

/// `impossible`: the rule that never happens was told as a problem. `punctual`: the seconds without a replica were where
/// they should be.
pub(super) fn verdict(all: &Counts, lateness: &Lateness, impossible: bool, punctual: bool) -> Verdict {
    if !all.is_sound() || lateness.late > 0 || !impossible {
        return Verdict::Fail;
    }
    if all.completed == 0 || lateness.judged == 0 || !punctual { Verdict::Undecided } else { Verdict::Pass }
}

#[cfg(test)]
mod tests;
