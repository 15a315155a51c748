//! What is measured of due rows (`[relay.source.pending]`) only.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};

use super::count;
use super::table::name;

/// The metrics of one relay of due work in this process, beside its cursor's.
#[derive(Debug)]
pub struct PendingMetrics {
    due: Gauge,
    lateness: Histogram,
    send_failed: Counter,
    sent_not_marked: Counter,
}

impl PendingMetrics {
    /// The metrics of the relay whose cursor is `cursor`. Counters start at 0 here.
    #[must_use]
    pub fn new(cursor: &str) -> Self {
        let cursor = Label::new("cursor", cursor.to_owned());
        let failures = |reason| {
            let labels = vec![cursor.clone(), Label::from_static_parts("reason", reason)];
            let counter = counter!(name::PENDING_FAILURES, labels);
            counter.increment(0);
            counter
        };
        Self {
            due: gauge!(name::PENDING_DUE_ROWS, vec![cursor.clone()]),
            lateness: histogram!(name::PENDING_LATENESS, vec![cursor.clone()]),
            send_failed: failures("send_failed"),
            sent_not_marked: failures("sent_not_marked"),
        }
    }

    /// Sets how many rows are due and not sent.
    pub fn set_due(&self, rows: u64) {
        self.due.set(count(rows));
    }

    /// Measures how late a row was acknowledged.
    pub fn sent(&self, late: Duration) {
        self.lateness.record(late.as_secs_f64());
    }

    /// Counts a row that was not sent, or of which nobody knows.
    pub fn send_failed(&self) {
        self.send_failed.increment(1);
    }

    /// Counts a row that was sent and not marked.
    pub fn sent_not_marked(&self) {
        self.sent_not_marked.increment(1);
    }
}
