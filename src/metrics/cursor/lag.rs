//! How late a cursor is, and where the time of its rows goes.

use std::sync::{MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use metrics::{Label, gauge};

use super::super::table::name;
use super::super::{Looked, Stage, count, stage, trail};
use super::CursorMetrics;
use crate::position::Timestamp;

impl CursorMetrics {
    /// Sets lag and backlog as they were seen at `observed`, and with them where the time of rows goes.
    pub fn set_lag(&self, lag: Duration, backlog_rows: u64, observed: Timestamp) {
        let stages = self.follower().sampled(observed, backlog_rows > 0);
        self.trail.measured(trail::Measured { lag, rows: backlog_rows, stages, at: Instant::now() });
        self.lag.set(lag.as_secs_f64());
        self.backlog_rows.set(count(backlog_rows));
        self.observed.set_instant(observed);
        let gauges = self.stages.get_or_init(|| {
            Stage::ALL.map(|stage| {
                gauge!(name::LAG_STAGE, vec![self.cursor.clone(), Label::from_static_parts("stage", stage.as_str())])
            })
        });
        for (gauge, stage) in gauges.iter().zip(stages) {
            gauge.set(stage.as_secs_f64());
        }
    }

    /// A look has seen where rows and cursor stand.
    pub fn looked(&self, look: Looked) {
        self.follower().looked(look);
    }

    /// A turn begins, at PostgreSQL's time `at`, and reads below `horizon`.
    pub fn turn_begun(&self, at: Timestamp, horizon: Timestamp) {
        self.follower().turn_begun(at, horizon);
    }

    /// A turn has ended that delivered up to `reached`; `at_sink`: because the sink failed.
    pub fn turn_ended(&self, at: Timestamp, reached: Option<Timestamp>, at_sink: bool) {
        self.follower().turn_ended(at, reached, at_sink);
    }

    fn follower(&self) -> MutexGuard<'_, stage::Follower> {
        self.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets how far the horizon lies back beyond the latency window, and how many transactions hold it, by reason.
    /// Reasons that are left out have none.
    pub fn set_horizon_hold(&self, hold: Duration, holders: &[(&'static str, u64)]) {
        self.horizon_hold.set(hold.as_secs_f64());
        let mut gauges = self.horizon_holders.lock().unwrap_or_else(PoisonError::into_inner);
        for (reason, _) in holders {
            gauges.entry(reason).or_insert_with(|| {
                gauge!(name::HORIZON_HOLDERS, vec![self.cursor.clone(), Label::from_static_parts("reason", reason)])
            });
        }
        for (reason, gauge) in gauges.iter() {
            gauge.set(count(holders.iter().filter(|(other, _)| other == reason).map(|(_, n)| n).sum()));
        }
    }
}
