//! Pauses between two looks at a table that rests.

use std::time::{Duration, Instant};

use crate::pace;
use crate::pace::freshness::{self, Arrivals};

/// By so much each table that is looked at makes the pause between two looks longer.
const EACH: Duration = Duration::from_millis(10);

/// How often a table is looked at while it rests.
#[derive(Clone, Copy, Debug)]
pub(in crate::relay) struct Pauses {
    /// When rows have come.
    pub(in crate::relay) arrivals: Arrivals,
    /// The pause of a replica that leaves the rows to another one.
    pub(in crate::relay) standby: Option<Duration>,
    /// What is configured.
    pub(in crate::relay) poll: pace::Config,
}

impl Pauses {
    /// The pause of a table that is looked at alone.
    pub(in crate::relay) fn alone(&self, now: Instant) -> Duration {
        self.standby.unwrap_or_else(|| self.arrivals.pause(now, &self.poll))
    }

    /// The pause beside so many tables. After a silence, what a replica's looks cost in a second hardly grows with their number.
    pub(super) fn among(&self, tables: usize, now: Instant) -> Duration {
        let alone = self.alone(now);
        if self.standby.is_some() || alone < freshness::longest(&self.poll) {
            return alone;
        }
        let tables = u32::try_from(tables).unwrap_or(u32::MAX);
        EACH.saturating_mul(tables).clamp(alone, self.poll.max.max(alone))
    }
}
