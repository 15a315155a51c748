//! Steps of the database's clock, seen against a clock that never steps.

use std::time::Duration;

use crate::position::Timestamp;

/// Of the time between two scans, so much may be the rate at which the clock is slewed, not a step: 1/1,000. NTP slews by
/// 500 ppm at most, and this machine's own clock may drift, too.
const SLEW: u32 = 1_000;
/// Longer than any scan takes: an instant read before a step may lie so much after the scan before it.
const SCAN: Duration = Duration::from_secs(60);

/// The clock as the scans read it.
#[derive(Debug)]
pub(super) struct Clock {
    last: Option<Timestamp>,
    /// The highest reading since the last step that was reported.
    high: Timestamp,
    /// An instant up to this may have been read before a step.
    ambiguous: Timestamp,
}

impl Default for Clock {
    fn default() -> Self {
        Self { last: None, high: Timestamp::NEG_INFINITY, ambiguous: Timestamp::NEG_INFINITY }
    }
}

impl Clock {
    /// The reading of the scan before.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// Takes a reading in, made at least `elapsed` after the last. Returns by how much the clock has been below its highest
    /// reading since then, when that is more than the window: steps that are small each add up, less the time that passes
    /// between them.
    pub(super) fn observe(&mut self, at: Timestamp, elapsed: Duration, window: Duration) -> Option<Duration> {
        let Some(last) = self.last.replace(at) else {
            self.high = at;
            return None;
        };
        let step = last.plus(elapsed - elapsed / SLEW).since(at);
        let behind = self.high.since(last) + step;
        if step.is_zero() || behind <= window {
            self.high = self.high.max(at);
            return None;
        }
        self.ambiguous = self.ambiguous.max(self.high.max(last.plus(elapsed)).plus(SCAN));
        self.high = at;
        Some(behind)
    }

    /// An instant of before the last reading that lies after it: the clock has stepped back in between, whether or not two readings of
    /// it have shown that.
    pub(super) fn distrust(&mut self, instant: Timestamp) {
        self.ambiguous = self.ambiguous.max(instant.plus(SCAN));
    }

    /// Whether an instant that was read before the last reading of this clock can be compared with stamps made since.
    pub(super) fn trusts(&self, instant: Timestamp) -> bool {
        instant > self.ambiguous && self.last.is_some_and(|last| instant <= last)
    }
}
