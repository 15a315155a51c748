//! What a relay's work looks like from outside: metrics of turns, standings and samples.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Ready;
use super::lag::Lag;
use super::turn::{Outcome, Turn, TurnError};
use crate::cursor::Standing;
use crate::metrics::{Phase, Reason, TurnResult};
use crate::sink::Class;
use crate::source::watcher::Sighting;

/// At most this many rows of a turn are counted in the latency's distribution.
const LATENCIES: usize = 50;

impl Ready {
    /// Counts a turn.
    pub(super) fn record(&self, turn: &Turn<'_>, outcome: &Result<Outcome, TurnError>) {
        let metrics = &self.metrics;
        metrics.turn(match outcome {
            Ok(Outcome::Relayed { .. }) => TurnResult::Relayed,
            Ok(Outcome::Idle) => TurnResult::Idle,
            Ok(Outcome::Busy | Outcome::Early(_)) => TurnResult::Busy,
            Ok(Outcome::Paused) => TurnResult::Paused,
            Ok(Outcome::Halted | Outcome::Foreign { .. } | Outcome::Regressed { .. }) => TurnResult::Halted,
            Ok(Outcome::Stalled { .. }) | Err(_) => TurnResult::Failed,
        });
        metrics.phase(Phase::Lock, turn.timings.lock);
        let rows = match outcome {
            Ok(Outcome::Relayed { rows, .. } | Outcome::Stalled { rows, .. }) => *rows,
            Ok(_) | Err(_) => 0,
        };
        if let Ok(Outcome::Relayed { .. } | Outcome::Stalled { .. } | Outcome::Idle) = outcome {
            metrics.phase(Phase::Fetch, turn.timings.fetch);
            metrics.phase(Phase::Publish, turn.timings.publish);
        }
        if let Ok(Outcome::Stalled { failure, .. }) = outcome {
            let reason = match failure.class {
                Class::Retry => Reason::Retry,
                Class::Poison => Reason::Poison,
                Class::Fatal => Reason::Fatal,
            };
            metrics.failed(reason, failure.ambiguous);
        }
        if let Err(TurnError::NotAdvanced { acknowledged, .. }) = outcome {
            metrics.published(*acknowledged);
            self.unconfirmed.store(*acknowledged, Ordering::Relaxed);
        }
        if rows == 0 {
            return;
        }
        metrics.phase(Phase::Advance, turn.timings.advance);
        metrics.published(rows);
        let again = self.unconfirmed.swap(0, Ordering::Relaxed).min(rows);
        if again > 0 {
            metrics.redelivered(again);
        }
        let clock = turn.sighting.clock();
        for created_at in turn.delivered.iter().step_by(turn.delivered.len().div_ceil(LATENCIES).max(1)) {
            metrics.delivered(clock.since(*created_at));
        }
    }

    /// Shows where the cursor stands, and what holds its horizon back.
    pub(super) fn observe(&self, standing: &Standing, sighting: &Sighting) {
        let halted = standing.halted.as_deref() == Some(self.fingerprint.as_str());
        self.metrics.standing(standing.advanced_at, standing.paused, halted);
        let horizon = &sighting.horizon;
        let margin = self.shape.margin.window + self.shape.margin.precision;
        let unknown = horizon.held_by.iter().filter(|held| held.bound.is_none()).count();
        let hold = if unknown > 0 {
            // Nothing is known of it: it may have been there since the cursor last moved.
            horizon.observed_at.since(standing.advanced_at)
        } else {
            horizon.observed_at.since(horizon.at.plus(margin))
        };
        let holding =
            horizon.held_by.iter().filter(|held| held.bound.is_some_and(|bound| bound < horizon.observed_at)).count();
        self.metrics.horizon(hold, holding, unknown, hold > Duration::from_secs(1));
    }

    /// Shows lag and backlog.
    pub(super) fn sampled(&self, lag: &Lag) {
        self.metrics.sampled(lag.age, lag.rows, lag.observed_at);
    }

    pub(super) fn clock_regression(&self, behind: bool) {
        self.metrics.clock_regression(behind);
    }
}
