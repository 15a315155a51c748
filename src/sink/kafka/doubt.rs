//! When a broker's refusal is believed.
//!
//! An answer may be garbled on its way, and what follows from a refusal waits for an operator: a halt, or a dead-lettered row.
//! So a refusal counts only when the same code has come three times without a success in between; until then it is retried.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::sink::refusal_counts::RefusalCounts;
use crate::sink::{Class, Failure};

/// So many times a refusal must come.
const TIMES: u32 = 3;
/// So long after a denial of a topic was believed, the next one of it is believed at once.
const BELIEVED: Duration = Duration::from_secs(60);
/// So many denied topics are remembered.
const MOST: usize = 10_000;

/// The refusals of a sink since the broker has taken a record, by their codes. See the module.
#[derive(Debug)]
pub(super) struct Doubt {
    refusals: RefusalCounts,
    /// Topics whose denial was believed, and when.
    denied: Mutex<HashMap<String, Instant>>,
}

impl Default for Doubt {
    fn default() -> Self {
        Self { refusals: RefusalCounts::new(TIMES), denied: Mutex::default() }
    }
}

impl Doubt {
    /// The failure as it counts now, of one record among `suspects`, after `acknowledged` records that the broker has taken since
    /// the last one. Several suspects are searched, which asks the broker again.
    pub(super) fn weigh(&self, failure: Failure, suspects: usize, acknowledged: usize) -> Failure {
        if acknowledged > 0 {
            self.clear();
        }
        let (code, searched) = (failure.code.clone(), failure.class == Class::Poison && suspects > 1);
        let weighed = self.refusals.weigh(failure, &code);
        if searched { Failure { class: Class::Poison, ..weighed } } else { weighed }
    }

    /// The same of a record whose row names its topic, where the broker denies that (`denied`): between rows that are taken, each
    /// row of the topic would need three refusals, and pauses. The broker is asked again all the same: it may be granted.
    pub(super) fn weigh_denial(
        &self,
        failure: Failure,
        denied: Option<&str>,
        suspects: usize,
        acknowledged: usize,
    ) -> Failure {
        let Some(topic) = denied else { return self.weigh(failure, suspects, acknowledged) };
        let (mut all, now) = (self.denied.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        let believed = all.get(topic).is_some_and(|at| now.saturating_duration_since(*at) < BELIEVED);
        let weighed = if believed { failure } else { self.weigh(failure, suspects, acknowledged) };
        if weighed.class == Class::Poison {
            if all.len() >= MOST {
                all.clear();
            }
            all.insert(topic.to_owned(), now);
        }
        weighed
    }

    /// The broker has taken everything.
    pub(super) fn clear(&self) {
        self.refusals.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(doubt: &Doubt, failures: &[(Class, &str, usize)]) -> Vec<Class> {
        let weigh = |(class, code, suspects): &(Class, &str, usize)| {
            doubt.weigh(Failure::of(*class, code, "refused", "hint"), *suspects, 0).class
        };
        failures.iter().map(weigh).collect()
    }

    // Guarantee: failures.third-refusal
    #[test]
    fn refusal_counts_at_third_time() {
        let doubt = Doubt::default();
        let refused = [(Class::Fatal, "a", 1); 4];
        assert_eq!(classes(&doubt, &refused), [Class::Retry, Class::Retry, Class::Fatal, Class::Fatal]);
        doubt.clear();
        assert_eq!(classes(&doubt, &refused[..2]), [Class::Retry, Class::Retry]);
    }

    #[test]
    fn refusals_of_different_records_do_not_add_up() {
        let doubt = Doubt::default();
        let refused = || Failure::of(Class::Poison, "a", "refused", "hint");
        for _ in 0..5 {
            assert_eq!(doubt.weigh(refused(), 1, 1).class, Class::Retry, "the broker took another one in between");
        }
        assert_eq!(doubt.weigh(refused(), 1, 0).class, Class::Retry);
        assert_eq!(doubt.weigh(refused(), 1, 0).class, Class::Poison);
    }

    // Guarantee: failures.denied-topic
    #[test]
    fn denial_of_topic_counts_at_once_after_it_was_believed() {
        let doubt = Doubt::default();
        let denied =
            |topic| doubt.weigh_denial(Failure::of(Class::Poison, "a", "denied", "hint"), Some(topic), 1, 0).class;
        assert_eq!([denied("t"), denied("t"), denied("t")], [Class::Retry, Class::Retry, Class::Poison]);
        doubt.clear();
        assert_eq!([denied("t"), denied("u"), denied("t")], [Class::Poison, Class::Retry, Class::Poison]);
    }

    #[test]
    fn other_code_counts_from_the_first() {
        let mixed = [(Class::Fatal, "a", 1), (Class::Fatal, "b", 1), (Class::Retry, "c", 1), (Class::Fatal, "b", 1)];
        assert_eq!(classes(&Doubt::default(), &mixed), [Class::Retry; 4]);
    }

    #[test]
    fn several_suspects_are_searched_at_once() {
        let refused = [(Class::Poison, "a", 9), (Class::Poison, "a", 1), (Class::Poison, "a", 1)];
        assert_eq!(classes(&Doubt::default(), &refused), [Class::Poison, Class::Retry, Class::Poison]);
    }
}
