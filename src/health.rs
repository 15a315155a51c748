//! Whether the process lives and whether it is ready, as its parts know it.
//!
//! Alive means that the engine's loop moves, whatever PostgreSQL and the receivers do: an outage of theirs must not
//! restart every replica. Ready means that the start is complete; a replica that holds no cursor is ready too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The engine's sign of life.
#[derive(Debug)]
pub struct Heartbeat {
    start: Instant,
    last_millis: AtomicU64,
    limit: Duration,
}

impl Heartbeat {
    /// Alive from now on, and as long as no two beats are further apart than `limit`.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { start: Instant::now(), last_millis: AtomicU64::new(0), limit }
    }

    /// Says that the engine moves.
    pub fn beat(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_millis.fetch_max(now, Ordering::Relaxed);
    }

    /// How long ago the last beat was.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.start.elapsed().saturating_sub(Duration::from_millis(self.last_millis.load(Ordering::Relaxed)))
    }

    /// Whether the last beat is recent.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.age() <= self.limit
    }
}

/// What the process waits for before it is ready.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    latches: Arc<Mutex<Latches>>,
}

#[derive(Debug, Default)]
struct Latches {
    next: u64,
    reasons: BTreeMap<u64, String>,
}

/// One thing that the process waits for: it is ready when all latches have been dropped.
#[derive(Debug)]
pub struct Latch {
    readiness: Readiness,
    number: u64,
}

impl Readiness {
    /// Waits for one more thing; `reason` says what is missing, for people.
    #[must_use = "the process does not wait for a latch that is dropped"]
    pub fn latch(&self, reason: &str) -> Latch {
        let mut latches = self.lock();
        let number = latches.next;
        latches.next += 1;
        latches.reasons.insert(number, one_line(reason));
        drop(latches);
        Latch { readiness: self.clone(), number }
    }

    /// What is still missing, oldest first; empty when the process is ready.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        self.lock().reasons.values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Latches> {
        self.latches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Latch {
    /// Says more exactly what is missing; without secrets.
    pub fn set_reason(&self, reason: &str) {
        self.readiness.lock().reasons.insert(self.number, one_line(reason));
    }

    /// What this latch waited for is there.
    pub fn release(self) {}
}

impl Drop for Latch {
    fn drop(&mut self) {
        self.readiness.lock().reasons.remove(&self.number);
    }
}

fn one_line(text: &str) -> String {
    text.split(['\r', '\n']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_the_last_latch_is_gone() {
        let readiness = Readiness::default();
        let (database, schema) = (readiness.latch("database not reached"), readiness.latch("schema unknown"));
        assert_eq!(readiness.missing(), ["database not reached", "schema unknown"]);
        database.set_reason("database not reached:\nconnection refused");
        schema.release();
        assert_eq!(readiness.missing(), ["database not reached: connection refused"]);
        drop(database);
        assert!(readiness.missing().is_empty());
    }

    #[test]
    fn alive_while_beats_are_recent() {
        let heartbeat = Heartbeat::new(Duration::from_secs(3600));
        heartbeat.beat();
        assert!(heartbeat.is_alive());
        let stopped = Heartbeat::new(Duration::ZERO);
        std::thread::sleep(Duration::from_millis(5));
        assert!(!stopped.is_alive() && stopped.age() >= Duration::from_millis(5));
    }
}
