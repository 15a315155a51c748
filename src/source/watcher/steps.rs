//! Steps back of the database's clock, against this process's clock, which never steps.
//!
//! They outlive the watcher's session: the clock that follows a lost connection may be another server's.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::position::Timestamp;

/// So much of the time between two readings may be the rate at which a clock is slewed: 1/1,000.
const SLEW: u32 = 1_000;
/// The rest is noise.
const LEAST: Duration = Duration::from_millis(1);
/// So many steps are remembered; of older ones the lowest reading.
const MOST: usize = 64;

/// A reading of the database's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// What it showed.
    pub(super) at: Timestamp,
    /// It was read after this.
    pub(super) asked: Instant,
    /// And before this.
    pub(super) answered: Instant,
}

/// The clock has stepped back between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    number: u64,
    /// By this much, at the least.
    pub back: Duration,
    /// What it may have shown directly after the step: it did not show less.
    pub lowest: Timestamp,
}

impl Step {
    /// A step; of no number.
    #[cfg(test)]
    pub(crate) const fn new(back: Duration, lowest: Timestamp) -> Self {
        Self { number: 0, back, lowest }
    }
}

/// The steps seen so far.
#[derive(Debug, Default)]
pub(super) struct Steps {
    last: Option<Reading>,
    number: u64,
    seen: VecDeque<Step>,
}

impl Steps {
    /// Takes a reading in.
    pub(super) fn observe(&mut self, reading: Reading) {
        let Some(last) = self.last.replace(reading) else { return };
        let least = reading.asked.saturating_duration_since(last.answered);
        let most = reading.answered.saturating_duration_since(last.asked);
        let back = last.at.plus(least - least / SLEW).since(reading.at);
        if back < LEAST {
            return;
        }
        self.number += 1;
        self.seen.push_back(Step { number: self.number, back, lowest: reading.at.minus(most) });
        if self.seen.len() > MOST
            && let (Some(first), Some(second)) = (self.seen.pop_front(), self.seen.front_mut())
        {
            (second.back, second.lowest) = (second.back.max(first.back), second.lowest.min(first.lowest));
        }
    }

    /// The steps after the one of this number, and the number of the last.
    pub(super) fn after(&self, number: u64) -> (Vec<Step>, u64) {
        (self.seen.iter().filter(|step| step.number > number).copied().collect(), self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings, each milliseconds by the database's clock and by this process's, and how long each took.
    fn steps(readings: &[(i64, u64, u64)]) -> Vec<(u64, i64)> {
        let begun = Instant::now();
        let mut steps = Steps::default();
        for &(at, asked, took) in readings {
            let asked = begun + Duration::from_millis(asked);
            let at = Timestamp::from_pg_micros(at * 1_000);
            steps.observe(Reading { at, asked, answered: asked + Duration::from_millis(took) });
        }
        let (seen, last) = steps.after(0);
        assert_eq!(steps.after(last).0, []);
        let millis =
            |at: Timestamp| i64::try_from(at.since(Timestamp::from_pg_micros(0)).as_millis()).unwrap_or(i64::MAX);
        seen.iter()
            .map(|step| (u64::try_from(step.back.as_millis()).unwrap_or(u64::MAX), millis(step.lowest)))
            .collect()
    }

    #[test]
    fn clock_that_goes_on_has_no_steps() {
        assert_eq!(steps(&[(1_000, 0, 5), (1_200, 200, 5), (61_200, 60_200, 500), (61_900, 60_900, 0)]), []);
        // A step forward, and one that is slewed.
        assert_eq!(steps(&[(1_000, 0, 0), (9_000, 200, 0), (108_910, 100_200, 0)]), []);
    }

    #[test]
    fn step_back_has_its_size_and_lowest_reading() {
        // Read again 200 ms later, by 3 s less: it was set back somewhere in between.
        assert_eq!(steps(&[(10_000, 0, 0), (7_200, 200, 0)]), [(2_999, 7_000)]);
        // A long answer says less of when, and of how much.
        assert_eq!(steps(&[(10_000, 0, 50), (7_200, 200, 100)]), [(2_949, 6_900)]);
        // It is over when it is seen: more time has passed than the clock shows.
        assert_eq!(steps(&[(10_000, 0, 0), (17_000, 10_000, 0)]), [(2_990, 7_000)]);
    }

    #[test]
    fn many_steps_keep_lowest_reading() {
        let readings: Vec<_> = (0..200).map(|n| (100_000 - 100 * n, 10 * u64::try_from(n).unwrap_or(0), 0)).collect();
        let seen = steps(&[&readings[..], &[(1_000_000, 2_000, 0), (999_000, 2_010, 0)]].concat());
        assert_eq!((seen.len(), seen.last()), (MOST, Some(&(1_009, 998_990))));
        let lowest = seen.iter().map(|step| step.1).min();
        assert_eq!(lowest, Some(80_090));
    }
}
