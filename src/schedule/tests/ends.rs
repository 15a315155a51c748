//! Where a schedule begins and ends.

use super::*;

const BERLIN: &str = "Europe/Berlin";

#[test]
fn until_is_understood_in_its_three_forms() {
    // Nine in Berlin is eight in UTC.
    let last = |until: &str| {
        let text = format!("FREQ=DAILY;UNTIL={until}");
        first(&rule(&text, BERLIN, "2026-12-01T08:00:00Z"), 99).pop().expect("occurrences")
    };
    assert_eq!(last("20261203"), "2026-12-03T08:00:00Z", "a day counts to its end");
    assert_eq!(last("20261203T090000"), "2026-12-03T08:00:00Z", "a local time is the zone's, and included");
    assert_eq!(last("20261203T085959"), "2026-12-02T08:00:00Z");
    assert_eq!(last("20261203T080000Z"), "2026-12-03T08:00:00Z", "an instant is included");
    assert_eq!(last("20261203T075959Z"), "2026-12-02T08:00:00Z");
}

#[test]
fn count_counts_from_the_start_also_when_the_rule_was_edited_later() {
    let edited =
        When { changed_at: at("2026-12-02T12:00:00Z"), ..rule("FREQ=DAILY;COUNT=4", BERLIN, "2026-12-01T08:00:00Z") };
    assert_eq!(first(&edited, 9), ["2026-12-03T08:00:00Z", "2026-12-04T08:00:00Z"]);
}

#[test]
fn without_a_start_count_counts_from_the_first_occurrence_after_the_writing() {
    let written = When {
        starts_at: None,
        changed_at: at("2026-12-01T12:34:56.5Z"),
        ..rule("FREQ=HOURLY;COUNT=2", BERLIN, "2026-01-01T00:00:00Z")
    };
    assert_eq!(first(&written, 9), ["2026-12-01T13:34:56Z", "2026-12-01T14:34:56Z"]);
}

#[test]
fn without_a_start_a_rule_that_says_the_hour_means_the_full_hour() {
    let written = |text| When {
        starts_at: None,
        changed_at: at("2026-12-01T12:34:56.5Z"),
        ..rule(text, BERLIN, "2026-01-01T00:00:00Z")
    };
    assert_eq!(first(&written("FREQ=DAILY;BYHOUR=9"), 1), ["2026-12-02T08:00:00Z"]);
    assert_eq!(first(&written("FREQ=DAILY;BYHOUR=9;BYMINUTE=5"), 1), ["2026-12-02T08:05:00Z"]);
    assert_eq!(first(&written("FREQ=DAILY;BYMINUTE=5"), 1), ["2026-12-02T12:05:00Z"]);
    assert_eq!(first(&written("FREQ=DAILY"), 1), ["2026-12-02T12:34:56Z"]);
}

#[test]
fn a_rule_has_no_past_before_it_was_written_and_none_before_its_start() {
    let text = "FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0";
    let edited = When { changed_at: at("2026-12-10T08:00:00Z"), ..rule(text, BERLIN, "2026-12-01T08:00:00Z") };
    assert_eq!(first(&edited, 1), ["2026-12-11T08:00:00Z"], "strictly after the edit");
    assert_eq!(first(&rule(text, BERLIN, "2026-12-01T08:00:00Z"), 1), ["2026-12-01T08:00:00Z"]);
    assert_eq!(first(&rule(text, BERLIN, "2026-12-01T08:00:00.000001Z"), 1), ["2026-12-02T08:00:00Z"]);
}

#[test]
fn nothing_lies_after_the_end() {
    let ended =
        When { ends_at: Some(at("2026-12-02T08:00:00Z")), ..rule("FREQ=DAILY", BERLIN, "2026-12-01T08:00:00Z") };
    assert_eq!(first(&ended, 9), ["2026-12-01T08:00:00Z", "2026-12-02T08:00:00Z"]);
    let never = When { ends_at: Some(Timestamp::NEG_INFINITY), ..ended };
    assert!(first(&never, 9).is_empty());
    let always = When { ends_at: Some(Timestamp::INFINITY), ..ended };
    assert_eq!(first(&always, 9).len(), 9);
}

#[test]
fn one_action_is_due_at_its_date_also_when_that_is_past_and_only_once() {
    let once =
        When { rule: None, changed_at: at("2026-12-05T00:00:00Z"), ..rule("", BERLIN, "2026-12-01T08:00:00.000001Z") };
    let recurrence = Recurrence::new(&once).expect("a date");
    let date = at("2026-12-01T08:00:00.000001Z");
    assert_eq!(recurrence.next(Timestamp::NEG_INFINITY), Ok(Some(date)));
    assert_eq!(recurrence.next(date), Ok(None));
    assert_eq!(recurrence.newest(Timestamp::NEG_INFINITY, date, 5), Ok(Some((date, 1))));
    assert_eq!(recurrence.newest(date, Timestamp::INFINITY, 5), Ok(None));
}

#[test]
fn the_newest_of_three_missed_is_found_and_they_are_counted() {
    let recurrence = Recurrence::new(&rule("FREQ=DAILY", BERLIN, "2026-12-01T08:00:00Z")).expect("a rule");
    let newest = |cap| recurrence.newest(at("2026-12-01T08:00:00Z"), at("2026-12-04T20:00:00Z"), cap);
    assert_eq!(newest(10), Ok(Some((at("2026-12-04T08:00:00Z"), 3))));
    assert_eq!(newest(2), Ok(Some((at("2026-12-04T08:00:00Z"), 2))), "the newest is right beyond the cap");
    assert_eq!(recurrence.newest(at("2026-12-04T08:00:00Z"), at("2026-12-04T20:00:00Z"), 9), Ok(None));
}

#[test]
fn the_newest_of_every_second_over_three_years_is_found_without_walking() {
    let recurrence = Recurrence::new(&rule("FREQ=SECONDLY", "UTC", "2026-01-01T00:00:00Z")).expect("a rule");
    let newest = recurrence.newest(at("2026-01-01T00:00:00Z"), at("2029-01-01T00:00:00.9Z"), 1_000);
    assert_eq!(newest, Ok(Some((at("2029-01-01T00:00:00Z"), 1_000))));
}
