//! Watches from poll to poll whether the database's clock has stepped back so far that rows may have been stamped at or before
//! a cursor's position. Pure: clocks are read elsewhere.
//!
//! Promise: a step is reported with an instant that is no later than the clock right after it, or with none where no earlier
//! poll gives such a bound.

use std::time::{Duration, Instant};

use crate::cursor::ClockStep;
use crate::position::Timestamp;
use crate::source::watcher::Sighting;

/// As a share of the time between two polls, how much the database's clock may fall behind this process's before that is a
/// step: chrony slews by up to a twelfth (`maxslewrate`, 83,333 ppm).
const SLEW: u32 = 8;

/// One reading of the database's clock.
#[derive(Clone, Copy, Debug)]
pub(in crate::relay) struct Reading {
    /// The database's clock.
    pub(in crate::relay) clock: Timestamp,
    /// When it was asked for and when the answer came, by this process's clock.
    pub(in crate::relay) asked: Instant,
    pub(in crate::relay) answered: Instant,
}

impl Reading {
    /// The clock that a scan has read.
    pub(in crate::relay) fn of(scan: &Sighting) -> Self {
        let asked = scan.answered.checked_sub(scan.took).unwrap_or(scan.answered);
        Self { clock: scan.horizon.observed_at, asked, answered: scan.answered }
    }
}

/// What one replica has seen of the clock beside one cursor.
#[derive(Debug, Default)]
pub(in crate::relay) struct ClockWatch {
    last: Option<Reading>,
    step: Option<ClockStep>,
}

/// What a poll has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum ClockNews {
    /// The clock is behind the last advance.
    Behind(ClockStep),
    /// It no longer is.
    Passed(ClockStep),
    /// It was behind the last advance for a while between two polls, as far as can be told.
    Over(ClockStep),
}

impl ClockWatch {
    /// Takes in a poll. `advanced`: the database's clock at the cursor's last advance. `behind`: the clock is behind that by more
    /// than the latency `window`. None when nothing has changed.
    pub(in crate::relay) fn poll(
        &mut self,
        now: Reading,
        advanced: Option<Timestamp>,
        behind: bool,
        window: Duration,
    ) -> Option<ClockNews> {
        let last = self.last.replace(now);
        // The step took place after the reading before: so much may have been stamped before this one.
        let from = last.map(|last| now.clock.minus(now.answered.saturating_duration_since(last.asked)));
        let stepped = last.is_some_and(|last| has_stepped(&last, &now, window));
        match (self.step, advanced.filter(|_| behind)) {
            (None, Some(to)) => self.begins(ClockStep { from, to }),
            (Some(known), Some(to)) if known.to != to => self.begins(ClockStep { from, to }),
            // Once more, and further.
            (Some(known), Some(to))
                if stepped && known.from.is_some_and(|known| from.is_some_and(|from| from < known)) =>
            {
                self.begins(ClockStep { from, to })
            }
            (Some(_), Some(_)) => None,
            (Some(known), None) => {
                self.step = None;
                Some(ClockNews::Passed(known))
            }
            (None, None) => {
                let to = advanced.filter(|to| stepped && from.is_some_and(|from| from.plus(window) < *to))?;
                Some(ClockNews::Over(ClockStep { from, to }))
            }
        }
    }

    fn begins(&mut self, step: ClockStep) -> Option<ClockNews> {
        self.step = Some(step);
        Some(ClockNews::Behind(step))
    }
}

/// Whether the database's clock has gained less between two readings than this process's by more than a slewed clock does.
fn has_stepped(last: &Reading, now: &Reading, window: Duration) -> bool {
    let at_least = now.asked.saturating_duration_since(last.answered);
    let missing = last.clock.plus(at_least).since(now.clock);
    missing > window.max(at_least / SLEW)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(5);

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_pg_micros(millis * 1_000)
    }

    /// Polls at (this process's milliseconds, the database's), each answered immediately.
    fn polls(begun: Instant, watch: &mut ClockWatch, advanced: i64, polls: &[(u64, i64)]) -> Vec<ClockNews> {
        let poll = |&(millis, clock): &(u64, i64)| {
            let asked = begun + Duration::from_millis(millis);
            let now = Reading { clock: at(clock), asked, answered: asked };
            watch.poll(now, Some(at(advanced)), clock + 5 < advanced, WINDOW)
        };
        polls.iter().filter_map(poll).collect()
    }

    fn step(from: i64, to: i64) -> ClockStep {
        ClockStep { from: Some(at(from)), to: at(to) }
    }

    // Guarantee: horizon.clock-step-bound
    #[test]
    fn step_starts_at_or_before_clock_after_it() {
        let found = polls(
            Instant::now(),
            &mut ClockWatch::default(),
            5_000,
            &[(0, 5_010), (200, 1_000), (400, 1_200), (5_000, 5_800)],
        );
        assert_eq!(found, [ClockNews::Behind(step(800, 5_000)), ClockNews::Passed(step(800, 5_000))]);
    }

    // Guarantee: horizon.clock-step-bound
    #[test]
    fn step_before_first_poll_has_no_start() {
        let found = polls(Instant::now(), &mut ClockWatch::default(), 5_000, &[(0, 1_000), (200, 1_200)]);
        assert_eq!(found, [ClockNews::Behind(ClockStep { from: None, to: at(5_000) })]);
    }

    #[test]
    fn further_step_before_the_first_has_passed_is_reported() {
        let found = polls(
            Instant::now(),
            &mut ClockWatch::default(),
            5_000,
            &[(0, 5_010), (200, 3_000), (400, 3_200), (500, 400)],
        );
        assert_eq!(found, [ClockNews::Behind(step(2_800, 5_000)), ClockNews::Behind(step(300, 5_000))]);
    }

    // Guarantee: horizon.clock-step-bound
    #[test]
    fn step_that_is_over_before_the_next_poll_is_reported() {
        let found =
            polls(Instant::now(), &mut ClockWatch::default(), 5_000, &[(0, 5_001), (1_000, 5_500), (2_000, 6_500)]);
        assert_eq!(found, [ClockNews::Over(step(4_500, 5_000))]);
    }

    #[test]
    fn slewed_clock_and_step_after_an_idle_hour_are_no_news() {
        let found = polls(
            Instant::now(),
            &mut ClockWatch::default(),
            5_000,
            &[(0, 5_001), (1_000, 5_917), (3_600_000, 3_550_000)],
        );
        assert_eq!(found, []);
    }

    #[test]
    fn slow_answers_shift_the_start_and_pretend_no_step() {
        let (mut watch, begun) = (ClockWatch::default(), Instant::now());
        let after = |millis| begun + Duration::from_millis(millis);
        let slow =
            |clock, asked, answered| Reading { clock: at(clock), asked: after(asked), answered: after(answered) };
        assert_eq!(watch.poll(slow(5_900, 0, 900), Some(at(5_000)), false, WINDOW), None);
        assert_eq!(watch.poll(slow(5_950, 950, 1_900), Some(at(5_000)), false, WINDOW), None);
        let behind = watch.poll(slow(2_000, 2_000, 2_500), Some(at(5_000)), true, WINDOW);
        assert_eq!(behind, Some(ClockNews::Behind(step(450, 5_000))));
    }
}
