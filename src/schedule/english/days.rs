//! The days of a rule in words.

use chrono::{Datelike as _, NaiveDate, Weekday};
use rrule::{Frequency, NWeekday};

use super::{day_name, day_of, every, joined, month_name};
use crate::schedule::rule::Rule;

/// "every other day", "on weekdays", "every first Monday", "on the last day of every month", "every year on 1 May".
pub(super) fn words(rule: &Rule, start: NaiveDate) -> Option<String> {
    if !(rule.weeks.is_empty() && rule.year_days.is_empty()) {
        return None;
    }
    if !rule.positions.is_empty() {
        return positioned(rule);
    }
    let both = !(rule.days.is_empty() || rule.month_days.is_empty());
    match rule.freq {
        _ if both => None,
        Frequency::Daily if !rule.month_days.is_empty() => None,
        Frequency::Daily if rule.days.is_empty() => Some(every(rule.interval, "day")),
        Frequency::Daily => (rule.interval == 1).then(|| weekly(1, &plain(rule)?))?,
        Frequency::Weekly if rule.days.is_empty() => weekly(rule.interval, &[start.weekday()]),
        Frequency::Weekly => weekly(rule.interval, &plain(rule)?),
        Frequency::Monthly => monthly(rule, start),
        Frequency::Yearly => yearly(rule, start),
        _ => None,
    }
}

/// The days without numbers; none when one has a number.
fn plain(rule: &Rule) -> Option<Vec<Weekday>> {
    let day = |day: &NWeekday| if let NWeekday::Every(day) = day { Some(*day) } else { None };
    rule.days.iter().map(day).collect()
}

/// "first Monday" of each numbered day; none when one has no number.
fn numbered(rule: &Rule) -> Option<String> {
    let word = |day: &NWeekday| match day {
        NWeekday::Nth(number, day) => Some(format!("{} {}", nth(i32::from(*number))?, day_name(*day))),
        NWeekday::Every(_) => None,
    };
    Some(joined(rule.days.iter().map(word).collect::<Option<Vec<_>>>()?))
}

fn weekly(interval: u16, days: &[Weekday]) -> Option<String> {
    let group = match group(days) {
        Some(group) if interval == 1 => return Some(group.to_owned()),
        Some(_) if days.len() == 7 => return None,
        Some(group) => group.to_owned(),
        None => {
            let names = joined(days.iter().map(|day| day_name(*day).to_owned()).collect());
            if interval == 1 {
                return Some(format!("every {names}"));
            }
            format!("on {names}")
        }
    };
    Some(format!("{} {group}", every(interval, "week")))
}

/// The words for the days of work, those of rest, and all.
fn group(days: &[Weekday]) -> Option<&'static str> {
    let has = |day: Weekday| days.contains(&day);
    let rest = [Weekday::Sat, Weekday::Sun];
    let work = [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri];
    match (work.into_iter().filter(|day| has(*day)).count(), rest.into_iter().filter(|day| has(*day)).count()) {
        (5, 0) => Some("on weekdays"),
        (0, 2) => Some("on weekends"),
        (5, 2) => Some("every day"),
        _ => None,
    }
}

fn monthly(rule: &Rule, start: NaiveDate) -> Option<String> {
    if rule.days.is_empty() {
        let days = if rule.month_days.is_empty() { vec![day_of(start)] } else { rule.month_days.clone() };
        return Some(of_each_month(rule, &joined(days.iter().map(|day| day_words(*day)).collect::<Option<Vec<_>>>()?)));
    }
    match plain(rule) {
        Some(days) if rule.interval == 1 => weekly(1, &days),
        Some(_) => None,
        None if rule.interval == 1 && rule.months.is_empty() => Some(format!("every {}", numbered(rule)?)),
        None => Some(of_each_month(rule, &numbered(rule)?)),
    }
}

fn of_each_month(rule: &Rule, days: &str) -> String {
    if rule.interval == 1 && rule.months.is_empty() {
        format!("on the {days} of every month")
    } else if rule.interval == 1 {
        format!("on the {days}")
    } else {
        format!("{} on the {days}", every(rule.interval, "month"))
    }
}

fn yearly(rule: &Rule, start: NaiveDate) -> Option<String> {
    let own = [start.month().cast_signed()];
    let months = match &rule.months[..] {
        [] if !rule.names_days() => &own[..],
        months => months,
    };
    let [month] = months else { return None };
    let (month, each) = (month_name(*month)?, every(rule.interval, "year"));
    if !rule.days.is_empty() {
        return Some(format!("{each} on the {} of {month}", numbered(rule)?));
    }
    match &rule.month_days[..] {
        [] => Some(format!("{each} on {} {month}", start.day())),
        [day] if *day > 0 => Some(format!("{each} on {day} {month}")),
        [-1] => Some(format!("{each} on the last day of {month}")),
        _ => None,
    }
}

/// "on the last weekday of every month": the one use of positions that is common.
fn positioned(rule: &Rule) -> Option<String> {
    let [position] = rule.positions[..] else { return None };
    let times = [&rule.hours, &rule.minutes, &rule.seconds].iter().any(|list| list.len() > 1);
    if rule.freq != Frequency::Monthly || times || !rule.month_days.is_empty() {
        return None;
    }
    let days = plain(rule)?;
    let name = match &days[..] {
        [day] => day_name(*day),
        days => match group(days)? {
            "on weekdays" => "weekday",
            "on weekends" => "day of a weekend",
            _ => "day",
        },
    };
    Some(of_each_month(rule, &format!("{} {name}", nth(position)?)))
}

fn day_words(day: i32) -> Option<String> {
    if day < 0 {
        return Some(format!("{} day", nth(day)?));
    }
    let ending = match day {
        11..=13 => "th",
        _ if day % 10 == 1 => "st",
        _ if day % 10 == 2 => "nd",
        _ if day % 10 == 3 => "rd",
        _ => "th",
    };
    Some(format!("{day}{ending}"))
}

fn nth(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "first",
        2 => "second",
        3 => "third",
        4 => "fourth",
        5 => "fifth",
        -1 => "last",
        -2 => "second to last",
        -3 => "third to last",
        _ => return None,
    })
}
