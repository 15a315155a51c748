//! Rules by days, weeks, months and years, in local time.
//!
//! The crate `rrule` finds the days, on a calendar without clocks; numbers of weekdays, times of the day and `BYSETPOS` are
//! ours. Whatever it would take from the start is written out, so that a search can begin at any aligned period instead of
//! at the start.

use std::collections::VecDeque;
use std::iter::Peekable;

use chrono::{Datelike as _, Days, Month, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Timelike as _};
use rrule::{Frequency, NWeekday, RRule, RRuleSet, RRuleSetIter, Tz, Unvalidated, Validated};

use super::problem::Problem;
use super::rule::Rule;

/// Nothing is planned after this year.
pub(super) const LAST_YEAR: i32 = 2200;

/// A rule whose periods are days or longer.
#[derive(Clone, Debug)]
pub(super) struct Calendar {
    days: RRule<Validated>,
    rule: Rule,
    start: NaiveDateTime,
    /// The times of a day, ascending.
    times: Vec<NaiveTime>,
}

impl Calendar {
    /// A calendar that begins with a local time.
    pub(super) fn new(rule: Rule, start: NaiveDateTime) -> Result<Self, Problem> {
        let days = days_of(&rule, start.date())
            .validate(midnight(start.date()))
            .map_err(|error| Problem::rule(format!("the rule is refused: {error}").replace('\n', " ")))?;
        let times = times_of(&rule, start.time());
        Ok(Self { days, rule, start, times })
    }

    /// The local times from one on, ascending, without a bound but the last year.
    pub(super) fn from(&self, local: NaiveDateTime) -> Locals<'_> {
        let local = local.max(self.start);
        let first = midnight(self.aligned(local.date()));
        let set = RRuleSet::new(first).rrule(self.days.clone()).limit();
        Locals { calendar: self, days: (&set).into_iter().peekable(), from: local, ready: VecDeque::new() }
    }

    /// The first day of the newest period that the interval meets and that begins at a day or before it.
    fn aligned(&self, day: NaiveDate) -> NaiveDate {
        let (start, now) = (self.period(self.start.date()), self.period(day));
        let interval = i64::from(self.rule.interval);
        let down = |distance: i64| distance.max(0) / interval * interval;
        let moved = match self.rule.freq {
            Frequency::Yearly => {
                let years = down(i64::from(now.year() - start.year()));
                i32::try_from(years).ok().and_then(|years| NaiveDate::from_ymd_opt(start.year() + years, 1, 1))
            }
            Frequency::Monthly => {
                let months =
                    i64::from(now.year() - start.year()) * 12 + i64::from(now.month()) - i64::from(start.month());
                u32::try_from(down(months))
                    .ok()
                    .and_then(|months| start.checked_add_months(chrono::Months::new(months)))
            }
            Frequency::Weekly => start.checked_add_signed(TimeDelta::weeks(down((now - start).num_days() / 7))),
            _ => start.checked_add_signed(TimeDelta::days(down((now - start).num_days()))),
        };
        moved.unwrap_or(start)
    }

    /// The first day of the period that a day is in.
    fn period(&self, day: NaiveDate) -> NaiveDate {
        let first = match self.rule.freq {
            Frequency::Yearly => day.with_ordinal(1),
            Frequency::Monthly => day.with_day(1),
            Frequency::Weekly => Some(day.week(self.rule.week_start).first_day()),
            _ => Some(day),
        };
        first.unwrap_or(day)
    }

    /// True for a day that `BYDAY` lists, plain or with its number. The list is a union, of which the crate makes an
    /// intersection, so it is given the weekdays without their numbers.
    fn lists(&self, day: NaiveDate) -> bool {
        let by_month = self.rule.freq == Frequency::Monthly || !self.rule.months.is_empty();
        let (before, size) = if by_month {
            (day.day0(), u32::from(day.num_days_in_month()))
        } else {
            (day.ordinal0(), if day.leap_year() { 366 } else { 365 })
        };
        let (number, from_end) = (before / 7 + 1, (size - 1 - before) / 7 + 1);
        let met = |listed: &NWeekday| match listed {
            NWeekday::Every(weekday) => *weekday == day.weekday(),
            NWeekday::Nth(listed, weekday) => {
                *weekday == day.weekday() && [i64::from(number), -i64::from(from_end)].contains(&i64::from(*listed))
            }
        };
        self.rule.days.is_empty() || self.rule.days.iter().any(met)
    }

    /// What `BYSETPOS` chooses of the days of one period.
    fn chosen(&self, days: &[NaiveDate]) -> Vec<NaiveDateTime> {
        let (size, times) = (days.len() * self.times.len(), self.times.len());
        let mut places: Vec<usize> = self.rule.positions.iter().filter_map(|position| place(*position, size)).collect();
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| days[place / times].and_time(self.times[place % times])).collect()
    }
}

