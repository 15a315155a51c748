//! What is counted and measured of one cursor.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, Label, counter, histogram};

use super::lazy::{Lazy, LazyGauge};
use super::table::name;
use super::{Phase, PublishError, TurnResult, count, stage, trail};
use crate::position::Timestamp;

mod lag;

/// The metrics of one cursor in this process. Handles are looked up once, here, so that a call costs an atomic step.
pub struct CursorMetrics {
    turns: [Lazy<Counter>; 6],
    /// Of the cursor's table, shared by all cursors of it.
    phases: Option<[Histogram; 6]>,
    published_rows: Counter,
    publish_errors: [Counter; 4],
    ambiguous: Counter,
    redelivered_rows: Counter,
    /// Of streams only.
    delivery_latency: Lazy<Histogram>,
    /// Of streams only.
    backfilled: Lazy<Counter>,
    dead_lettered: Counter,
    late_rows: Lazy<Counter>,
    /// Of sinks with a rate only.
    rate_limited: Lazy<Counter>,
    rate_limited_micros: AtomicU64,
    circuit_open: LazyGauge,
    dead_letters: LazyGauge,
    parked_keys: LazyGauge,
    unknown_outcomes: LazyGauge,
    lag: LazyGauge,
    backlog_rows: LazyGauge,
    observed: LazyGauge,
    last_advance: LazyGauge,
    held: LazyGauge,
    paused: LazyGauge,
    halted: LazyGauge,
    clock_regression: LazyGauge,
    horizon_hold: LazyGauge,
    horizon_holders: Mutex<BTreeMap<&'static str, Gauge>>,
    stages: OnceLock<[Gauge; 4]>,
    follower: Mutex<stage::Follower>,
    trail: Arc<trail::Trail>,
    cursor: Label,
}

impl CursorMetrics {
    /// The metrics of `cursor`, whose sink is of the kind `sink`. Counters start at 0 here, but those of turns that a
    /// cursor in order does not have.
    #[must_use]
    pub fn new(cursor: &str, sink: &'static str) -> Self {
        let trail = trail::of(cursor);
        let cursor = Label::new("cursor", cursor.to_owned());
        let to_sink = vec![cursor.clone(), Label::new("sink", sink)];
        let lazy = |name| LazyGauge::new(name, vec![cursor.clone()]);
        let with = |labels: &[Label], key, value| [labels, &[Label::from_static_parts(key, value)]].concat();
        let metrics = Self {
            turns: TurnResult::ALL
                .map(|result| Lazy::new(name::TURNS, with(std::slice::from_ref(&cursor), "result", result.as_str()))),
            phases: None,
            published_rows: counter!(name::PUBLISHED_ROWS, to_sink.clone()),
            publish_errors: PublishError::ALL
                .map(|error| counter!(name::PUBLISH_ERRORS, with(&to_sink, "reason", error.as_str()))),
            ambiguous: counter!(name::AMBIGUOUS, to_sink.clone()),
            redelivered_rows: counter!(name::REDELIVERED_ROWS, to_sink.clone()),
            delivery_latency: Lazy::new(name::DELIVERY_LATENCY, to_sink.clone()),
            backfilled: Lazy::new(name::BACKFILLED_ROWS, to_sink.clone()),
            dead_lettered: counter!(name::DEAD_LETTERED_ROWS, to_sink.clone()),
            late_rows: Lazy::new(name::LATE_ROWS, vec![cursor.clone()]),
            rate_limited: Lazy::new(name::RATE_LIMITED, to_sink.clone()),
            rate_limited_micros: AtomicU64::new(0),
            circuit_open: LazyGauge::new(name::CIRCUIT_OPEN, to_sink),
            dead_letters: lazy(name::DEAD_LETTER_ROWS),
            parked_keys: lazy(name::PARKED_KEYS),
            unknown_outcomes: lazy(name::UNKNOWN_OUTCOMES),
            lag: lazy(name::LAG),
            backlog_rows: lazy(name::BACKLOG_ROWS),
            observed: lazy(name::OBSERVED),
            last_advance: lazy(name::LAST_ADVANCE),
            held: lazy(name::HELD),
            paused: lazy(name::PAUSED),
            halted: lazy(name::HALTED),
            clock_regression: lazy(name::CLOCK_REGRESSION),
            horizon_hold: lazy(name::HORIZON_HOLD),
            horizon_holders: Mutex::new(BTreeMap::new()),
            stages: OnceLock::new(),
            follower: Mutex::default(),
            trail,
            cursor,
        };
        for counter in metrics.publish_errors.iter().chain([
            &metrics.published_rows,
            &metrics.ambiguous,
            &metrics.redelivered_rows,
            &metrics.dead_lettered,
        ]) {
            counter.increment(0);
        }
        for result in TurnResult::ALL.into_iter().filter(|result| result.is_usual()) {
            metrics.turns[result as usize].increment(0);
        }
        metrics
    }

