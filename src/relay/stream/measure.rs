//! What a relay's work looks like from outside: metrics of turns, standings and samples.

use std::collections::BTreeMap;

use crate::cursor::{Attention, ClockStep, Standing};
use crate::metrics::{Looked, Phase, TurnResult};
use crate::relay::Guarantee;
use crate::relay::engine::disposition::{ForRelay, at_stop};
use crate::relay::engine::lag::Lag;
use crate::relay::engine::report::counted;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::clock_watch::ClockNews;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::poll::Look;
use crate::relay::stream::turn::Turn;
use crate::source::watcher::Sighting;

/// At most about this many rows of a turn are measured for the distribution of latencies; each stands for its share.
const LATENCIES: usize = 50;

impl PreparedStream {
    /// Counts a turn, and exports its spans.
    pub(in crate::relay) fn record(&self, turn: &mut Turn<'_>, outcome: &Result<TurnOutcome, TurnError>) {
        if let Some(trace) = &turn.trace {
            trace.ended(self, &turn.timings, (result(outcome), outcome));
        }
        let metrics = &self.metrics;
        metrics.turn_finished(result(outcome));
        let at_sink = matches!(outcome, Ok(TurnOutcome::Stalled { failure, .. } | TurnOutcome::LaneWaits { rows: 0, failure, .. } | TurnOutcome::Unknown { failure, .. }) if at_stop(failure).relay == ForRelay::BacksOff);
        metrics.turn_ended(turn.sighting.clock(), turn.delivered.last().copied(), at_sink);
        metrics.phase(Phase::Lock, turn.timings.lock);
        metrics.phase(Phase::Scan, turn.sighting.took);
        self.count_sent(turn, outcome);
        self.count_failures(outcome);
        for failure in &turn.refused {
            metrics.publish_failed(counted(failure));
            metrics.dead_lettered();
        }
        metrics.late_rows(turn.late);
        let (
            Ok(
                TurnOutcome::Relayed { rows, .. }
                | TurnOutcome::Stalled { rows, .. }
                | TurnOutcome::LaneWaits { rows, .. }
                | TurnOutcome::Searching { rows, .. }
                | TurnOutcome::Unknown { rows, .. }
                | TurnOutcome::Buried { rows, .. },
            ),
            false,
        ) = (outcome, turn.delivered.is_empty())
        else {
            return;
        };
        metrics.phase(Phase::Advance, turn.timings.advance);
        metrics.phase(Phase::Commit, turn.timings.commit);
        metrics.published(*rows as u64);
        let again = std::mem::take(&mut turn.learned.unconfirmed).min(*rows);
        if again > 0 {
            metrics.redelivered(again as u64);
        }
        let clock = turn.sighting.clock();
        // In order, so the older rows are the first ones.
        let older = turn.since.map_or(0, |since| turn.delivered.partition_point(|created_at| *created_at < since));
        let (older, delivered) = turn.delivered.split_at(older);
        if !older.is_empty() {
            metrics.backfilled(older.len() as u64);
        }
        for share in delivered.chunks(rows.div_ceil(LATENCIES).max(1)) {
            metrics.delivery_latency(clock.since(share[0]), share.len());
        }
    }

    /// Counts what a turn read and sent, also where the cursor did not advance.
    fn count_sent(&self, turn: &mut Turn<'_>, outcome: &Result<TurnOutcome, TurnError>) {
        let metrics = &self.metrics;
        match outcome {
            Ok(
                TurnOutcome::Relayed { .. }
                | TurnOutcome::Stalled { .. }
                | TurnOutcome::LaneWaits { .. }
                | TurnOutcome::Searching { .. }
                | TurnOutcome::Buried { .. }
                | TurnOutcome::Unknown { .. }
                | TurnOutcome::Idle,
            ) => {
                metrics.phase(Phase::Fetch, turn.timings.fetch);
                metrics.phase(Phase::Publish, turn.timings.publish);
            }
            Err(TurnError::NotAdvanced { acknowledged, .. } | TurnError::LockLost { acknowledged }) => {
                metrics.published(*acknowledged as u64);
                if turn.ready.config.guarantee != Guarantee::AtMostOnce {
                    turn.learned.unconfirmed = *acknowledged;
                }
            }
            Err(TurnError::NotSettled { acknowledged, .. }) => metrics.published(*acknowledged as u64),
            Ok(_) | Err(_) => {}
        }
    }

    /// Counts rows that a turn could not send.
    fn count_failures(&self, outcome: &Result<TurnOutcome, TurnError>) {
        let metrics = &self.metrics;
        match outcome {
            Ok(TurnOutcome::Abandoned { rows, .. }) => metrics.abandoned(*rows),
            Ok(TurnOutcome::Stalled { failure, .. } | TurnOutcome::Unknown { failure, .. })
            | Ok(TurnOutcome::Redriven { failure: Some(failure), .. }) => {
                metrics.publish_failed(counted(failure));
            }
            Ok(TurnOutcome::Buried { failure, .. }) => {
                metrics.publish_failed(counted(failure));
                metrics.dead_lettered();
            }
            Ok(_) | Err(_) => {}
        }
        if let Ok(TurnOutcome::Redriven { rows, .. }) = outcome {
            metrics.published(*rows as u64);
        }
    }