/// The index of a position counted from 1, or from the end with -1.
pub(super) fn place(position: i32, size: usize) -> Option<usize> {
    let distance = usize::try_from(position.unsigned_abs()).ok()?;
    let place = if position > 0 { distance.checked_sub(1) } else { size.checked_sub(distance) };
    place.filter(|place| *place < size)
}

fn midnight(day: NaiveDate) -> chrono::DateTime<Tz> {
    day.and_time(NaiveTime::MIN).and_utc().with_timezone(&Tz::UTC)
}

/// The rule without its times and numbers of weekdays, and with the days that it would take from its start.
fn days_of(rule: &Rule, start: NaiveDate) -> RRule<Unvalidated> {
    let weekday = |day: &NWeekday| match day {
        NWeekday::Every(weekday) | NWeekday::Nth(_, weekday) => NWeekday::Every(*weekday),
    };
    let mut days: Vec<NWeekday> = rule.days.iter().map(weekday).collect();
    let mut month_days = rule.month_days.clone();
    let mut months = rule.months.clone();
    if !rule.names_days() {
        match rule.freq {
            Frequency::Yearly if !rule.weeks.is_empty() => days.push(NWeekday::Every(start.weekday())),
            Frequency::Yearly | Frequency::Monthly => {
                if rule.freq == Frequency::Yearly && months.is_empty() {
                    months.push(start.month().cast_signed());
                }
                month_days.push(start.day().cast_signed());
            }
            Frequency::Weekly => days.push(NWeekday::Every(start.weekday())),
            _ => {}
        }
    }
    let months: Vec<Month> =
        months.iter().filter_map(|month| Month::try_from(u8::try_from(*month).ok()?).ok()).collect();
    let small = |list: &[i32]| list.iter().filter_map(|number| i8::try_from(*number).ok()).collect::<Vec<i8>>();
    RRule::new(rule.freq)
        .interval(rule.interval)
        .week_start(rule.week_start)
        .by_month(&months)
        .by_week_no(small(&rule.weeks))
        .by_year_day(rule.year_days.iter().filter_map(|number| i16::try_from(*number).ok()).collect())
        .by_month_day(small(&month_days))
        .by_weekday(days)
        .by_hour(vec![0])
        .by_minute(vec![0])
        .by_second(vec![0])
}

fn times_of(rule: &Rule, start: NaiveTime) -> Vec<NaiveTime> {
    let or = |list: &[i32], own: u32| -> Vec<u32> {
        if list.is_empty() { vec![own] } else { list.iter().map(|number| number.unsigned_abs()).collect() }
    };
    let (minutes, seconds) = (or(&rule.minutes, start.minute()), or(&rule.seconds, start.second()));
    let mut times = Vec::new();
    for hour in or(&rule.hours, start.hour()) {
        for minute in &minutes {
            times.extend(seconds.iter().filter_map(|second| NaiveTime::from_hms_opt(hour, *minute, *second)));
        }
    }
    times
}

/// Local times, ascending.
pub(super) struct Locals<'a> {
    calendar: &'a Calendar,
    days: Peekable<RRuleSetIter>,
    from: NaiveDateTime,
    ready: VecDeque<NaiveDateTime>,
}

impl Locals<'_> {
    fn day(&mut self) -> Option<NaiveDate> {
        let calendar = self.calendar;
        let mut days = self.days.by_ref().map(|day| day.date_naive()).take_while(|day| day.year() <= LAST_YEAR);
        days.find(|day| calendar.lists(*day))
    }

    /// Makes ready the times of the next day, or of the next period when positions choose among them. False at the end.
    fn more(&mut self) -> bool {
        let Some(day) = self.day() else { return false };
        if self.calendar.rule.positions.is_empty() {
            let times = self.calendar.times.iter().map(|time| day.and_time(*time));
            self.ready.extend(times.filter(|local| *local >= self.from));
            return true;
        }
        let period = self.calendar.period(day);
        let mut days = vec![day];
        let calendar = self.calendar;
        while let Some(other) = self.days.next_if(|other| calendar.period(other.date_naive()) == period) {
            days.extend(Some(other.date_naive()).filter(|other| calendar.lists(*other)));
        }
        self.ready.extend(calendar.chosen(&days).into_iter().filter(|local| *local >= self.from));
        true
    }
}

impl Iterator for Locals<'_> {
    type Item = NaiveDateTime;

    fn next(&mut self) -> Option<NaiveDateTime> {
        loop {
            if let Some(local) = self.ready.pop_front() {
                return Some(local);
            }
            if !self.more() {
                return None;
            }
        }
    }
}

/// The day after one; the last day there is has none, and no search comes near it.
pub(super) fn day_after(day: NaiveDate) -> NaiveDate {
    day.checked_add_days(Days::new(1)).unwrap_or(day)
}
