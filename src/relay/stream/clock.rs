//! Whether PostgreSQL's clock has stood before a cursor's last advance: rows that were stamped then may lie below its position.
//!
//! Promise: each time is logged and counted once by each replica, with the interval that may hold such rows, also when it was over
//! before a turn began, or while this replica had no connection. What no replica that runs now has seen the beginning of, because
//! none was there, begins with the first reading.

use std::time::Duration;

use crate::cursor::Standing;
use crate::position::Timestamp;
use crate::relay::setup::prepared::PreparedStream;
use crate::source::watcher::{Sighting, Step};

/// What is known of one cursor.
#[derive(Debug, Default)]
pub(in crate::relay) struct Regressions {
    /// The one that has not ended.
    open: Option<Interval>,
}

/// An interval whose rows may lie below the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Interval {
    /// The lowest that the clock has shown, or may have shown.
    clock: Timestamp,
    /// The clock of the last advance.
    observed_at: Timestamp,
}

/// What there is to tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// The clock is behind the last advance now.
    Begun(Interval),
    /// It was, and has passed it.
    Unseen(Interval),
    /// One that was told of is over.
    Ended(Interval),
}

impl Regressions {
    /// Logs and counts what a look at the cursor finds, with the steps back since the look before.
    pub(in crate::relay) fn tell(
        &mut self,
        ready: &PreparedStream,
        standing: &Standing,
        sighting: &Sighting,
        steps: &[Step],
    ) {
        let Some(news) = self.look(standing.observed_at, ready.shape.margin.window, sighting, steps) else { return };
        if news.is_new() {
            ready.metrics.clock_regressed();
        }
        news.log(&ready.config.name);
    }

    /// Takes in a look at a cursor.
    fn look(
        &mut self,
        observed_at: Option<Timestamp>,
        window: Duration,
        sighting: &Sighting,
        steps: &[Step],
    ) -> Option<News> {
        let Some(observed_at) = observed_at else {
            self.open = None;
            return None;
        };
        let now = sighting.horizon.observed_at;
        let behind = |clock: Timestamp| clock.plus(window) < observed_at;
        let stepped = steps.iter().filter(|step| step.back > window).map(|step| step.lowest).min();
        // Another replica may have advanced since this scan.
        let is_behind = behind(now) && sighting.latest_clock() < observed_at;
        let known = self.open.filter(|open| open.observed_at == observed_at);
        let lowest = [stepped.filter(|&clock| behind(clock)), known.map(|open| open.clock), is_behind.then_some(now)];
        let interval = lowest.into_iter().flatten().min().map(|clock| Interval { clock, observed_at });
        let before = std::mem::replace(&mut self.open, interval.filter(|_| is_behind));
        match (before, is_behind, interval) {
            (None, true, Some(interval)) => Some(News::Begun(interval)),
            (None, false, Some(interval)) => Some(News::Unseen(interval)),
            (Some(_), false, Some(interval)) => Some(News::Ended(interval)),
            // The position was moved meanwhile.
            (Some(before), false, None) => Some(News::Ended(before)),
            (Some(_), true, _) | (None, _, None) => None,
        }
    }
}

impl News {
    /// Whether it is one that was not told of before.
    const fn is_new(self) -> bool {
        matches!(self, Self::Begun(_) | Self::Unseen(_))
    }

    /// Logs it.
    fn log(self, cursor: &str) {
        match self {
            Self::Begun(Interval { clock, observed_at }) => tracing::error!(
                cursor,
                %observed_at,
                %clock,
                "the database's clock has stepped back: held until it passes the last advance; rows stamped in between may lie \
                 below the position"
            ),
            Self::Unseen(Interval { clock, observed_at }) => tracing::error!(
                cursor,
                %observed_at,
                %clock,
                "the database's clock has stepped back and has passed the last advance again; rows stamped in between may lie \
                 below the position"
            ),
            Self::Ended(Interval { clock, observed_at }) => tracing::warn!(
                cursor,
                %observed_at,
                %clock,
                "the database's clock has passed the last advance again; rows stamped in between may lie below the position"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::source::horizon::Horizon;

    const WINDOW: Duration = Duration::from_millis(5);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_pg_micros(millis * 1_000)
    }

    fn sighting(millis: i64) -> Sighting {
        let horizon =
            Horizon { at: at(0), observed_at: at(millis), held_by: Vec::new(), rescan: false, stepped_back: None };
        Sighting { horizon, answered: Instant::now(), took: Duration::ZERO, server: Default::default() }
    }

    fn interval(clock: i64, observed_at: i64) -> Interval {
        Interval { clock: at(clock), observed_at: at(observed_at) }
    }

    fn step(back: u64, lowest: i64) -> Step {
        Step::new(Duration::from_millis(back), at(lowest))
    }

    #[test]
    fn regression_is_told_at_its_beginning_and_end() {
        let mut regressions = Regressions::default();
        let mut look =
            |observed_at, now, steps: &[Step]| regressions.look(Some(at(observed_at)), WINDOW, &sighting(now), steps);
        assert_eq!(look(60_000, 61_000, &[]), None);
        assert_eq!(look(60_000, 59_996, &[]), None, "within the window");
        assert_eq!(look(60_000, 57_000, &[step(4_000, 56_500)]), Some(News::Begun(interval(56_500, 60_000))));
        assert_eq!(look(60_000, 56_000, &[step(2_000, 55_900)]), None);
        assert_eq!(look(60_000, 60_001, &[]), Some(News::Ended(interval(55_900, 60_000))));
        assert_eq!(look(60_000, 60_002, &[]), None);
        // Without a known beginning, and ended by an operator who has moved the position.
        assert_eq!(look(60_000, 30_000, &[]), Some(News::Begun(interval(30_000, 60_000))));
        assert_eq!(look(29_000, 31_000, &[]), Some(News::Ended(interval(30_000, 60_000))));
    }

    #[test]
    fn regression_that_is_over_is_told_when_it_may_hold_rows() {
        let mut regressions = Regressions::default();
        let mut look =
            |observed_at, now, steps: &[Step]| regressions.look(Some(at(observed_at)), WINDOW, &sighting(now), steps);
        assert_eq!(look(60_000, 61_000, &[step(3_000, 58_000)]), Some(News::Unseen(interval(58_000, 60_000))));
        assert_eq!(look(60_000, 61_000, &[step(3_000, 60_000)]), None, "no row was stamped before the last advance");
        assert_eq!(look(60_000, 61_000, &[step(4, 58_000)]), None, "the window is the room for it");
        assert_eq!(regressions.look(None, WINDOW, &sighting(61_000), &[step(3_000, 58_000)]), None);
    }
}
