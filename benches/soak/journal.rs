//! What happened when, and how often: one journal for each storm.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Shared by everything that takes part in a storm.
#[derive(Clone, Debug)]
pub struct Journal {
    begun: Instant,
    pages: Arc<Mutex<Pages>>,
}

#[derive(Debug, Default)]
struct Pages {
    lines: Vec<String>,
    counts: BTreeMap<String, u64>,
}

impl Journal {
    /// Begins now.
    pub fn new() -> Self {
        Self { begun: Instant::now(), pages: Arc::default() }
    }

    /// Writes down what happened.
    pub fn note(&self, what: impl AsRef<str>) {
        let (at, since) = (chrono::Utc::now().format("%H:%M:%S%.6f"), self.begun.elapsed().as_secs_f64());
        self.with(|pages| pages.lines.push(format!("{at} {since:8.3} {}", what.as_ref())));
    }

    /// Writes down and counts something that was done.
    pub fn count(&self, word: &str, what: impl AsRef<str>) {
        self.note(format!("{word}: {}", what.as_ref()));
        self.with(|pages| *pages.counts.entry(word.to_owned()).or_default() += 1);
    }

    /// How often each was done.
    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.with(|pages| pages.counts.clone())
    }

    /// How often this was done.
    pub fn count_of(&self, word: &str) -> u64 {
        self.with(|pages| pages.counts.get(word).copied().unwrap_or_default())
    }

    /// All lines so far.
    pub fn text(&self) -> String {
        self.with(|pages| pages.lines.join("\n"))
    }

    fn with<T>(&self, look: impl FnOnce(&mut Pages) -> T) -> T {
        look(&mut self.pages.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