    /// The metrics of a stream, with the phases of its turns, which it shares with the other cursors of `table`.
    #[must_use]
    pub fn of_stream(mut self, table: &str) -> Self {
        self.delivery_latency.record_many(0.0, 0);
        self.backfilled.increment(0);
        self.late_rows.increment(0);
        let table = Label::new("table", table.to_owned());
        self.phases = Some(Phase::ALL.map(|phase| {
            let labels = vec![table.clone(), Label::from_static_parts("phase", phase.as_str())];
            histogram!(name::TURN_DURATION, labels)
        }));
        self
    }

    /// With the time in which rows wait for the sink's rate, if it has one.
    #[must_use]
    pub fn with_rate(self, has_rate: bool) -> Self {
        if has_rate {
            self.rate_limited.increment(0);
        }
        self
    }

    /// Counts a turn.
    pub fn turn_finished(&self, result: TurnResult) {
        self.turns[result as usize].increment(1);
    }

    /// Measures a part of a turn.
    pub fn phase(&self, phase: Phase, took: Duration) {
        if let Some(phases) = &self.phases {
            phases[phase as usize].record(took.as_secs_f64());
        }
    }

    /// Counts rows that the receiver has acknowledged.
    pub fn published(&self, rows: u64) {
        self.published_rows.increment(rows);
        self.trail.published(rows, Instant::now());
    }

    /// Counts an end of publishing by a failure.
    pub fn publish_failed(&self, error: PublishError) {
        self.publish_errors[error as usize].increment(1);
        if error == PublishError::Ambiguous {
            self.ambiguous.increment(1);
        }
    }

    /// Counts rows that an ended replica had in flight.
    pub fn abandoned(&self, rows: u64) {
        self.publish_errors[PublishError::Ambiguous as usize].increment(rows);
        self.ambiguous.increment(rows);
    }

    /// Counts a row that was dead-lettered.
    pub fn dead_lettered(&self) {
        self.dead_lettered.increment(1);
    }

    /// Counts rows that were found late.
    pub fn late_rows(&self, rows: usize) {
        self.late_rows.increment(rows as u64);
    }

    /// Sets how many dead letters wait.
    pub fn set_dead_letters(&self, waiting: u64) {
        self.dead_letters.set(count(waiting));
    }

    /// Sets how many keys are parked.
    pub fn set_parked_keys(&self, keys: u64) {
        self.parked_keys.set(count(keys));
    }

    /// Sets how many rows are listed whose outcome is unknown.
    pub fn set_unknown_outcomes(&self, listed: u64) {
        self.unknown_outcomes.set(count(listed));
    }

    /// Sets whether the sink's circuit is open.
    pub fn set_circuit_open(&self, open: bool) {
        self.circuit_open.set_flag(open);
    }

    /// Counts rows that this process knows it sends again.
    pub fn redelivered(&self, rows: u64) {
        self.redelivered_rows.increment(rows);
    }

    /// Measures the way of `rows` rows from `created_at` to their acknowledgement.
    pub fn delivery_latency(&self, latency: Duration, rows: usize) {
        self.delivery_latency.record_many(latency.as_secs_f64(), rows);
    }

    /// Counts rows that were there before the cursor was created: their age says nothing about the relay.
    pub fn backfilled(&self, rows: u64) {
        self.backfilled.increment(rows);
    }

    /// Counts time in which rows waited for the sink's rate only.
    pub fn rate_limited(&self, waited: Duration) {
        let waited = u64::try_from(waited.as_micros()).unwrap_or(u64::MAX);
        let before = self.rate_limited_micros.fetch_add(waited, Ordering::Relaxed);
        let (before, after) = (before / 1_000_000, before.saturating_add(waited) / 1_000_000);
        self.rate_limited.increment(after - before);
    }

    /// Sets when the position last moved, by any replica or command.
    pub fn set_last_advance(&self, at: Timestamp) {
        self.last_advance.set_instant(at);
    }

    /// Sets whether rows are waiting that open transactions hold back.
    pub fn set_held(&self, held: bool) {
        self.held.set_flag(held);
    }

    /// Sets whether an operator has paused the cursor.
    pub fn set_paused(&self, paused: bool) {
        self.paused.set_flag(paused);
    }

    /// Sets whether the cursor is halted.
    pub fn set_halted(&self, halted: bool) {
        self.halted.set_flag(halted);
    }

    /// Sets whether PostgreSQL's clock stands before the position.
    pub fn set_clock_regression(&self, regressed: bool) {
        self.clock_regression.set_flag(regressed);
    }
}

impl std::fmt::Debug for CursorMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CursorMetrics").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}
