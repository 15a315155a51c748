//! Topics that rows named and that were not there.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

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
}

impl MissingTopics {
    fn all(&self) -> MutexGuard<'_, HashMap<String, Missing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cluster says that a topic is not there: whether it has said so for longer than a new topic takes to appear.
    pub(super) fn seen(&self, topic: &str, now: Instant) -> bool {
        let mut all = self.all();
        if all.len() >= MOST && !all.contains_key(topic) {
            all.clear();
        }
        let seen = all.entry(topic.to_owned()).or_insert(Missing { since: now, last: now });
        // It may have been made since, and not be known everywhere.
        if now.saturating_duration_since(seen.last) >= MISSING {
            seen.since = now;
        }
        seen.last = now;
        now.saturating_duration_since(seen.since) >= PROPAGATION
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
        assert!(!missing.seen("t", now) && missing.seen("t", now + PROPAGATION));
        assert!(!missing.seen("t", now + late), "it may have been made meanwhile");
        assert!(missing.seen("t", now + late + PROPAGATION));
        missing.found("t");
        assert!(!missing.seen("t", now + late + PROPAGATION));
    }
}
