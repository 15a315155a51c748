//! Plain English for the common rules.

use super::*;

fn words(text: &str) -> Option<String> {
    english(&rule(text, "Europe/Berlin", "2026-12-01T08:00:00Z"))
}

#[test]
fn the_common_rules_have_words() {
    for (text, expected) in [
        ("FREQ=SECONDLY", "every second"),
        ("FREQ=MINUTELY;INTERVAL=10", "every 10 minutes"),
        ("FREQ=HOURLY", "every hour"),
        ("FREQ=DAILY", "every day at 09:00"),
        ("FREQ=DAILY;INTERVAL=2", "every other day at 09:00"),
        ("FREQ=DAILY;BYHOUR=9,17;BYMINUTE=30", "every day at 09:30 and 17:30"),
        ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=8;BYMINUTE=30", "on weekdays at 08:30"),
        ("FREQ=DAILY;BYDAY=SA,SU", "on weekends at 09:00"),
        ("FREQ=WEEKLY", "every Tuesday at 09:00"),
        ("FREQ=WEEKLY;BYDAY=FR,MO,WE", "every Monday, Wednesday and Friday at 09:00"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "every other week on Monday at 09:00"),
        ("FREQ=WEEKLY;INTERVAL=3;BYDAY=MO,TU,WE,TH,FR", "every 3 weeks on weekdays at 09:00"),
        ("FREQ=MONTHLY;BYDAY=1MO", "every first Monday at 09:00"),
        ("FREQ=MONTHLY;BYDAY=-1FR;BYMONTH=3,6", "on the last Friday in March and June at 09:00"),
        ("FREQ=MONTHLY;BYMONTHDAY=-1", "on the last day of every month at 09:00"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,15", "on the 1st and 15th of every month at 09:00"),
        ("FREQ=MONTHLY;INTERVAL=3", "every 3 months on the 1st at 09:00"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "on the last weekday of every month at 09:00"),
        ("FREQ=YEARLY", "every year on 1 December at 09:00"),
        ("FREQ=YEARLY;BYMONTH=11;BYDAY=4TH", "every year on the fourth Thursday of November at 09:00"),
        ("FREQ=DAILY;COUNT=3", "every day at 09:00, 3 times"),
        ("FREQ=DAILY;UNTIL=20261231", "every day at 09:00, until 31 December 2026"),
    ] {
        assert_eq!(words(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn without_a_start_the_full_hour_is_meant_and_one_action_has_words_too() {
    let written = When {
        starts_at: None,
        changed_at: at("2026-11-21T10:11:12Z"),
        ..rule("FREQ=DAILY;BYHOUR=9", "UTC", "2026-01-01T00:00:00Z")
    };
    assert_eq!(english(&written).as_deref(), Some("every day at 09:00"));
    let once = When { rule: None, ..rule("", "Europe/Berlin", "2026-12-01T08:00:00Z") };
    assert_eq!(english(&once).as_deref(), Some("once, on 1 December 2026 at 09:00"));
}

#[test]
fn of_a_rule_that_cannot_be_planned_nothing_is_said() {
    assert_eq!(words("FREQ=HOURLY;BYMINUTE=30"), None, "it counts in UTC");
    let utc = rule("FREQ=HOURLY;BYMINUTE=30", "UTC", "2026-12-01T08:00:00Z");
    assert_eq!(english(&utc).as_deref(), Some("every hour at minute 30"));
    assert_eq!(words("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"), None);
}

#[test]
fn of_a_rule_that_is_not_common_nothing_is_said() {
    for text in [
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        "FREQ=YEARLY;BYYEARDAY=100",
        "FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13",
        "FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=2",
        "FREQ=MINUTELY;BYHOUR=9",
        "FREQ=DAILY;BYMINUTE=0,5,10,15,20,25,30,35",
        "no rule",
    ] {
        assert_eq!(words(text), None, "{text}");
    }
}
