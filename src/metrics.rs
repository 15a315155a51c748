//! Metrics: every name once, with its meaning; handles made once per cursor, because they are written per turn.
//!
//! Labels come from the configuration or from enums, never from data. Counters begin at 0 when the relay starts, so that
//! `increase` sees their first step.

use std::time::Duration;

use metrics::{
    Counter, Gauge, Histogram, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::position::Timestamp;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

/// Every metric: name, kind, meaning.
pub const ALL: &[(&str, Kind, &str)] = &[
    (
        LAG,
        Kind::Gauge,
        "Age in seconds of the oldest committed row visible beyond the cursor's position; 0 when there is none",
    ),
    (BACKLOG, Kind::Gauge, "Committed rows beyond the cursor's position, counted up to 10000"),
    (OBSERVED, Kind::Gauge, "When lag and backlog were last measured, in seconds since 1970"),
    (
        LAST_ADVANCE,
        Kind::Gauge,
        "When the cursor last advanced, in seconds since 1970; its creation before the first time",
    ),
    (HELD, Kind::Gauge, "1 when the horizon keeps back rows that this cursor could otherwise read"),
    (PAUSED, Kind::Gauge, "1 when an operator has paused the cursor"),
    (HALTED, Kind::Gauge, "1 when the cursor stands still after an error until somebody mends it"),
    (CLOCK_REGRESSION, Kind::Gauge, "1 while the database's clock is behind the clock of the cursor's last advance"),
    (TURNS, Kind::Counter, "Turns of this replica by result"),
    (HOLD, Kind::Gauge, "Now less latency window less horizon, in seconds: how long writers hold reading back"),
    (HOLDERS, Kind::Gauge, "Transactions that hold the horizon back, by reason"),
    (PUBLISHED, Kind::Counter, "Rows acknowledged by the sink"),
    (ERRORS, Kind::Counter, "Failed publications by reason"),
    (AMBIGUOUS, Kind::Counter, "Publications whose outcome is unknown: the receiver may have accepted them"),
    (REDELIVERED, Kind::Counter, "Rows that this process knows it sends again"),
    (TURN, Kind::Histogram, "Duration of the phases of a turn in seconds"),
    (
        LATENCY,
        Kind::Histogram,
        "From a row's created_at to the sink's acknowledgement, in seconds; a sample of each turn's rows",
    ),
    (POOL, Kind::Gauge, "Connections of the pool by state"),
    (BUILD, Kind::Gauge, "Always 1; the labels say which build this is"),
];

const LAG: &str = "outbox_relay_cursor_lag_seconds";
const BACKLOG: &str = "outbox_relay_cursor_backlog_rows";
const OBSERVED: &str = "outbox_relay_cursor_observed_timestamp_seconds";
const LAST_ADVANCE: &str = "outbox_relay_cursor_last_advance_timestamp_seconds";
const HELD: &str = "outbox_relay_cursor_held";
const PAUSED: &str = "outbox_relay_cursor_paused";
const HALTED: &str = "outbox_relay_cursor_halted";
const CLOCK_REGRESSION: &str = "outbox_relay_cursor_clock_regression";
const TURNS: &str = "outbox_relay_turns_total";
const HOLD: &str = "outbox_relay_horizon_hold_seconds";
const HOLDERS: &str = "outbox_relay_horizon_holders";
const PUBLISHED: &str = "outbox_relay_published_rows_total";
const ERRORS: &str = "outbox_relay_publish_errors_total";
const AMBIGUOUS: &str = "outbox_relay_ambiguous_total";
const REDELIVERED: &str = "outbox_relay_redelivered_rows_total";
const TURN: &str = "outbox_relay_turn_duration_seconds";
const LATENCY: &str = "outbox_relay_delivery_latency_seconds";
const POOL: &str = "outbox_relay_db_pool_connections";
const BUILD: &str = "outbox_relay_build_info";

/// Buckets of durations, in seconds.
const SECONDS: &[f64] =
    &[0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];

/// Installs the recorder of this process and describes every metric.
///
/// # Errors
/// When a recorder is installed already.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    // A histogram without buckets would be exported as a summary, which cannot be added up over replicas.
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
        .install_recorder()?;
    for (name, kind, meaning) in ALL {
        let unit = if name.ends_with("_seconds") { Unit::Seconds } else { Unit::Count };
        match kind {
            Kind::Counter => describe_counter!(*name, unit, *meaning),
            Kind::Gauge => describe_gauge!(*name, unit, *meaning),
            Kind::Histogram => describe_histogram!(*name, unit, *meaning),
        }
    }
    gauge!(BUILD, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Ok(handle)
}

/// How a turn ended, for the counter of turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnResult {
    /// Rows were published.
    Relayed,
    /// There was nothing.
    Idle,
    /// Another holder has the cursor.
    Busy,
    /// It is paused.
    Paused,
    /// It is halted.
    Halted,
    /// It could not be finished.
    Failed,
}

/// A part of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Getting the lock.
    Lock,
    /// Looking at the writers.
    Scan,
    /// Reading.
    Fetch,
    /// Publishing.
    Publish,
    /// Moving the position and committing, in one round trip.
    Advance,
}

/// Why a publication failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It will pass.
    Retry,
    /// The message will never be accepted.
    Poison,
    /// Configuration or credentials.
    Fatal,
}

/// The handles of one cursor.
pub struct CursorMetrics {
    lag: Gauge,
    backlog: Gauge,
    observed: Gauge,
    last_advance: Gauge,
    held: Gauge,
    paused: Gauge,
    halted: Gauge,
    clock_regression: Gauge,
    turns: [Counter; 6],
    hold: Gauge,
    holders: [Gauge; 2],
    published: Counter,
    errors: [Counter; 3],
    ambiguous_errors: Counter,
    ambiguous: Counter,
    redelivered: Counter,
    phases: [Histogram; 5],
    latency: Histogram,
}

