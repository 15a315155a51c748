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

    /// Turns that followed each other have ended: rows came all the time until now, and were not counted here.
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

/// How long before a row is as old as freshness allows the turn that reads it must begin, while rows come all the time: what turns
/// take, and what writers hold back. It is learned from the rows themselves: where the oldest row of a turn was too old, turns
/// begin a little sooner, else a very little later, so that it is of about three turns in a hundred: the other rows of those
/// turns are younger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lead(Duration);

impl Lead {
    /// Nothing is learned yet.
    #[must_use]
    pub fn new(config: &super::Config) -> Self {
        Self(config.freshness / 4)
    }

    /// Takes the age in at which a turn's oldest row was acknowledged. Where rows are too old whatever the pause, turns do not
    /// press the servers without end.
    pub fn learn(&mut self, oldest: Duration, config: &super::Config) {
        let step = config.freshness / 32;
        self.0 = if oldest > config.freshness { self.0 + step } else { self.0.saturating_sub(step / 32) };
        self.0 = self.0.min(config.freshness * 3 / 4);
    }

    /// The pause before the next turn. The oldest row that may be unread is as old as the horizon of the last turn, `behind` the
    /// clock now.
    #[must_use]
    pub fn pause(self, config: &super::Config, behind: Duration) -> Duration {
        config.freshness.saturating_sub(behind + self.0).max(config.min)
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
    fn next_turn_begins_before_the_oldest_unread_row_is_too_old() {
        let config = Config::default();
        let lead = Lead::new(&config);
        assert_eq!(lead.pause(&config, MS * 3), Duration::from_micros(4_500));
        assert_eq!(lead.pause(&config, MS * 60), config.min, "it is too old already");
    }

    #[test]
    fn about_three_turns_in_a_hundred_are_late() {
        // A turn takes 1 to 4 ms, drawn evenly; its oldest row is as old as the horizon of the turn before.
        let (config, mut chance) = (Config::default(), fastrand::Rng::with_seed(7));
        let mut lead = Lead::new(&config);
        let mut late = 0;
        for turn in 0..200_000 {
            let behind = MS * 3;
            let took = Duration::from_micros(1_000 + chance.u64(..3_000));
            let age = behind + lead.pause(&config, behind) + took;
            late += u32::from(turn >= 100_000 && age > config.freshness);
            lead.learn(age, &config);
        }
        assert!((1_500..5_000).contains(&late), "{late} of 100,000");
    }

    #[test]
    fn servers_that_are_too_slow_are_not_pressed_without_end() {
        let config = Config::default();
        let mut lead = Lead::new(&config);
        (0..1_000).for_each(|_| lead.learn(MS * 300, &config));
        assert_eq!(lead.pause(&config, MS), Duration::from_micros(1_500));
    }
}
