//! No rule runs away: what never happens, or too rarely to be found, ends with a reason.

use super::*;

fn problem(text: &str, zone: &str) -> Problem {
    match Recurrence::new(&rule(text, zone, "2026-01-01T01:00:00Z")) {
        Err(problem) => problem,
        Ok(recurrence) => recurrence.next(at("2199-06-01T00:00:00Z")).expect_err(text),
    }
}

#[test]
fn what_never_happens_is_refused_by_every_frequency() {
    for text in [
        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=HOURLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=MINUTELY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=30",
        "FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31;COUNT=3",
        "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30;UNTIL=20270101",
        "FREQ=MONTHLY;BYDAY=MO;BYSETPOS=6",
        // Each day at one, and never at two.
        "FREQ=HOURLY;INTERVAL=24;BYHOUR=2",
    ] {
        let problem = problem(text, "UTC");
        assert_eq!(problem.code, "never", "{text}: {problem}");
        assert!(problem.message.contains("never occurs") && problem.message.contains(&text[..20]), "{problem}");
    }
}

#[test]
fn a_search_that_would_take_long_ends_with_the_reason() {
    // Each hour at its full minute, and never at the first.
    assert_eq!(problem("FREQ=MINUTELY;INTERVAL=60;BYMINUTE=1", "UTC").code, "cost");
    // Every odd second, and of these the even ones.
    let text = "FREQ=SECONDLY;INTERVAL=2;BYSECOND=1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,41";
    assert_eq!(problem(text, "UTC").code, "cost");
}

#[test]
fn what_lies_beyond_the_last_year_is_said_and_what_ended_is_not() {
    assert_eq!(problem("FREQ=YEARLY;INTERVAL=100", "UTC").code, "beyond");
    let ended = rule("FREQ=YEARLY;INTERVAL=100;UNTIL=21500101", "UTC", "2026-01-01T01:00:00Z");
    assert_eq!(first(&ended, 9), ["2026-01-01T01:00:00Z", "2126-01-01T01:00:00Z"]);
}

#[test]
fn every_instant_there_is_can_be_asked_for() {
    let edges = [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX].map(Timestamp::from_pg_micros);
    for (text, zone) in
        [(Some("FREQ=DAILY;BYHOUR=2"), "Pacific/Apia"), (Some("FREQ=SECONDLY"), "UTC"), (None, "Europe/Berlin")]
    {
        for starts_at in edges.map(Some).into_iter().chain([None]) {
            for ends_at in edges.map(Some).into_iter().chain([None]) {
                for changed_at in edges {
                    let when = When { rule: text, time_zone: zone, starts_at, ends_at, changed_at };
                    let _ = english(&when);
                    let Ok(recurrence) = Recurrence::new(&when) else { continue };
                    for after in edges {
                        if let Ok(Some(next)) = recurrence.next(after) {
                            assert!(next > after);
                        }
                        if let Ok(Some((newest, count))) = recurrence.newest(after, changed_at, 3) {
                            assert!(newest > after && newest <= changed_at && count <= 3);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_leap_day_that_is_a_monday_is_found_forty_years_ahead() {
    let leap = rule("FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "UTC", "2026-01-01T01:00:00Z");
    assert_eq!(first(&leap, 3), ["2044-02-29T01:00:00Z", "2072-02-29T01:00:00Z", "2112-02-29T01:00:00Z"]);
}
