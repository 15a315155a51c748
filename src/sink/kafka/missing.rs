//! Topics that rows named and that were not there.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::error::RDKafkaErrorCode;

/// So long a topic that was just made may be missing in what brokers say.
pub(super) const PROPAGATION: Duration = Duration::from_secs(3);
/// So long it is remembered that one is missing, when no row names it.
const MISSING: Duration = Duration::from_secs(30);
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

    /// Whether a topic was missing for longer than a new one takes to appear, when it was asked for last; and what the cluster said, if that
    /// was after `since`.
    pub(super) fn known(&self, topic: &str, since: Instant) -> Option<Option<RDKafkaErrorCode>> {
        let all = self.all();
        let seen = all.get(topic)?;
        let is_long = seen.last.saturating_duration_since(seen.since) >= PROPAGATION;
        is_long.then(|| (seen.last >= since).then_some(seen.code))
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
    fn answer_counts_for_other_rows_if_it_is_younger_than_they_are() {
        let (missing, now) = (MissingTopics::default(), Instant::now());
        let code = RDKafkaErrorCode::TopicAuthorizationFailed;
        assert_eq!(missing.known("t", now), None);
        missing.seen("t", code, now);
        assert_eq!(missing.known("t", now), None, "it may be new");
        let missed = now + PROPAGATION;
        missing.seen("t", code, missed);
        assert_eq!(missing.known("t", missed), Some(Some(code)));
        assert_eq!(missing.known("t", missed + PROPAGATION), Some(None), "it may have been made since");
        missing.found("t");
        assert_eq!(missing.known("t", missed), None);
    }
}
