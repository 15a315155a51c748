//! The same event again and again, from however many relays: so many lines of it are logged, the rest is counted and reported.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// So many lines of one event are logged at once.
const BURST: f64 = 200.0;
/// And then so many a second.
const PER_SECOND: f64 = 1.0;
/// How often the number of withheld lines is logged.
pub(super) const REPORT: Duration = Duration::from_secs(10);

/// What has been logged of each event: of one place in the code, whatever its fields.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    events: Mutex<HashMap<Identifier, RepeatedLines>>,
}

#[derive(Debug)]
struct RepeatedLines {
    left: f64,
    at: Instant,
    withheld: u64,
    message: String,
}

impl Repeats {
    fn lock(&self) -> MutexGuard<'_, HashMap<Identifier, RepeatedLines>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more line of the event is logged at this instant.
    fn admits(&self, event: Identifier, now: Instant, message: impl FnOnce() -> String) -> bool {
        let mut events = self.lock();
        let lines = events.entry(event).or_insert_with(|| RepeatedLines {
            left: BURST,
            at: now,
            withheld: 0,
            message: String::new(),
        });
        let since = now.saturating_duration_since(lines.at).as_secs_f64();
        lines.left = (lines.left + since * PER_SECOND).min(BURST);
        lines.at = now;
        if lines.left >= 1.0 {
            lines.left -= 1.0;
            return true;
        }
        if lines.message.is_empty() {
            lines.message = message();
        }
        lines.withheld += 1;
        false
    }

    /// The events of which lines were withheld since this was last asked, and how many.
    fn withheld(&self) -> Vec<(String, u64)> {
        let mut events = self.lock();
        let withheld = events.values_mut().filter(|lines| lines.withheld > 0);
        withheld.map(|lines| (lines.message.clone(), std::mem::take(&mut lines.withheld))).collect()
    }

    /// Logs how many lines were withheld of each event.
    pub(super) fn report(&self) {
        for (event, lines) in self.withheld() {
            tracing::warn!(event, lines, "log lines withheld: the event repeats");
        }
    }
}

/// Withholds what repeats. Not below the level `info`: who asks for more wants all of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit(pub(super) &'static Repeats);

impl<S: Subscriber> Layer<S> for Limit {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        let is_own = metadata.target() == module_path!();
        is_own
            || *metadata.level() > Level::INFO
            || self.0.admits(metadata.callsite(), Instant::now(), || {
                let mut message = Message::default();
                event.record(&mut message);
                message.0
            })
    }
}

/// An event's message, without its fields.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing::Callsite as _;

    use super::*;

    // Guarantee: observe.log-limit
    #[test]
    fn repeats_beyond_a_burst_are_counted_and_come_back_slowly() {
        let (repeats, begun) = (Repeats::default(), Instant::now());
        let one = tracing::callsite! { name: "one", kind: tracing::metadata::Kind::EVENT, fields: message }
            .metadata()
            .callsite();
        let other = tracing::callsite! { name: "other", kind: tracing::metadata::Kind::EVENT, fields: message }
            .metadata()
            .callsite();
        let logged = |event: &Identifier, count: usize, at: Instant| {
            (0..count).filter(|_| repeats.admits(event.clone(), at, || "it".to_owned())).count()
        };
        assert_eq!(logged(&one, 1000, begun), 200);
        assert_eq!(logged(&other, 1, begun), 1, "each has its own");
        assert_eq!(repeats.withheld(), [("it".to_owned(), 800)]);
        assert!(repeats.withheld().is_empty());
        assert_eq!(logged(&one, 100, begun + Duration::from_secs(7)), 7);
        assert_eq!(repeats.withheld(), [("it".to_owned(), 93)]);
    }
}
