//! When a schedule's actions are due, for people: in plain English, and by the clocks of the schedule's zone.

use chrono::{DateTime, SecondsFormat};
use chrono_tz::Tz;

use crate::jobs::timetable::ScheduleSummary;
use crate::position::Timestamp;
use crate::schedule::{When, english};

/// What a schedule says about when.
#[must_use]
pub fn when(schedule: &ScheduleSummary) -> When<'_> {
    When {
        rule: schedule.rule.as_deref(),
        time_zone: &schedule.time_zone,
        starts_at: schedule.starts_at,
        ends_at: schedule.ends_at,
        changed_at: schedule.changed_at,
    }
}

/// The same in English, or as it is written where there are no common words for it.
#[must_use]
pub fn words(schedule: &ScheduleSummary) -> String {
    english(&when(schedule)).unwrap_or_else(|| match (&schedule.rule, schedule.starts_at) {
        (Some(rule), _) => rule.clone(),
        (None, Some(at)) => format!("once, at {at}"),
        (None, None) => "-".to_owned(),
    })
}

/// What clocks show in a zone; none for a zone that is not known.
fn clocks(at: Timestamp, zone: &str) -> Option<DateTime<Tz>> {
    let zone: Tz = zone.parse().ok()?;
    let at = DateTime::from_timestamp_micros(at.unix_micros()).filter(|_| at.is_finite())?;
    Some(at.with_timezone(&zone))
}

/// The same for people, with the zone's name at that time.
#[must_use]
pub fn local(at: Timestamp, zone: &str) -> Option<String> {
    Some(clocks(at, zone)?.format("%a %Y-%m-%d %H:%M:%S %Z").to_string())
}

/// The same for programs, with the distance from UTC.
#[must_use]
pub fn rfc3339(at: Timestamp, zone: &str) -> Option<String> {
    Some(clocks(at, zone)?.to_rfc3339_opts(SecondsFormat::Secs, false))
}

/// In UTC, to the second: occurrences have no fractions.
#[must_use]
pub fn utc(at: Timestamp) -> String {
    at.to_string().replace(".000000Z", "Z")
}

/// What is to be said of a schedule's next occurrence, in one word: `planned`, `computing`, `ended`, `paused` or `problem`.
#[must_use]
pub fn state(schedule: &ScheduleSummary) -> &'static str {
    match schedule.next_at {
        _ if schedule.problem.is_some() => "problem",
        _ if !schedule.enabled => "paused",
        None => "computing",
        Some(Timestamp::INFINITY) => "ended",
        Some(_) => "planned",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_of_a_zone_are_told_with_the_time_that_is_in_force() {
        let at = |text| Timestamp::parse_rfc3339(text).expect("valid");
        let berlin = |text| local(at(text), "Europe/Berlin").expect("known");
        assert_eq!(berlin("2026-03-29T00:59:59Z"), "Sun 2026-03-29 01:59:59 CET");
        assert_eq!(berlin("2026-03-29T01:00:00Z"), "Sun 2026-03-29 03:00:00 CEST");
        let told = rfc3339(at("2026-03-29T01:00:00Z"), "Europe/Berlin");
        assert_eq!(told.as_deref(), Some("2026-03-29T03:00:00+02:00"));
        assert_eq!(local(at("2026-03-29T01:00:00Z"), "Berlin"), None);
        assert_eq!(local(Timestamp::INFINITY, "UTC"), None);
        assert_eq!(utc(at("2026-03-29T01:00:00Z")), "2026-03-29T01:00:00Z");
    }
}
