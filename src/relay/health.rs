//! Whether the process lives and is ready: facts for `/livez` and `/readyz`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Beats while the engine goes round. It says nothing of PostgreSQL or Kafka: an outage must not become restarts.
#[derive(Debug)]
pub struct Heartbeat {
    begun: Instant,
    last: AtomicU64,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self { begun: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl Heartbeat {
    /// The engine goes round.
    pub fn beat(&self) {
        self.last.store(u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long ago it last did.
    #[must_use]
    pub fn age(&self) -> Duration {
        self.begun.elapsed().saturating_sub(Duration::from_millis(self.last.load(Ordering::Relaxed)))
    }
}

/// What the process waits for before it is ready.
#[derive(Debug)]
pub struct Readiness {
    /// Why the database cannot be used; none when it can.
    database: Mutex<Option<String>>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self { database: Mutex::new(Some("PostgreSQL has not answered yet".to_owned())) }
    }
}

impl Readiness {
    /// Says why the database cannot be used, or that it can.
    pub fn set_database(&self, reason: Option<String>) {
        *self.database.lock().unwrap_or_else(PoisonError::into_inner) = reason;
    }

    /// The reasons for not being ready, one a line; none when it is.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}