    /// Shows where the cursor stands, and what holds its horizon back.
    pub(in crate::relay) fn observe(&self, standing: &Standing, look: &Look) {
        let (metrics, sighting) = (&self.metrics, &look.sighting);
        metrics.set_last_advance(standing.advanced_at);
        metrics.set_held(look.is_held(standing));
        metrics.set_paused(standing.paused);
        metrics.set_circuit_open(standing.circuit.is_some());
        self.status.set_circuit_open(standing.circuit.is_some());
        let stands_still = self.stands_still(standing.halted.as_ref());
        // What another replica has reported ends with this one's success, too; so does what a check of its own found, and in time its halt.
        self.status.set_reported(standing.state == "backing_off" || standing.halted.is_some() && !stands_still);
        metrics.set_halted(stands_still);
        let horizon = &sighting.horizon;
        metrics.looked(Looked {
            before: look.before,
            at: horizon.observed_at,
            horizon: horizon.at,
            newest: look.latest_for(standing).map(|newest| newest.created_at),
            position: standing.position.as_ref().map(|position| position.created_at),
            failing: standing.state == "backing_off",
        });
        let behind = self.is_behind(standing, sighting);
        metrics.set_clock_regression(behind);
        let mut holders: BTreeMap<&'static str, u64> = BTreeMap::new();
        for held in horizon.held_by.iter().filter(|held| held.bound.is_none_or(|bound| bound < horizon.observed_at)) {
            *holders.entry(held.reason(self.shape.rule)).or_default() += 1;
        }
        if !horizon.passed_over.is_empty() {
            holders.insert("max_hold", horizon.passed_over.len() as u64);
        }
        let hold = horizon.observed_at.since(horizon.held_since);
        metrics.set_horizon_hold(hold, &holders.into_iter().collect::<Vec<_>>());
    }

    /// Whether the database's clock is behind the cursor's last advance.
    pub(in crate::relay) fn is_behind(&self, standing: &Standing, scan: &Sighting) -> bool {
        let window = self.shape.margin.window;
        standing
            .observed_at
            .is_some_and(|advanced| scan.horizon.observed_at.plus(window) < advanced && scan.latest_clock() < advanced)
    }

    /// Logs a step of the clock, whether or not a turn begins: rows below the position begin none. The step, if it is to be
    /// recorded.
    pub(in crate::relay) fn log_clock(&self, news: ClockNews, standing: &Standing) -> Option<ClockStep> {
        let cursor = &self.config.name;
        let from = |step: ClockStep| step.from.map_or_else(|| "unknown".to_owned(), |from| from.to_string());
        match news {
            ClockNews::Behind(step) => {
                tracing::error!(
                    cursor,
                    observed_at = %step.to,
                    clock = from(step),
                    "the database's clock has stepped back: held until it passes the last advance; rows stamped in between may \
                     lie below the position"
                );
                Some(step)
            }
            // A seek has answered it.
            ClockNews::Passed(step) if standing.observed_at.is_none_or(|at| at < step.to) => None,
            ClockNews::Passed(step) | ClockNews::Over(step) => {
                let at = step.from.map_or_else(|| "INSTANT".to_owned(), |from| from.to_string());
                tracing::error!(
                    cursor,
                    from = from(step),
                    to = %step.to,
                    hint = format!("Have them sent, and what came since once more: `outbox-relay cursor seek {cursor} --at {at}`."),
                    "the database's clock has passed the last advance again: rows stamped in between may not have been delivered"
                );
                matches!(news, ClockNews::Over(_)).then_some(step)
            }
        }
    }

    /// Shows lag, backlog, the dead letters that wait, the keys that are parked, and how many outcomes are unknown.
    pub(in crate::relay) fn sampled(&self, lag: &Lag, found: Attention) {
        self.metrics.set_dead_letters(found.dead_letters.unsigned_abs());
        self.metrics.set_parked_keys(found.parked_keys.unsigned_abs());
        self.metrics.set_unknown_outcomes(found.unknown.unsigned_abs());
        self.metrics.set_lag(lag.age, lag.rows.unsigned_abs(), lag.observed_at);
    }
}

/// How a turn ended, as its metrics and its span name it.
fn result(outcome: &Result<TurnOutcome, TurnError>) -> TurnResult {
    match outcome {
        Ok(TurnOutcome::LaneWaits { rows, .. }) if *rows == 0 => TurnResult::Failed,
        Ok(
            TurnOutcome::Relayed { .. }
            | TurnOutcome::LaneWaits { .. }
            | TurnOutcome::Buried { .. }
            | TurnOutcome::Redriven { failure: None, .. },
        ) => TurnResult::Relayed,
        Ok(
            TurnOutcome::Idle | TurnOutcome::Moved { .. } | TurnOutcome::Resumed { .. } | TurnOutcome::Abandoned { .. },
        ) => TurnResult::Idle,
        Ok(TurnOutcome::Busy | TurnOutcome::Early(_)) => TurnResult::Busy,
        Ok(TurnOutcome::Paused) => TurnResult::Paused,
        Ok(TurnOutcome::Halted | TurnOutcome::Foreign | TurnOutcome::Partitions { .. }) => TurnResult::Halted,
        Ok(TurnOutcome::Stalled { failure, .. } | TurnOutcome::Unknown { failure, .. })
            if at_stop(failure).relay == ForRelay::Halts =>
        {
            TurnResult::Halted
        }
        Ok(
            TurnOutcome::Stalled { .. }
            | TurnOutcome::Unknown { .. }
            | TurnOutcome::Searching { .. }
            | TurnOutcome::Redriven { failure: Some(_), .. }
            | TurnOutcome::Regressed { .. },
        )
        | Err(_) => TurnResult::Failed,
    }
}
