//! When a refusal is believed.
//!
//! Some refusals may be over at the next attempt: an answer was garbled on its way, or the receiver is still at work on an earlier
//! attempt. What follows from a refusal waits for an operator: a halt, or a dead-lettered row. So one that may pass counts only when it
//! has come several times without a success in between; until then it is retried. This is remembered by the replica that sends, and
//! forgotten at its end.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Class, Failure};

/// So many refusals are remembered.
const MOST: usize = 10_000;

/// How many times each refusal has come. See the module.
#[derive(Debug)]
pub(super) struct RefusalCounts {
    times: u32,
    refused: Mutex<HashMap<String, u32>>,
}

impl RefusalCounts {
    /// A refusal counts from the time of this number on.
    pub(super) fn new(times: u32) -> Self {
        Self { times, refused: Mutex::default() }
    }

    /// One more refusal of `what`: whether it counts now.
    pub(super) fn counts(&self, what: &str) -> bool {
        let mut refused = self.refused();
        if refused.len() >= MOST && !refused.contains_key(what) {
            refused.clear();
        }
        let times = refused.entry(what.to_owned()).or_default();
        *times = times.saturating_add(1);
        *times >= self.times
    }

    /// Remembers `what` before a refusal of it has come; whether it was remembered already.
    pub(super) fn expect(&self, what: &str) -> bool {
        let mut refused = self.refused();
        let is_known = refused.contains_key(what);
        if !is_known {
            if refused.len() >= MOST {
                refused.clear();
            }
            refused.insert(what.to_owned(), 0);
        }
        is_known
    }

    /// One more refusal of `what`, as it counts now.
    pub(super) fn weigh(&self, failure: Failure, what: &str) -> Failure {
        if failure.class == Class::Retry || self.counts(what) {
            failure
        } else {
            Failure { class: Class::Retry, ..failure }
        }
    }

    /// The receiver has taken this.
    pub(super) fn forget(&self, what: &str) {
        let mut refused = self.refused();
        if !refused.is_empty() {
            refused.remove(what);
        }
    }

    /// The receiver has taken everything.
    pub(super) fn clear(&self) {
        self.refused().clear();
    }

    fn refused(&self) -> MutexGuard<'_, HashMap<String, u32>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: failures.key-in-use
    #[test]
    fn refusal_counts_only_after_so_many_times_without_success() {
        let counts = RefusalCounts::new(3);
        let refused = |what| counts.weigh(Failure::of(Class::Poison, "a", "refused", "hint"), what).class;
        let classes = ["1", "2", "1", "1", "1"].map(refused);
        assert_eq!(classes, [Class::Retry, Class::Retry, Class::Retry, Class::Poison, Class::Poison]);
        counts.forget("1");
        assert_eq!(["1", "2", "2"].map(refused), [Class::Retry, Class::Retry, Class::Poison]);
        counts.clear();
        assert_eq!(refused("2"), Class::Retry);
        let passes = || counts.weigh(Failure::of(Class::Retry, "b", "busy", "hint"), "3").class;
        assert_eq!([passes(), passes(), passes(), refused("3")], [Class::Retry; 4], "what passes is no refusal");
    }

    #[test]
    fn refusals_beyond_bound_do_not_take_memory() {
        let counts = RefusalCounts::new(2);
        for number in 0..=MOST {
            assert!(!counts.counts(&number.to_string()));
        }
        assert!(counts.refused().len() <= MOST);
        assert!(counts.counts(&MOST.to_string()), "the last one is remembered");
    }
}
