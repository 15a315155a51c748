//! What the clocks of real zones do to a rule, over two changes in each of three zones, and in Apia, which skipped a day.

use super::*;

#[track_caller]
fn utc(text: &str, zone: &str, start: &str, expected: &[&str]) {
    assert_eq!(first(&rule(text, zone, start), expected.len()), expected, "{text} in {zone}");
}

#[test]
fn a_daily_hour_keeps_its_local_time_over_both_changes() {
    let daily = "FREQ=DAILY";
    utc(
        daily,
        "Europe/Berlin",
        "2026-03-28T08:00:00Z",
        &["2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"],
    );
    utc(
        daily,
        "Europe/Berlin",
        "2026-10-24T07:00:00Z",
        &["2026-10-24T07:00:00Z", "2026-10-25T08:00:00Z", "2026-10-26T08:00:00Z"],
    );
    utc(daily, "America/New_York", "2026-03-07T14:00:00Z", &["2026-03-07T14:00:00Z", "2026-03-08T13:00:00Z"]);
    utc(daily, "America/New_York", "2026-10-31T13:00:00Z", &["2026-10-31T13:00:00Z", "2026-11-01T14:00:00Z"]);
    // +11:00 in summer, +10:30 in winter.
    utc(daily, "Australia/Lord_Howe", "2026-04-03T22:00:00Z", &["2026-04-03T22:00:00Z", "2026-04-04T22:30:00Z"]);
    utc(daily, "Australia/Lord_Howe", "2026-10-02T22:30:00Z", &["2026-10-02T22:30:00Z", "2026-10-03T22:00:00Z"]);
}

#[test]
fn a_local_time_that_does_not_exist_is_taken_with_the_offset_before_the_gap() {
    // 02:30 is 03:30 on the day, and 02:30 again on the next.
    utc(
        "FREQ=DAILY",
        "Europe/Berlin",
        "2026-03-28T01:30:00Z",
        &["2026-03-28T01:30:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"],
    );
    utc(
        "FREQ=DAILY",
        "America/New_York",
        "2026-03-07T07:30:00Z",
        &["2026-03-07T07:30:00Z", "2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z"],
    );
    // 02:15 is 02:45: the gap is half an hour.
    utc(
        "FREQ=DAILY",
        "Australia/Lord_Howe",
        "2026-10-02T15:45:00Z",
        &["2026-10-02T15:45:00Z", "2026-10-03T15:45:00Z", "2026-10-04T15:15:00Z"],
    );
}

#[test]
fn of_a_local_time_that_exists_twice_the_first_is_taken() {
    utc(
        "FREQ=DAILY",
        "Europe/Berlin",
        "2026-10-24T00:30:00Z",
        &["2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"],
    );
    utc(
        "FREQ=DAILY",
        "America/New_York",
        "2026-10-31T05:30:00Z",
        &["2026-10-31T05:30:00Z", "2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"],
    );
    utc(
        "FREQ=DAILY",
        "Australia/Lord_Howe",
        "2026-04-03T14:45:00Z",
        &["2026-04-03T14:45:00Z", "2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
    );
}

#[test]
fn times_around_a_gap_stay_in_the_order_of_their_instants_and_equal_instants_count_once() {
    // Of 02:30, 03:00 and 03:30 the first is at 03:30, with the third.
    let text = "FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0,30";
    utc(
        text,
        "Europe/Berlin",
        "2026-03-28T23:30:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:00:00Z"],
    );
    let count = When {
        changed_at: at("2026-03-28T23:00:00Z"),
        ..rule("FREQ=DAILY;COUNT=3;BYHOUR=2,3;BYMINUTE=0,30", "Europe/Berlin", "2026-03-28T23:30:00Z")
    };
    assert_eq!(first(&count, 9).len(), 3);
}

