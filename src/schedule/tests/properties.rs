//! Rules made at random: none drifts, none hangs, none panics, and all agree with the crate behind this module.

use std::collections::BTreeSet;

use chrono::{DateTime, Datelike as _, TimeDelta, Timelike as _, Utc, Weekday};
use proptest::prelude::*;

use super::*;

/// Lists of a part's values, now and then none.
fn part(name: &'static str, values: std::ops::RangeInclusive<i32>, signed: bool) -> impl Strategy<Value = String> {
    let value =
        (values, any::<bool>()).prop_map(move |(value, negative)| if signed && negative { -value } else { value });
    prop_oneof![
        2 => Just(String::new()),
        1 => proptest::collection::btree_set(value, 1..4).prop_map(move |list: BTreeSet<i32>| {
            let list: Vec<String> = list.iter().map(ToString::to_string).collect();
            format!(";{name}={}", list.join(","))
        }),
    ]
}

fn days(numbered: bool) -> impl Strategy<Value = String> {
    let names = proptest::sample::subsequence(vec!["MO", "TU", "WE", "TH", "FR", "SA", "SU"], 1..4);
    let number =
        if numbered { proptest::sample::select(vec!["", "1", "2", "-1", "-2"]).boxed() } else { Just("").boxed() };
    prop_oneof![
        2 => Just(String::new()),
        1 => (names, number).prop_map(|(names, number)| {
            let names: Vec<String> = names.iter().map(|name| format!("{number}{name}")).collect();
            format!(";BYDAY={}", names.join(","))
        }),
    ]
}

/// A rule whose parts may stand together.
fn rules() -> impl Strategy<Value = String> {
    let times =
        || (part("BYHOUR", 0..=23, false), part("BYMINUTE", 0..=59, false)).prop_map(|(hour, minute)| hour + &minute);
    let head = |freq: &'static str, most: u16| {
        (1..=most, proptest::sample::select(vec!["MO", "SU", "WE"]))
            .prop_map(move |(interval, week)| format!("FREQ={freq};INTERVAL={interval};WKST={week}"))
    };
    let months = || part("BYMONTH", 1..=12, false);
    let month_days = || part("BYMONTHDAY", 1..=31, true);
    prop_oneof![
        (head("YEARLY", 3), months(), month_days(), days(true), times()).prop_map(|(a, b, c, d, e)| a
            + &b
            + &c
            + &d
            + &e),
        (head("YEARLY", 3), part("BYYEARDAY", 1..=366, true), times()).prop_map(|(a, b, c)| a + &b + &c),
        (head("YEARLY", 3), part("BYWEEKNO", 1..=53, true), times()).prop_map(|(a, b, c)| if b.is_empty() {
            a + &c
        } else {
            a + &b + ";BYDAY=MO,SA" + &c
        }),
        (head("MONTHLY", 7), months(), month_days(), days(true), times()).prop_map(|(a, b, c, d, e)| a
            + &b
            + &c
            + &d
            + &e),
        (head("WEEKLY", 5), months(), days(false), times()).prop_map(|(a, b, c, d)| a + &b + &c + &d),
        (head("DAILY", 10), months(), month_days(), days(false), times()).prop_map(|(a, b, c, d, e)| a
            + &b
            + &c
            + &d
            + &e),
        (head("HOURLY", 30), months(), days(false), times()).prop_map(|(a, b, c, d)| a + &b + &c + &d),
        (head("MINUTELY", 90), days(false), times()).prop_map(|(a, b, c)| a + &b + &c),
    ]
}

fn positioned() -> impl Strategy<Value = String> {
    (rules(), part("BYSETPOS", 1..=4, true))
        .prop_map(|(rule, position)| if rule.contains(";BY") { rule + &position } else { rule })
}

