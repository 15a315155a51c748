//! What is refused says the part, its value and the fix, in one line.

use super::*;

#[track_caller]
fn refused(text: &str, code: &str, words: &str) {
    let problem = Recurrence::new(&rule(text, "Europe/Berlin", "2026-12-01T08:00:00Z")).expect_err(text);
    assert_eq!(problem.code, code, "{text}: {problem}");
    assert!(problem.message.contains(words), "{text}: {problem}");
    assert_eq!(problem.message.lines().count(), 1, "{problem}");
}

#[test]
fn text_that_is_no_rule_is_refused_with_the_fix() {
    refused("", "rule", "NAME=VALUE");
    refused("daily", "rule", "NAME=VALUE");
    refused("FREQ=DAILY;", "rule", "NAME=VALUE");
    refused("BYHOUR=9", "rule", "FREQ is missing");
    refused("FREQ=FORTNIGHTLY", "rule", "FREQ=FORTNIGHTLY: it must be YEARLY");
    refused("FREQ=DAILY;FREQ=DAILY", "rule", "FREQ is given twice");
    refused("FREQ=DAILY;BYEASTER=0", "rule", "BYEASTER is no part");
    refused("FREQ=DAILY;\u{1b}[31m=ä", "rule", "\\u{1b}[31M is no part");
    refused(&format!("FREQ=DAILY;BYHOUR={}", "9,".repeat(2_000)), "rule", "2000 are the most");
}

#[test]
fn the_other_lines_of_a_calendar_file_are_refused_with_the_fix() {
    refused("DTSTART:20260101T090000\nRRULE:FREQ=DAILY", "rule", "write the start in starts_at");
    refused("RRULE:FREQ=DAILY\nEXDATE:20260101T090000", "rule", "two schedules");
    refused("FREQ=DAILY\r\nRDATE:20260101", "rule", "for each further date");
    refused("FREQ=DAILY\nFREQ=HOURLY", "rule", "several lines");
}

#[test]
fn values_out_of_their_range_are_refused_with_the_range() {
    refused("FREQ=DAILY;INTERVAL=0", "rule", "INTERVAL=0: it must be a number from 1 to 65535");
    refused("FREQ=DAILY;INTERVAL=-1", "rule", "INTERVAL=-1");
    refused("FREQ=DAILY;COUNT=10001", "rule", "from 1 to 10000");
    refused("FREQ=DAILY;BYHOUR=24", "rule", "BYHOUR=24: it must be 0 to 23");
    refused("FREQ=DAILY;BYHOUR=-1", "rule", "BYHOUR=-1");
    refused("FREQ=MONTHLY;BYMONTHDAY=0", "rule", "1 to 31, or -31 to -1");
    refused("FREQ=DAILY;BYSECOND=60", "rule", "0 to 59");
    refused("FREQ=WEEKLY;BYDAY=XX", "rule", "a day must be MO, TU");
    refused("FREQ=MONTHLY;BYDAY=0MO", "rule", "BYDAY=0MO");
    refused("FREQ=MONTHLY;BYDAY=6MO", "rule", "at most 5");
    refused("FREQ=MONTHLY;BYDAY=-6MO", "rule", "at most 5");
    refused("FREQ=YEARLY;BYDAY=-54MO", "rule", "-53 to -1");
    refused("FREQ=DAILY;UNTIL=soon", "rule", "UNTIL=SOON: it must be a date");
    refused("FREQ=DAILY;UNTIL=20260230", "rule", "UNTIL=20260230");
}

#[test]
fn parts_that_do_not_go_together_are_refused_with_the_fix() {
    refused("FREQ=DAILY;COUNT=2;UNTIL=20270101", "rule", "keep one");
    refused("FREQ=MONTHLY;BYWEEKNO=3", "rule", "BYWEEKNO is not allowed with FREQ=MONTHLY: use FREQ=YEARLY");
    refused("FREQ=DAILY;BYYEARDAY=3", "rule", "use FREQ=YEARLY");
    refused("FREQ=WEEKLY;BYMONTHDAY=3", "rule", "BYMONTHDAY is not allowed");
    refused("FREQ=WEEKLY;BYDAY=1MO", "rule", "leave out the number");
    refused("FREQ=MONTHLY;BYSETPOS=1", "rule", "add one, or leave it out");
    refused("FREQ=HOURLY;BYMINUTE=30", "rule", "time_zone is Europe/Berlin: write it as FREQ=DAILY");
}

#[test]
fn more_than_a_time_a_minute_by_lists_is_refused() {
    let all = |most: u32| (0..=most).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    let times = format!("FREQ=DAILY;BYHOUR={};BYMINUTE={}", all(23), all(59));
    assert!(Recurrence::new(&rule(&times, "UTC", "2026-12-01T08:00:00Z")).is_ok());
    refused(&format!("{times};BYSECOND=0,30"), "rule", "2880 times a day: 1440 are the most");
}

#[test]
fn a_zone_that_is_not_known_is_refused_with_one_that_is_like_it() {
    let problem = |zone| Recurrence::new(&rule("FREQ=DAILY", zone, "2026-12-01T08:00:00Z")).expect_err(zone);
    assert_eq!(problem("Berlin").message, "time_zone \"Berlin\" is not known: did you mean Europe/Berlin?");
    assert!(problem("america/new york").message.contains("America/New_York"));
    assert!(problem("Mars/Olympus\n").message.contains("an IANA name"));
    assert_eq!(problem("").code, "time_zone");
}

#[test]
fn a_start_that_is_no_date_is_refused() {
    let none = When { rule: None, starts_at: None, ..rule("", "UTC", "2026-12-01T08:00:00Z") };
    assert!(Recurrence::new(&none).expect_err("nothing").message.contains("write a rule, or the date"));
    let infinite = When { starts_at: Some(Timestamp::INFINITY), ..none };
    assert_eq!(Recurrence::new(&infinite).expect_err("infinite").code, "starts_at");
    refused_start("1899-12-31T23:59:59Z");
    refused_start("2201-01-01T00:00:00Z");
}

#[track_caller]
fn refused_start(start: &str) {
    let problem = Recurrence::new(&rule("FREQ=DAILY", "UTC", start)).expect_err(start);
    assert!(problem.message.contains("1900 to 2200"), "{problem}");
}

#[test]
fn a_rule_may_have_its_name_in_front_and_small_letters() {
    let found = first(&rule(" rrule:freq=weekly;byday=we \n", "UTC", "2026-12-01T08:00:00Z"), 1);
    assert_eq!(found, ["2026-12-02T08:00:00Z"]);
}
