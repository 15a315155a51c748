//! The text of a rule as checked parts: strict, because a part that is passed over is a date that nobody meant.

use chrono::{NaiveDate, NaiveDateTime, Weekday};
use rrule::{Frequency, NWeekday};

use super::problem::{Problem, shown};

mod check;

/// A rule that is longer is refused: a list of every day of a year fits.
const LONGEST: usize = 2_000;
/// More occurrences than these are not counted by `COUNT`.
const MOST: usize = 10_000;

/// The parts of a rule. Lists are sorted and without repetition; an empty one is a part that was not given.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) freq: Frequency,
    pub(super) interval: u16,
    pub(super) count: Option<usize>,
    pub(super) until: Option<Until>,
    pub(super) week_start: Weekday,
    pub(super) months: Vec<i32>,
    pub(super) weeks: Vec<i32>,
    pub(super) year_days: Vec<i32>,
    pub(super) month_days: Vec<i32>,
    pub(super) days: Vec<NWeekday>,
    pub(super) hours: Vec<i32>,
    pub(super) minutes: Vec<i32>,
    pub(super) seconds: Vec<i32>,
    pub(super) positions: Vec<i32>,
}

/// The three forms of `UNTIL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// Up to the end of this day in the schedule's zone.
    Day(NaiveDate),
    /// Up to this local time in the schedule's zone.
    Local(NaiveDateTime),
    /// Up to this instant.
    Utc(NaiveDateTime),
}

impl Rule {
    /// Reads `FREQ=…`, with or without `RRULE:` in front.
    pub(super) fn parse(text: &str) -> Result<Self, Problem> {
        let text = only_line(text)?.to_ascii_uppercase();
        let mut parts: Vec<(&str, &str)> = Vec::new();
        for part in text.split(';') {
            let Some((name, value)) = part.split_once('=') else {
                return Err(Problem::rule(format!(
                    "\"{}\" is no part of a rule: write NAME=VALUE, with a semicolon between two parts",
                    shown(part)
                )));
            };
            if parts.iter().any(|(other, _)| *other == name) {
                return Err(Problem::rule(format!("{} is given twice: write one list", shown(name))));
            }
            parts.push((name, value));
        }
        let Some((_, freq)) = parts.iter().find(|(name, _)| *name == "FREQ") else {
            return Err(Problem::rule("FREQ is missing: begin with FREQ=DAILY, for example"));
        };
        let mut rule = Self::every(frequency(freq)?);
        for (name, value) in parts {
            rule.set(name, value)?;
        }
        check::fits_together(&rule)?;
        Ok(rule)
    }

    fn every(freq: Frequency) -> Self {
        Self {
            freq,
            interval: 1,
            count: None,
            until: None,
            week_start: Weekday::Mon,
            months: Vec::new(),
            weeks: Vec::new(),
            year_days: Vec::new(),
            month_days: Vec::new(),
            days: Vec::new(),
            hours: Vec::new(),
            minutes: Vec::new(),
            seconds: Vec::new(),
            positions: Vec::new(),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        match name {
            "FREQ" => {}
            "INTERVAL" => self.interval = number(name, value, 1..=usize::from(u16::MAX))?,
            "COUNT" => self.count = Some(number(name, value, 1..=MOST)?),
            "UNTIL" => self.until = Some(until(value)?),
            "WKST" => self.week_start = weekday(name, value)?,
            "BYMONTH" => self.months = list(name, value, 1, 12, false)?,
            "BYWEEKNO" => self.weeks = list(name, value, 1, 53, true)?,
            "BYYEARDAY" => self.year_days = list(name, value, 1, 366, true)?,
            "BYMONTHDAY" => self.month_days = list(name, value, 1, 31, true)?,
            "BYDAY" => self.days = days(value)?,
            "BYHOUR" => self.hours = list(name, value, 0, 23, false)?,
            "BYMINUTE" => self.minutes = list(name, value, 0, 59, false)?,
            "BYSECOND" => self.seconds = list(name, value, 0, 59, false)?,
            "BYSETPOS" => self.positions = list(name, value, 1, 366, true)?,
            _ => {
                return Err(Problem::rule(format!(
                    "{} is no part that a rule may have: RFC 5545, section 3.3.10, lists them",
                    shown(name)
                )));
            }
        }
        Ok(())
    }

    /// True for what counts in hours, minutes or seconds.
    pub(super) fn is_sub_daily(&self) -> bool {
        self.freq >= Frequency::Hourly
    }

    /// True when a part says which days a period has, so that none is taken from the start.
    pub(super) fn names_days(&self) -> bool {
        !(self.year_days.is_empty() && self.month_days.is_empty() && self.days.is_empty())
    }

    /// Without a start, a rule that says the hour means the full hour, not the second at which it was written.
    pub(super) fn means_whole_times(&mut self) {
        if !self.hours.is_empty() && self.minutes.is_empty() && self.freq <= Frequency::Hourly {
            self.minutes.push(0);
        }
        let says_more = !(self.hours.is_empty() && self.minutes.is_empty());
        if says_more && self.seconds.is_empty() && self.freq <= Frequency::Minutely {
            self.seconds.push(0);
        }
    }

    /// True when any part chooses among the occurrences.
    pub(super) fn has_by_parts(&self) -> bool {
        let lists = [&self.months, &self.weeks, &self.hours, &self.minutes, &self.seconds, &self.positions];
        self.names_days() || lists.iter().any(|list| !list.is_empty())
    }
}

/// The rule's one line. What else a calendar file has beside a rule is refused, not passed over.
fn only_line(text: &str) -> Result<&str, Problem> {
    let text = text.trim();
    if text.len() > LONGEST {
        return Err(Problem::rule(format!("the rule has {} bytes: {LONGEST} are the most", text.len())));
    }
    for line in text.lines() {
        let name: String = line.trim().chars().take_while(char::is_ascii_alphabetic).collect();
        let fix = match name.to_ascii_uppercase().as_str() {
            "DTSTART" => "write the start in starts_at and the zone in time_zone",
            "EXDATE" | "EXRULE" => "leave out dates by a narrower rule, or by two schedules",
            "RDATE" => "make a schedule without a rule for each further date",
            _ => continue,
        };
        return Err(Problem::rule(format!("{name} is not understood: {fix}")));
    }
    let rule = match text.get(..6) {
        Some(start) if start.eq_ignore_ascii_case("RRULE:") => &text[6..],
        _ => text,
    };
    if rule.contains(['\n', '\r']) {
        return Err(Problem::rule("the text has several lines: a schedule has one rule, in one line"));
    }
    Ok(rule)
}

fn frequency(value: &str) -> Result<Frequency, Problem> {
    value.parse().map_err(|_| {
        Problem::rule(format!(
            "FREQ={}: it must be YEARLY, MONTHLY, WEEKLY, DAILY, HOURLY, MINUTELY or SECONDLY",
            shown(value)
        ))
    })
}

fn number<T: TryFrom<usize>>(name: &str, value: &str, range: std::ops::RangeInclusive<usize>) -> Result<T, Problem> {
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { value.parse().ok().filter(|number| range.contains(number)) } else { None };
    number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
        Problem::rule(format!("{name}={}: it must be a number from {} to {}", shown(value), range.start(), range.end()))
    })
}

