//! What is measured of scheduled actions only.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Label, counter, gauge, histogram};

use super::count;
use super::table::name;

/// The metrics of one relay of schedules in this process, beside its cursor's.
#[derive(Debug)]
pub struct ScheduleMetrics {
    lateness: Histogram,
    due: Gauge,
    running: Gauge,
    problems: Gauge,
    waiting: Gauge,
    completed: Counter,
    skipped: Counter,
    failed: Counter,
    missed: Counter,
}

impl ScheduleMetrics {
    /// The metrics of the relay whose cursor is `cursor`. Counters start at 0 here.
    #[must_use]
    pub fn new(cursor: &str) -> Self {
        let labels = || vec![Label::new("cursor", cursor.to_owned())];
        let actions = |result| {
            let mut labels = labels();
            labels.push(Label::from_static_parts("result", result));
            let counter = counter!(name::SCHEDULE_ACTIONS, labels);
            counter.increment(0);
            counter
        };
        let missed = counter!(name::SCHEDULE_MISSED, labels());
        missed.increment(0);
        Self {
            lateness: histogram!(name::SCHEDULE_LATENESS, labels()),
            due: gauge!(name::SCHEDULE_DUE, labels()),
            running: gauge!(name::SCHEDULE_RUNNING, labels()),
            problems: gauge!(name::SCHEDULE_PROBLEMS, labels()),
            waiting: gauge!(name::SCHEDULE_WAITING, labels()),
            completed: actions("completed"),
            skipped: actions("skipped"),
            failed: actions("failed"),
            missed,
        }
    }

    /// Measures how long after its instant an action was first begun.
    pub fn begun(&self, late: Duration) {
        self.lateness.record(late.as_secs_f64());
    }

    /// Counts an action that was done.
    pub fn completed(&self) {
        self.completed.increment(1);
    }

    /// Counts actions that were not to be done.
    pub fn skipped(&self, actions: u64) {
        self.skipped.increment(actions);
    }

    /// Counts an action that was not done, and is not retried.
    pub fn failed(&self) {
        self.failed.increment(1);
    }

    /// Counts occurrences that came while no replica was there.
    pub fn missed(&self, occurrences: u64) {
        self.missed.increment(occurrences);
    }

    /// Sets how many actions are due and not begun, how many are running, and how many schedules have a problem.
    pub fn set(&self, due: u64, running: u64, problems: u64) {
        self.due.set(count(due));
        self.running.set(count(running));
        self.problems.set(count(problems));
    }

    /// Sets for how long the oldest has waited to be made, or to be begun.
    pub fn set_waiting(&self, waiting: Duration) {
        self.waiting.set(waiting.as_secs_f64());
    }
}
