//! How often to look, so that rows are as fresh as configured at the least cost.

use std::time::{Duration, Instant};

/// What `[relay] freshness` leaves for a look at a resting table: the rest of it is for the turn that follows.
const LOOK: f64 = 0.8;
/// Where rows come at least as often as this, looks are as frequent as freshness asks for.
const OFTEN: Duration = Duration::from_millis(250);
/// See [`longest`].
const LONGEST: Duration = Duration::from_millis(50);

/// When a table's rows came, as far as looks have told. Bursts and silences are not averaged: what counts is the median of
/// the last gaps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    last: Option<Instant>,
    gaps: [Option<Duration>; 3],
    next: usize,
}

impl Arrivals {
    /// A look has found new rows.
    pub fn came(&mut self, now: Instant) {
        if let Some(last) = self.last.replace(now) {
            self.gaps[self.next] = Some(now.saturating_duration_since(last));
            self.next = (self.next + 1) % self.gaps.len();
        }
    }

    /// Turns that followed each other have ended: rows came all the time until now, and nobody counted them here.
    pub fn came_until(&mut self, now: Instant) {
        self.last = Some(now);
    }

    /// The usual time between rows; none before the third gap.
    #[must_use]
    pub fn gap(&self) -> Option<Duration> {
        let [Some(first), Some(second), Some(third)] = self.gaps else { return None };
        let mut gaps = [first, second, third];
        gaps.sort_unstable();
        Some(gaps[1])
    }

    /// The pause of a table that rests. What looks cost in a second falls with the pause, what rows wait in a second rises with
    /// it and with their number: the sum is least where the pause grows with the square root of the time between rows, which is
    /// taken to be no shorter than the time since the last one.
    #[must_use]
    pub fn pause(&self, now: Instant, config: &super::Config) -> Duration {
        let (shortest, longest) = (shortest(config), longest(config));
        let Some(last) = self.last else { return longest };
        let silence = now.saturating_duration_since(last);
        let expected = self.gap().unwrap_or(silence).max(silence);
        let slower = (expected.as_secs_f64() / OFTEN.as_secs_f64()).sqrt().max(1.0);
        shortest.mul_f64(slower.min(1e6)).min(longest)
    }
}

/// The shortest pause of a table that rests.
#[must_use]
pub fn shortest(config: &super::Config) -> Duration {
    config.freshness.mul_f64(LOOK).max(config.min)
}

/// The longest pause of a table that rests, unless many tables share a replica's looks.
#[must_use]
pub fn longest(config: &super::Config) -> Duration {
    LONGEST.min(config.max).max(shortest(config))
}

/// How long turns take, from the beginning of the reading to the commit: about the longest but one of ten. A longer one moves it
/// quickly, a shorter one slowly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnTime(Duration);

impl TurnTime {
    /// Takes a turn's time in.
    pub fn took(&mut self, took: Duration) {
        self.0 = if took > self.0 { self.0 + (took - self.0) / 4 } else { self.0 - (self.0 - took) / 32 };
    }

    /// The pause before the next turn while rows come all the time. The oldest row that may be unread is as old as the horizon
    /// of the last turn, `behind` the clock now: the next turn is to end before that row is older than freshness. A machine
    /// that is slow does not make it much shorter, or turns would make it slower still.
    #[must_use]
    pub fn pause(self, config: &super::Config, behind: Duration) -> Duration {
        let turn = self.0.min(config.freshness / 2);
        config.freshness.saturating_sub(behind + turn).max(config.min)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn steady_rows_are_looked_for_as_often_as_freshness_asks_for() {
        let (begun, config) = (Instant::now(), Config::default());
        let mut arrivals = Arrivals::default();
        assert_eq!(arrivals.pause(begun, &config), LONGEST, "nothing has come");
        (0..10).for_each(|row| arrivals.came(begun + MS * 100 * row));
        assert_eq!(arrivals.gap(), Some(MS * 100));
        assert_eq!(arrivals.pause(begun + MS * 901, &config), MS * 8);
        assert_eq!(arrivals.pause(begun + MS * 1_100, &config), MS * 8);
    }

    #[test]
    fn silence_makes_looks_fewer_until_the_longest_pause() {
        let begun = Instant::now();
        let mut arrivals = Arrivals::default();
        arrivals.came(begun);
        let after =
            |seconds: u64, config: &Config| arrivals.pause(begun + Duration::from_secs(seconds), config).as_millis();
        let config = Config::default();
        assert_eq!([after(1, &config), after(5, &config), after(60, &config)], [16, 35, 50]);
        assert_eq!(after(60, &Config { freshness: Duration::from_secs(1), ..config }), 800, "freshness allows more");
        assert_eq!(after(60, &Config { max: MS * 20, ..config }), 20, "less is configured");
    }

    #[test]
    fn one_silence_does_not_hide_that_rows_come_often_and_turns_in_between_are_none() {
        let (mut now, mut arrivals) = (Instant::now(), Arrivals::default());
        for gap in [100, 100, 100, 60_000, 100] {
            now += MS * gap;
            arrivals.came(now);
        }
        assert_eq!(arrivals.gap(), Some(MS * 100));
        now += Duration::from_secs(600);
        arrivals.came_until(now);
        arrivals.came(now + MS * 90);
        assert_eq!(arrivals.gap(), Some(MS * 100));
    }

    #[test]
    fn next_turn_ends_before_the_oldest_unread_row_is_older_than_freshness() {
        let config = Config::default();
        let mut turns = TurnTime::default();
        (0..100).for_each(|_| turns.took(MS * 2));
        let pause = turns.pause(&config, MS * 3);
        assert!(pause >= MS * 5 && pause < Duration::from_micros(5_100), "{pause:?}");
        assert_eq!(turns.pause(&config, MS * 60), config.min, "it is older already");
        (0..100).for_each(|_| turns.took(MS * 300));
        assert_eq!(turns.pause(&config, MS), MS * 4, "a slow machine is not pressed");
    }
}