/// What the crate finds from the start, without any of this module. It is asked for days and longer: of shorter periods it
/// leaves some out and invents others, for example by FREQ=MINUTELY;INTERVAL=7;BYDAY=MO;BYMINUTE=0.
fn by_days(text: &str, start: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let rule: rrule::RRule<rrule::Unvalidated> = text.parse().expect(text);
    // Of the first week the crate takes positions among the days from the start on; the week's are meant.
    let partial = text.contains("FREQ=WEEKLY") && text.contains("BYSETPOS") && text.contains("BYDAY");
    let begins = [("WKST=MO", Weekday::Mon), ("WKST=SU", Weekday::Sun), ("WKST=WE", Weekday::Wed)];
    let begins = begins.into_iter().find(|(part, _)| text.contains(part)).expect("each rule has one").1;
    let first_day = start.date_naive().week(begins).first_day();
    let begin = if partial { first_day.and_time(start.time()).and_utc() } else { start };
    let set = rule.build(begin.with_timezone(&rrule::Tz::UTC)).expect(text);
    let last = begin.with_timezone(&rrule::Tz::UTC) + TimeDelta::days(200 * 365);
    let found = set.before(last).all(12).dates.into_iter().map(|at| at.with_timezone(&Utc));
    found.filter(|at| *at >= start).take(8).collect()
}

/// What a walk over each period finds that looks at what clocks show, for rules without positions.
fn by_clock(text: &str, start: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let part = |name: &str| text.split(';').find_map(|part| part.strip_prefix(name)).unwrap_or_default();
    let numbers = |name: &str| -> Vec<u32> { part(name).split(',').filter_map(|item| item.parse().ok()).collect() };
    let names = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];
    let days: Vec<u32> = (0..7).filter(|day| part("BYDAY=").contains(names[*day as usize])).collect();
    let (months, hours, mut minutes) = (numbers("BYMONTH="), numbers("BYHOUR="), numbers("BYMINUTE="));
    let hourly = text.starts_with("FREQ=HOURLY");
    let length = i64::from(numbers("INTERVAL=")[0]) * if hourly { 60 } else { 1 };
    if hourly && minutes.is_empty() {
        minutes.push(start.minute());
    }
    let origin = if hourly { start - TimeDelta::minutes(i64::from(start.minute())) } else { start };
    let has = |list: &[u32], value: u32| list.is_empty() || list.contains(&value);
    let mut found = Vec::new();
    for period in 0..5_000 {
        let period = origin + TimeDelta::minutes(period * length);
        for minute in if hourly { &minutes[..] } else { &[0] } {
            let at = period + TimeDelta::minutes(i64::from(*minute));
            let day = has(&days, at.weekday().num_days_from_monday()) && has(&months, at.month());
            if day && has(&hours, at.hour()) && has(&minutes, at.minute()) && at >= start {
                found.push(at);
            }
        }
        if found.len() >= 8 {
            break;
        }
    }
    found.truncate(8);
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn going_from_one_occurrence_to_the_next_is_walking_from_the_start(text in positioned(), second in 0..1_000_000_000_i64) {
        let start = DateTime::from_timestamp(946_684_800 + second, 0).expect("an instant");
        // Walking what never happens takes long; that is tested apart.
        let when = rule(&text, "UTC", "2000-01-01T00:00:00Z");
        let when = When { starts_at: Some(at(&start.to_rfc3339())), ..when };
        let Ok(recurrence) = Recurrence::new(&when) else { return Ok(()) };
        let mut after = Timestamp::NEG_INFINITY;
        let short = text.starts_with("FREQ=HOURLY") || text.starts_with("FREQ=MINUTELY");
        if short && text.contains("BYSETPOS") {
            return Ok(());
        }
        for expected in if short { by_clock(&text, start) } else { by_days(&text, start) } {
            let Ok(Some(next)) = recurrence.next(after) else {
                prop_assert!(expected.to_rfc3339().as_str() > "2200", "{} misses {}", text, expected);
                break;
            };
            prop_assert_eq!(next.unix_micros(), expected.timestamp_micros(), "{} from {} after {}", text, start, after);
            after = next;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn the_newest_and_the_count_are_those_of_a_walk(text in rules(), from in 0..40_000_000_i64, span in 0..40_000_000_i64) {
        let instant = |second: i64| Timestamp::from_unix_micros((1_767_225_600 + second) * 1_000_000);
        let Ok(recurrence) = Recurrence::new(&rule(&text, "UTC", "2026-01-01T00:00:00Z")) else { return Ok(()) };
        let (after, until) = (instant(from), instant(from + span));
        let walked = recurrence.following(after, 300).unwrap_or_default();
        let walked: Vec<Timestamp> = walked.iter().map(|found| found.at).filter(|at| *at <= until).collect();
        let newest = recurrence.newest(after, until, 300).expect("a search");
        prop_assert_eq!(newest.map_or(0, |(_, count)| count), walked.len(), "{}", text);
        if walked.len() < 300 {
            prop_assert_eq!(newest.map(|(at, _)| at), walked.last().copied(), "{}", text);
        } else if let Some((newest, _)) = newest {
            let then = recurrence.next(newest).ok().flatten();
            prop_assert!(newest <= until && then.is_none_or(|then| then > until), "{}", text);
        }
        prop_assert_eq!(recurrence.newest(after, until, 2).expect("a search").map(|(at, _)| at), newest.map(|(at, _)| at));
    }

    #[test]
    fn in_every_zone_occurrences_strictly_increase(text in positioned(), zone in zones(), second in 0..4_000_000_000_i64) {
        let start = Timestamp::from_unix_micros(second * 1_000_000);
        let when = When { starts_at: Some(start), ..rule(&text, zone, "2026-01-01T00:00:00Z") };
        let Ok(recurrence) = Recurrence::new(&when) else { return Ok(()) };
        let walked = recurrence.following(Timestamp::NEG_INFINITY, 20).unwrap_or_default();
        let mut after = Timestamp::NEG_INFINITY;
        for found in walked {
            prop_assert!(found.at > after && found.at >= start);
            prop_assert_eq!(recurrence.next(after), Ok(Some(found.at)), "{} in {}", text, zone);
            after = found.at;
        }
    }
}

fn zones() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(vec![
        "Europe/Berlin",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "America/Havana",
        "Asia/Tehran",
    ])
}

