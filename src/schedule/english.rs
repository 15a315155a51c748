//! The common rules in plain English, so that who wrote one sees what it means. Of others nothing is said: half a
//! description would be a wrong one.

use chrono::{Datelike as _, NaiveDateTime, NaiveTime, Timelike as _, Weekday};
use rrule::Frequency;

use super::recurrence::{Recurrence, When};
use super::rule::{Rule, Until};
use super::zone;

mod days;

/// More times of a day than these are not listed.
const MOST_TIMES: usize = 6;

/// What a schedule says about when, for example "every first Monday at 09:00"; none when there are no common words for it,
/// or it cannot be planned.
#[must_use]
pub fn english(when: &When<'_>) -> Option<String> {
    Recurrence::new(when).ok()?;
    let zone = zone::parse(when.time_zone).ok()?;
    let start = when.starts_at.unwrap_or(when.changed_at).unix_micros().div_euclid(1_000_000);
    let start = zone::local(zone, start);
    let Some(text) = when.rule else {
        return Some(format!("once, on {} at {}", start.format("%-d %B %Y"), clock(start.time())));
    };
    let mut rule = Rule::parse(text).ok()?;
    if when.starts_at.is_none() {
        rule.means_whole_times();
    }
    let words = if rule.is_sub_daily() { often(&rule)? } else { by_days(&rule, start)? };
    Some(format!("{words}{}", end(&rule)))
}

/// "every 10 minutes".
fn often(rule: &Rule) -> Option<String> {
    let unit = match rule.freq {
        Frequency::Hourly => "hour",
        Frequency::Minutely => "minute",
        _ => "second",
    };
    let mut plain = rule.clone();
    plain.minutes.clear();
    let minute = match &rule.minutes[..] {
        [] => String::new(),
        [minute] if rule.freq == Frequency::Hourly => format!(" at minute {minute}"),
        _ => return None,
    };
    // A second that was not chosen is no news.
    if plain.seconds == [0] && rule.freq == Frequency::Hourly && !rule.minutes.is_empty() {
        plain.seconds.clear();
    }
    (!plain.has_by_parts()).then(|| format!("{}{minute}", every(rule.interval, unit)))
}

fn by_days(rule: &Rule, start: NaiveDateTime) -> Option<String> {
    let days = days::words(rule, start.date())?;
    let months = if rule.freq == Frequency::Yearly || rule.months.is_empty() {
        String::new()
    } else {
        format!(" in {}", joined(rule.months.iter().filter_map(|month| month_name(*month)).collect()))
    };
    Some(format!("{days}{months} at {}", times(rule, start.time())?))
}

fn times(rule: &Rule, start: NaiveTime) -> Option<String> {
    let or = |list: &[i32], own: u32| if list.is_empty() { vec![own.cast_signed()] } else { list.to_vec() };
    let (minutes, seconds) = (or(&rule.minutes, start.minute()), or(&rule.seconds, start.second()));
    let mut times = Vec::new();
    for hour in or(&rule.hours, start.hour()) {
        for minute in &minutes {
            for second in &seconds {
                let part = |number: i32| number.unsigned_abs();
                times.push(clock(NaiveTime::from_hms_opt(part(hour), part(*minute), part(*second))?));
            }
        }
    }
    (times.len() <= MOST_TIMES).then(|| joined(times))
}

fn clock(time: NaiveTime) -> String {
    time.format(if time.second() == 0 { "%H:%M" } else { "%H:%M:%S" }).to_string()
}

/// "every day", "every other day", "every 3 days".
fn every(interval: u16, unit: &str) -> String {
    match interval {
        1 => format!("every {unit}"),
        2 if unit.len() > 2 && ["day", "week", "month", "year"].contains(&unit) => format!("every other {unit}"),
        number => format!("every {number} {unit}s"),
    }
}

fn end(rule: &Rule) -> String {
    match (rule.count, rule.until) {
        (Some(1), _) => ", once".to_owned(),
        (Some(count), _) => format!(", {count} times"),
        (_, Some(Until::Day(day))) => format!(", until {}", day.format("%-d %B %Y")),
        (_, Some(Until::Local(at))) => format!(", until {} {}", at.format("%-d %B %Y"), clock(at.time())),
        (_, Some(Until::Utc(at))) => format!(", until {} {} UTC", at.format("%-d %B %Y"), clock(at.time())),
        _ => String::new(),
    }
}

/// "a", "a and b", "a, b and c".
fn joined(mut words: Vec<String>) -> String {
    let last = words.pop().unwrap_or_default();
    if words.is_empty() { last } else { format!("{} and {last}", words.join(", ")) }
}

fn month_name(month: i32) -> Option<String> {
    Some(chrono::Month::try_from(u8::try_from(month).ok()?).ok()?.name().to_owned())
}

fn day_name(day: Weekday) -> &'static str {
    match day {
        Weekday::Mon => "Monday",
        Weekday::Tue => "Tuesday",
        Weekday::Wed => "Wednesday",
        Weekday::Thu => "Thursday",
        Weekday::Fri => "Friday",
        Weekday::Sat => "Saturday",
        Weekday::Sun => "Sunday",
    }
}

/// A day of the month of a start, for rules that take it from there.
fn day_of(start: chrono::NaiveDate) -> i32 {
    start.day().cast_signed()
}