fn list(name: &str, value: &str, least: i32, most: i32, signed: bool) -> Result<Vec<i32>, Problem> {
    let mut numbers = Vec::new();
    for item in value.split(',') {
        let number = signed_number(item).filter(|number| {
            let size = if signed { number.abs() } else { *number };
            (least..=most).contains(&size)
        });
        let Some(number) = number else {
            let from_the_end =
                if signed { format!(", or -{most} to -{least} counted from the end") } else { String::new() };
            return Err(Problem::rule(format!("{name}={}: it must be {least} to {most}{from_the_end}", shown(item))));
        };
        numbers.push(number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// An optional sign and one to three digits.
fn signed_number(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let right = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    if right { text.parse().ok() } else { None }
}

fn weekday(name: &str, value: &str) -> Result<Weekday, Problem> {
    Ok(match value {
        "MO" => Weekday::Mon,
        "TU" => Weekday::Tue,
        "WE" => Weekday::Wed,
        "TH" => Weekday::Thu,
        "FR" => Weekday::Fri,
        "SA" => Weekday::Sat,
        "SU" => Weekday::Sun,
        _ => {
            return Err(Problem::rule(format!("{name}={}: a day must be MO, TU, WE, TH, FR, SA or SU", shown(value))));
        }
    })
}

fn days(value: &str) -> Result<Vec<NWeekday>, Problem> {
    let mut days = Vec::new();
    for item in value.split(',') {
        let at = item.len().saturating_sub(2);
        let (number, name) = item.split_at_checked(at).unwrap_or(("", item));
        let day = weekday("BYDAY", name)?;
        days.push(match number {
            "" => NWeekday::Every(day),
            _ => match signed_number(number).and_then(|number| i16::try_from(number).ok()) {
                Some(number) if number != 0 && number.abs() <= 53 => NWeekday::Nth(number, day),
                _ => {
                    return Err(Problem::rule(format!(
                        "BYDAY={}: the number before the day must be 1 to 53, or -53 to -1 counted from the end",
                        shown(item)
                    )));
                }
            },
        });
    }
    days.sort_unstable();
    days.dedup();
    Ok(days)
}

fn until(value: &str) -> Result<Until, Problem> {
    let read = |text: &str, form: &str| NaiveDateTime::parse_from_str(text, form).ok();
    let digits = |from: usize, to: usize| value.as_bytes()[from..to].iter().all(u8::is_ascii_digit);
    let found = match value.len() {
        8 if digits(0, 8) => NaiveDate::parse_from_str(value, "%Y%m%d").ok().map(Until::Day),
        15 if digits(0, 8) && digits(9, 15) => read(value, "%Y%m%dT%H%M%S").map(Until::Local),
        16 if digits(0, 8) && digits(9, 15) => read(value, "%Y%m%dT%H%M%SZ").map(Until::Utc),
        _ => None,
    };
    found.ok_or_else(|| {
        Problem::rule(format!(
            "UNTIL={}: it must be a date (20261231), a local time (20261231T180000) or an instant (20261231T180000Z)",
            shown(value)
        ))
    })
}