impl std::fmt::Debug for CursorMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CursorMetrics").finish_non_exhaustive()
    }
}

impl CursorMetrics {
    /// The handles of a cursor; its counters exist from now on.
    #[must_use]
    pub fn new(cursor: &str, sink: &'static str) -> Self {
        let c = || cursor.to_owned();
        let turns = ["relayed", "idle", "busy", "paused", "halted", "failed"];
        let errors = ["retry", "poison", "fatal"];
        let phases = ["lock", "scan", "fetch", "publish", "advance"];
        let counted = |counter: Counter| {
            counter.absolute(0);
            counter
        };
        Self {
            lag: gauge!(LAG, "cursor" => c()),
            backlog: gauge!(BACKLOG, "cursor" => c()),
            observed: gauge!(OBSERVED, "cursor" => c()),
            last_advance: gauge!(LAST_ADVANCE, "cursor" => c()),
            held: gauge!(HELD, "cursor" => c()),
            paused: gauge!(PAUSED, "cursor" => c()),
            halted: gauge!(HALTED, "cursor" => c()),
            clock_regression: gauge!(CLOCK_REGRESSION, "cursor" => c()),
            turns: turns.map(|result| counted(counter!(TURNS, "cursor" => c(), "result" => result))),
            hold: gauge!(HOLD, "cursor" => c()),
            holders: ["writer", "unknown"].map(|reason| gauge!(HOLDERS, "cursor" => c(), "reason" => reason)),
            published: counted(counter!(PUBLISHED, "cursor" => c(), "sink" => sink)),
            errors: errors.map(|reason| counted(counter!(ERRORS, "cursor" => c(), "sink" => sink, "reason" => reason))),
            ambiguous_errors: counted(counter!(ERRORS, "cursor" => c(), "sink" => sink, "reason" => "ambiguous")),
            ambiguous: counted(counter!(AMBIGUOUS, "cursor" => c(), "sink" => sink)),
            redelivered: counted(counter!(REDELIVERED, "cursor" => c(), "sink" => sink)),
            phases: phases.map(|phase| histogram!(TURN, "cursor" => c(), "phase" => phase)),
            latency: histogram!(LATENCY, "cursor" => c(), "sink" => sink),
        }
    }

    /// A turn has ended.
    pub fn turn(&self, result: TurnResult) {
        self.turns[result as usize].increment(1);
    }

    /// A phase of a turn took this long.
    pub fn phase(&self, phase: Phase, took: Duration) {
        self.phases[phase as usize].record(took.as_secs_f64());
    }

    /// Rows were acknowledged.
    pub fn published(&self, rows: usize) {
        self.published.increment(rows as u64);
    }

    /// A row was acknowledged this long after its `created_at`.
    pub fn delivered(&self, latency: Duration) {
        self.latency.record(latency.as_secs_f64());
    }

    /// A publication failed; an ambiguous one counts twice over, as such, too.
    pub fn failed(&self, reason: Reason, ambiguous: bool) {
        self.errors[reason as usize].increment(1);
        if ambiguous {
            self.ambiguous_errors.increment(1);
            self.ambiguous.increment(1);
        }
    }

    /// Rows are sent again.
    pub fn redelivered(&self, rows: usize) {
        self.redelivered.increment(rows as u64);
    }

    /// Lag and backlog were measured.
    pub fn sampled(&self, lag: Duration, rows: i64, at: Timestamp) {
        self.lag.set(lag.as_secs_f64());
        self.backlog.set(rows as f64);
        self.observed.set(at.unix_seconds());
    }

    /// Where the cursor stands.
    pub fn standing(&self, advanced_at: Timestamp, paused: bool, halted: bool) {
        self.last_advance.set(advanced_at.unix_seconds());
        self.paused.set(f64::from(paused));
        self.halted(halted);
    }

    /// Whether the cursor is halted.
    pub fn halted(&self, halted: bool) {
        self.halted.set(f64::from(halted));
    }

    /// Whether the database's clock is behind.
    pub fn clock_regression(&self, behind: bool) {
        self.clock_regression.set(f64::from(behind));
    }

    /// How far the horizon is held back, and by how many.
    pub fn horizon(&self, hold: Duration, known: usize, unknown: usize, held: bool) {
        self.hold.set(hold.as_secs_f64());
        self.holders[0].set(known as f64);
        self.holders[1].set(unknown as f64);
        self.held.set(f64::from(held));
    }
}

/// The pool's connections.
pub fn pool(idle: usize, used: usize) {
    gauge!(POOL, "state" => "idle").set(idle as f64);
    gauge!(POOL, "state" => "used").set(used as f64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_exported_is_described_bucketed_and_starts_at_zero() {
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
            .expect("buckets")
            .build_recorder();
        let handle = recorder.handle();
        let text = metrics::with_local_recorder(&recorder, || {
            let cursor = CursorMetrics::new("bookings", "kafka");
            cursor.phase(Phase::Lock, Duration::from_millis(1));
            cursor.delivered(Duration::from_millis(3));
            handle.render()
        });
        assert!(!text.contains(" summary"), "{text}");
        assert!(text.contains("outbox_relay_turns_total{cursor=\"bookings\",result=\"relayed\"} 0"), "{text}");
        for line in text.lines().filter(|line| line.starts_with("# TYPE")) {
            let name = line.split(' ').nth(2).expect("a name");
            assert!(ALL.iter().any(|(known, _, _)| *known == name), "{name} is not in the table");
        }
    }
}
