//! Rules by hours, minutes and seconds. They count in UTC, so that each hour of a day with 23 or 25 of them is met once.
//!
//! The crate `rrule` is not asked here: it walks such rules from their start, and some of them for minutes.

use std::collections::VecDeque;

use chrono::{DateTime, Datelike as _, NaiveDateTime, Timelike as _, Utc};
use rrule::{Frequency, NWeekday};

use super::calendar::{day_after, place};
use super::problem::Problem;
use super::rule::Rule;
use super::zone::seconds;

/// Periods that one search may look at: some ten milliseconds.
const MOST_STEPS: usize = 1_000_000;

/// A rule whose periods are shorter than a day. All times are seconds since 1970 in UTC.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    rule: Rule,
    /// Length of the rule's unit.
    unit: i64,
    /// From one period to the next.
    step: i64,
    /// Where the period of the start begins.
    origin: i64,
    start: i64,
}

impl Clock {
    /// A clock that begins with a time in UTC. What the rule would take from it is written out.
    pub(super) fn new(mut rule: Rule, start: NaiveDateTime) -> Self {
        let unit = match rule.freq {
            Frequency::Hourly => 3_600,
            Frequency::Minutely => 60,
            _ => 1,
        };
        if unit == 3_600 && rule.minutes.is_empty() {
            rule.minutes.push(start.minute().cast_signed());
        }
        if unit > 1 && rule.seconds.is_empty() {
            rule.seconds.push(start.second().cast_signed());
        }
        let start = seconds(start);
        Self { unit, step: unit * i64::from(rule.interval), origin: start - start.rem_euclid(unit), start, rule }
    }

    /// The occurrences from one instant to another, ascending.
    pub(super) fn between(&self, from: i64, to: i64) -> Ticks<'_> {
        let from = from.max(self.start);
        let period = self.origin + (from - self.origin) / self.step * self.step;
        Ticks { clock: self, period, from, to, ready: VecDeque::new(), steps: 0 }
    }

    /// The first period that begins at an instant or after it.
    fn at_or_after(&self, instant: i64) -> i64 {
        let distance = (instant - self.origin).max(0);
        self.origin + (distance + self.step - 1) / self.step * self.step
    }

    /// When a period is one that the rule leaves out: the instant before which all others are left out, too.
    fn left_out_until(&self, period: i64) -> Option<i64> {
        let at = DateTime::from_timestamp(period, 0)?;
        let out = |list: &[i32], value: u32| !list.is_empty() && !list.contains(&value.cast_signed());
        if !self.has_day(at) {
            Some(seconds(day_after(at.date_naive()).and_time(chrono::NaiveTime::MIN)))
        } else if out(&self.rule.hours, at.hour()) {
            Some(period - period.rem_euclid(3_600) + 3_600)
        } else if self.unit < 3_600 && out(&self.rule.minutes, at.minute()) {
            Some(period - period.rem_euclid(60) + 60)
        } else if self.unit == 1 && out(&self.rule.seconds, at.second()) {
            Some(period + 1)
        } else {
            None
        }
    }

    fn has_day(&self, at: DateTime<Utc>) -> bool {
        let rule = &self.rule;
        let in_month = at.date_naive().num_days_in_month();
        let in_year = if at.date_naive().leap_year() { 366 } else { 365 };
        let met = |list: &[i32], value: u32, size: i32| {
            let value = value.cast_signed();
            list.is_empty() || list.contains(&value) || list.contains(&(value - size - 1))
        };
        met(&rule.month_days, at.day(), i32::from(in_month))
            && met(&rule.year_days, at.ordinal(), in_year)
            && (rule.months.is_empty() || rule.months.contains(&at.month().cast_signed()))
            && (rule.days.is_empty() || rule.days.contains(&NWeekday::Every(at.weekday())))
    }

    /// The occurrences of a period, ascending.
    fn of_period(&self, period: i64) -> Vec<i64> {
        let rule = &self.rule;
        let seconds = || rule.seconds.iter().map(|second| i64::from(*second));
        let all: Vec<i64> = match self.unit {
            3_600 => {
                let minutes = rule.minutes.iter().map(|minute| period + i64::from(*minute) * 60);
                minutes.flat_map(|minute| seconds().map(move |second| minute + second)).collect()
            }
            60 => seconds().map(|second| period + second).collect(),
            _ => vec![period],
        };
        if rule.positions.is_empty() {
            return all;
        }
        let mut places: Vec<usize> = rule.positions.iter().filter_map(|position| place(*position, all.len())).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| all[place]).collect()
    }
}

/// Instants of a [`Clock`], ascending.
pub(super) struct Ticks<'a> {
    clock: &'a Clock,
    period: i64,
    from: i64,
    to: i64,
    ready: VecDeque<i64>,
    steps: usize,
}

impl Iterator for Ticks<'_> {
    type Item = Result<i64, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(at) = self.ready.pop_front() {
                return (at <= self.to).then_some(Ok(at));
            }
            if self.period > self.to {
                return None;
            }
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Some(Err(Problem::new(
                    "cost",
                    "the rule meets its BY… parts never, or too rarely to be searched: \
                     write it as FREQ=DAILY with BYHOUR, BYMINUTE and BYSECOND",
                )));
            }
            match self.clock.left_out_until(self.period) {
                Some(next) => self.period = self.clock.at_or_after(next),
                None => {
                    let all = self.clock.of_period(self.period);
                    self.ready.extend(all.into_iter().filter(|at| *at >= self.from));
                    self.period += self.clock.step;
                }
            }
        }
    }
}
