//! Topics that rows named and that were not there.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;

/// So long a topic that was just made may be missing in what brokers say.
pub(super) const PROPAGATION: Duration = Duration::from_secs(3);
/// So long it is remembered that one is missing, when no row names it.
const MISSING: Duration = Duration::from_secs(30);
/// So long the cluster's answer holds for other rows that name the topic.
const FRESH: Duration = Duration::from_secs(1);
/// So many missing topics are remembered.
const MOST: usize = 10_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct MissingTopics(Mutex<HashMap<String, Missing>>);

/// When a topic was missing: first, and the last time that it was asked for.
#[derive(Debug)]
struct Missing {
    since: Instant,
    last: Instant,
    /// What the cluster said then.
    code: RDKafkaErrorCode,
}

impl MissingTopics {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Missing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cluster says that a topic is not there: whether it has said so for longer than a new topic takes to appear.
    pub(super) fn seen(&self, topic: &str, code: RDKafkaErrorCode, now: Instant) -> bool {
        let mut all = self.all();
        if all.len() >= MOST && !all.contains_key(topic) {
            all.clear();
        }
        let seen = all.entry(topic.to_owned()).or_insert(Missing { since: now, last: now, code });
        // It may have been made since, and not be known everywhere.
        if now.saturating_duration_since(seen.last) >= MISSING {
            seen.since = now;
        }
        (seen.last, seen.code) = (now, code);
        now.saturating_duration_since(seen.since) >= PROPAGATION
    }

    /// What the cluster has just said of a topic that is not there, and for longer than a new topic takes to appear.
    pub(super) fn known(&self, topic: &str, now: Instant) -> Option<RDKafkaErrorCode> {
        let all = self.all();
        let seen = all.get(topic)?;
        let is_long = seen.last.saturating_duration_since(seen.since) >= PROPAGATION;
        (is_long && now.saturating_duration_since(seen.last) < FRESH).then_some(seen.code)
    }

    /// A topic is there.
    pub(super) fn found(&self, topic: &str) {
        self.all().remove(topic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topic_is_missed_when_it_may_not_be_new() {
        let (missing, now, late) = (MissingTopics::default(), Instant::now(), PROPAGATION + MISSING);
        let seen = |at| missing.seen("t", RDKafkaErrorCode::UnknownTopicOrPartition, at);
        assert!(!seen(now) && seen(now + PROPAGATION));
        assert!(!seen(now + late), "it may have been made meanwhile");
        assert!(seen(now + late + PROPAGATION));
        missing.found("t");
        assert!(!seen(now + late + PROPAGATION));
    }

    #[test]
    fn answer_holds_for_other_rows_for_a_moment_once_topic_is_missed() {
        let (missing, now) = (MissingTopics::default(), Instant::now());
        let code = RDKafkaErrorCode::TopicAuthorizationFailed;
        let known = |at| missing.known("t", at);
        assert!(known(now).is_none());
        missing.seen("t", code, now);
        assert!(known(now).is_none(), "it may be new");
        assert!(known(now + PROPAGATION).is_none(), "the cluster has not been asked since");
        let missed = now + PROPAGATION;
        missing.seen("t", code, missed);
        assert_eq!(known(missed + FRESH / 2), Some(code));
        assert!(known(missed + FRESH).is_none(), "it may have been made since");
        missing.found("t");
        assert!(known(missed).is_none());
    }
}
