//! How many jobs one transaction has at most, learnt from transactions that took too long.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How long jobs take to be read or recorded is not known before. A transaction that is cut because it takes too long would be cut
/// again and again: the next one has half as many.
#[derive(Debug)]
pub(super) struct BatchSize(AtomicUsize);

impl Default for BatchSize {
    fn default() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }
}

impl BatchSize {
    /// So many of those that there are. Unless the transaction succeeds, the next one has half of them.
    pub(super) fn begin(&self, jobs: usize) -> usize {
        let jobs = jobs.min(self.0.load(Ordering::Relaxed));
        self.0.store((jobs / 2).max(1), Ordering::Relaxed);
        jobs
    }

    /// A transaction with so many was not too long, before which this many were allowed. It grows by little: one with twice as many could
    /// be cut, again and again.
    pub(super) fn succeeded(&self, jobs: usize, before: usize) {
        self.0.store(before.max(jobs.saturating_add(jobs / 8 + 1)), Ordering::Relaxed);
    }

    /// How many are allowed.
    pub(super) fn allowed(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_until_it_succeeds_and_grows_by_little() {
        let size = BatchSize::default();
        assert_eq!((size.begin(400), size.begin(400), size.begin(400)), (400, 200, 100));
        let before = size.allowed();
        assert_eq!(size.begin(400), before);
        size.succeeded(50, before);
        assert_eq!(size.begin(400), 57);
        // One job alone is the least.
        for _ in 0..10 {
            size.begin(400);
        }
        assert_eq!(size.begin(400), 1);
        // Few jobs that succeed take nothing back from what was allowed.
        let size = BatchSize::default();
        let before = size.allowed();
        let jobs = size.begin(3);
        size.succeeded(jobs, before);
        assert_eq!(size.begin(usize::MAX), usize::MAX);
    }
}