/// Text of the letters of rules, in no order, and rules with some letters changed.
fn mutated() -> impl Strategy<Value = String> {
    let change =
        (any::<prop::sample::Index>(), proptest::sample::select(b"0123456789-+=;,:BYMONTHDAYZ\n\xc3 ".to_vec()));
    let changed = (positioned(), proptest::collection::vec(change, 1..6)).prop_map(|(text, changes)| {
        let mut bytes = text.into_bytes();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        String::from_utf8_lossy(&bytes).into_owned()
    });
    prop_oneof![
        1 => any::<String>(),
        2 => "(RRULE:)?FREQ=(YEARLY|MONTHLY|WEEKLY|DAILY|HOURLY|MINUTELY|SECONDLY)(;(INTERVAL|COUNT|UNTIL|WKST|BYDAY|BYHOUR|BYSETPOS)=[-+0-9A-Z,]{0,12}){0,4}",
        4 => changed,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Steps are counted in the search itself; what is asserted here is that every text has an answer.
    #[test]
    fn no_text_panics_or_runs_away(text in mutated(), zone in zones(), second in -3_000_000_000..8_000_000_000_i64) {
        let at = Timestamp::from_unix_micros(second * 1_000_000);
        for starts_at in [None, Some(at)] {
            let when = When { rule: Some(&text), time_zone: zone, starts_at, ends_at: None, changed_at: at };
            let _ = english(&when);
            match Recurrence::new(&when) {
                Ok(recurrence) => {
                    if let Ok(Some(next)) = recurrence.next(at) {
                        prop_assert!(next > at);
                    }
                    let later = Timestamp::from_unix_micros((second + 100_000_000) * 1_000_000);
                    if let Ok(Some((newest, count))) = recurrence.newest(at, later, 50) {
                        prop_assert!(newest > at && newest <= later && (1..=50).contains(&count));
                    }
                }
                Err(problem) => {
                    prop_assert!(problem.message.lines().count() == 1 && problem.message.len() < 400, "{:?}", problem);
                    prop_assert!(!problem.message.chars().any(char::is_control), "{:?}", problem);
                }
            }
        }
    }
}