#[test]
fn a_search_that_begins_within_a_gaps_shadow_finds_what_the_gap_moved() {
    let text = "FREQ=DAILY;BYHOUR=2;BYMINUTE=30";
    let recurrence = Recurrence::new(&rule(text, "Europe/Berlin", "2026-03-01T00:00:00Z")).expect("a rule");
    // At 03:15 local time, the 02:30 of this day is still to come.
    let next = recurrence.next(at("2026-03-29T01:15:00Z")).expect("a search").expect("a next one");
    assert_eq!(next, at("2026-03-29T01:30:00Z"));
}

#[test]
fn a_day_that_a_zone_skipped_falls_on_the_next_one_and_counts_once() {
    // Apia had no 30 December 2011: 09:00 on the 29th at -10, then 09:00 on the 31st at +14.
    utc(
        "FREQ=DAILY",
        "Pacific/Apia",
        "2011-12-28T19:00:00Z",
        &["2011-12-28T19:00:00Z", "2011-12-29T19:00:00Z", "2011-12-30T19:00:00Z", "2011-12-31T19:00:00Z"],
    );
    // Of Friday alone, the skipped one is 24 hours later: Saturday at nine.
    utc(
        "FREQ=WEEKLY;BYDAY=FR",
        "Pacific/Apia",
        "2011-12-24T19:00:00Z",
        &["2011-12-30T19:00:00Z", "2012-01-05T19:00:00Z"],
    );
}

#[test]
fn hours_and_minutes_count_in_utc_whatever_the_zone() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"] {
        for start in ["2026-03-29T00:00:00Z", "2026-10-25T00:00:00Z", "2026-04-04T13:00:00Z", "2026-03-08T05:00:00Z"] {
            let found = first(&rule("FREQ=MINUTELY;INTERVAL=30", zone, start), 12);
            let expected: Vec<Timestamp> =
                (0..12).map(|n| at(start).plus(std::time::Duration::from_secs(n * 1_800))).collect();
            assert_eq!(found.iter().map(|text| at(text)).collect::<Vec<_>>(), expected, "{zone}");
        }
    }
}

#[test]
fn what_the_clocks_did_is_told() {
    let told = |text: &str, start: &str| {
        let recurrence = Recurrence::new(&rule(text, "Europe/Berlin", start)).expect("a rule");
        recurrence
            .following(Timestamp::NEG_INFINITY, 2)
            .expect("a search")
            .iter()
            .map(|found| found.wall)
            .collect::<Vec<_>>()
    };
    let [Wall::Plain, Wall::Skipped(local)] = told("FREQ=DAILY", "2026-03-28T01:30:00Z")[..] else { panic!("a gap") };
    assert_eq!(local.to_string(), "2026-03-29 02:30:00");
    assert_eq!(told("FREQ=DAILY", "2026-10-24T00:30:00Z"), [Wall::Plain, Wall::FirstOfTwo]);
}

#[test]
fn forty_years_ahead_the_clocks_still_change() {
    let recurrence =
        Recurrence::new(&rule("FREQ=MONTHLY;BYDAY=1MO", "Europe/Berlin", "2026-01-05T08:00:00Z")).expect("a rule");
    let next = |after: &str| recurrence.next(at(after)).expect("a search").expect("a next one");
    // The first Mondays of January and July 2066.
    assert_eq!(next("2066-01-01T00:00:00Z"), at("2066-01-04T08:00:00Z"));
    assert_eq!(next("2066-07-01T00:00:00Z"), at("2066-07-05T07:00:00Z"));
}

#[test]
fn the_compiled_in_rules_of_zones_go_to_2099() {
    let summer = |start: &str| {
        first(&rule("FREQ=YEARLY;BYMONTH=7;BYMONTHDAY=1;BYHOUR=9;BYMINUTE=0;BYSECOND=0", "Europe/Berlin", start), 1)
    };
    assert_eq!(summer("2099-01-01T00:00:00Z"), ["2099-07-01T07:00:00Z"]);
    assert_eq!(summer("2101-01-01T00:00:00Z"), ["2101-07-01T08:00:00Z"]);
}
