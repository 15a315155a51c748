//! The end of a relay of a queue.

use std::time::{Duration, Instant};

use crate::relay::engine::Engine;

/// How often a relay that gives way tries to record what it has sent, and one of a process that stops.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_millis(50)];

/// The end of a relay: it begins nothing more, and records what it has sent.
#[derive(Debug)]
pub(in crate::relay) struct Drain {
    patience: Duration,
    last: Option<Instant>,
}

impl Drain {
    /// Of a relay whose claims last for `patience`.
    pub(in crate::relay) const fn new(patience: Duration) -> Self {
        Self { patience, last: None }
    }

    /// Whether what is not recorded by now never will be: when the process stops, after `patience` or with the grace period.
    /// A relay that only gives way records it for as long as its claims last.
    pub(in crate::relay) fn is_over(&mut self, engine: &Engine) -> bool {
        if !engine.stop.is_cancelled() {
            engine.heartbeat.beat();
            return false;
        }
        let now = Instant::now();
        engine.cut.is_cancelled() || now >= *self.last.get_or_insert(now + self.patience)
    }

    /// How long to wait before the next attempt.
    pub(in crate::relay) const fn pause(&self) -> Duration {
        PAUSES[self.last.is_some() as usize]
    }
}
