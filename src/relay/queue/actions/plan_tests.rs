use super::*;
use crate::jobs::watches::Span;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(&format!("2026-11-21T{text}Z")).expect("valid")
}

/// A replica watches since an instant.
fn since(now: Timestamp, from: Timestamp) -> Watched {
    let mut watched = Watched::promptly(now);
    watched.add(vec![Span { from, to: Timestamp::INFINITY }]);
    watched
}

fn hourly(missed: &str, next: Option<&str>) -> Schedule {
    Schedule {
        id: 1,
        name: "x".to_owned(),
        tenant: String::new(),
        rule: Some("FREQ=HOURLY".to_owned()),
        time_zone: "UTC".to_owned(),
        starts_at: Some(at("00:00:00")),
        ends_at: None,
        changed_at: at("00:30:00"),
        next_at: next.map(at),
        last_at: None,
        missed: missed.to_owned(),
        bytes: 5,
    }
}

#[test]
fn three_missed_give_three_one_or_none() {
    for (missed, made) in
        [("all", vec!["01:00:00", "02:00:00", "03:00:00"]), ("latest", vec!["03:00:00"]), ("none", vec![])]
    {
        let plan = decide(
            &hourly(missed, Some("01:00:00")),
            at("03:30:00"),
            &since(at("03:30:00"), at("03:29:00")),
            OCCURRENCES,
        )
        .expect("valid");
        assert_eq!(plan.make, made.into_iter().map(|text| (at(text), true)).collect::<Vec<_>>(), "{missed}");
        assert_eq!((plan.next, plan.last, plan.missed), (Some(at("04:00:00")), Some(at("03:00:00")), 3), "{missed}");
    }
}

// Guarantee: schedules.missed-policy
#[test]
fn what_somebody_was_there_for_is_not_missed_however_late_it_is_made() {
    for missed in ["all", "latest", "none"] {
        let plan = decide(
            &hourly(missed, Some("01:00:00")),
            at("01:00:40"),
            &since(at("01:00:40"), at("00:40:00")),
            OCCURRENCES,
        )
        .expect("valid");
        assert_eq!((plan.make, plan.missed), (vec![(at("01:00:00"), false)], 0), "{missed}");
        // Nor is what comes within a second of the first look.
        let prompt = decide(
            &hourly(missed, Some("01:00:00")),
            at("01:00:00.9"),
            &since(at("01:00:00.9"), at("01:00:00.5")),
            OCCURRENCES,
        )
        .expect("valid");
        assert_eq!((prompt.make, prompt.missed), (vec![(at("01:00:00"), false)], 0), "{missed}");
    }
}

#[test]
fn what_was_missed_and_what_comes_now_are_told_apart() {
    let plan = decide(
        &hourly("latest", Some("01:00:00")),
        at("03:00:00.2"),
        &since(at("03:00:00.2"), at("02:59:00")),
        OCCURRENCES,
    )
    .expect("valid");
    assert_eq!(plan.make, [(at("02:00:00"), true), (at("03:00:00"), false)]);
    let none = decide(
        &hourly("none", Some("01:00:00")),
        at("03:00:00.2"),
        &since(at("03:00:00.2"), at("02:59:00")),
        OCCURRENCES,
    )
    .expect("valid");
    assert_eq!((none.make, none.missed), (vec![(at("03:00:00"), false)], 2));
}

// Guarantee: schedules.missed
#[test]
fn each_time_without_a_replica_has_its_latest() {
    let (now, span) = (at("08:30:00"), |from, to| Span { from: at(from), to: at(to) });
    let plan = |missed| {
        let mut watched = Watched::promptly(now);
        watched.add(vec![span("02:30:00", "03:30:00"), span("06:30:00", "07:15:00"), span("08:20:00", "08:30:00")]);
        decide(&hourly(missed, Some("01:00:00")), now, &watched, OCCURRENCES).expect("valid")
    };
    let latest = plan("latest");
    let made = [("02:00:00", true), ("03:00:00", false), ("06:00:00", true), ("07:00:00", false), ("08:00:00", true)];
    assert_eq!(latest.make, made.map(|(text, missed)| (at(text), missed)));
    assert_eq!((latest.missed, latest.next, latest.last), (6, Some(at("09:00:00")), Some(at("08:00:00"))));
    let none = plan("none");
    assert_eq!((none.make, none.missed), (vec![(at("03:00:00"), false), (at("07:00:00"), false)], 6));
    assert_eq!(plan("all").make.len(), 8);
}

#[test]
fn schedule_written_late_came_when_written() {
    let once = Schedule { rule: None, starts_at: Some(at("00:10:00")), ..hourly("none", None) };
    let plan = |from| decide(&once, at("00:31:00"), &since(at("00:31:00"), at(from)), OCCURRENCES).expect("valid");
    assert_eq!(plan("00:20:00").make, [(at("00:10:00"), false)]);
    assert_eq!((plan("00:30:30").make, plan("00:30:30").missed), (vec![], 1));
}

#[test]
fn a_schedule_has_no_past_before_it_was_written() {
    let plan = decide(&hourly("all", None), at("00:30:01"), &since(at("00:30:01"), at("00:00:00")), OCCURRENCES)
        .expect("valid");
    assert_eq!((plan.make, plan.next), (vec![], Some(at("01:00:00"))));
}

#[test]
fn one_date_is_made_once_also_when_it_lies_before_it_was_written() {
    let once = |last: Option<&str>| Schedule {
        rule: None,
        starts_at: Some(at("00:10:00")),
        last_at: last.map(at),
        ..hourly("latest", None)
    };
    let plan = decide(&once(None), at("00:31:00"), &since(at("00:31:00"), at("00:00:00")), OCCURRENCES).expect("valid");
    assert_eq!((plan.make, plan.next), (vec![(at("00:10:00"), false)], Some(Timestamp::INFINITY)));
    let again = decide(&once(Some("00:10:00")), at("00:31:00"), &since(at("00:31:00"), at("00:00:00")), OCCURRENCES)
        .expect("valid");
    assert_eq!((again.make, again.next), (vec![], Some(Timestamp::INFINITY)));
}

#[test]
fn a_long_past_is_made_in_pieces_and_passed_over_at_once() {
    let secondly = |missed| Schedule { rule: Some("FREQ=SECONDLY".to_owned()), ..hourly(missed, Some("01:00:00")) };
    let all =
        decide(&secondly("all"), at("03:00:00"), &since(at("03:00:00"), at("02:59:59")), OCCURRENCES).expect("valid");
    assert_eq!((all.make.len(), all.next), (OCCURRENCES, Some(at("01:03:20"))));
    let none = decide(&secondly("none"), at("23:00:00.5"), &since(at("23:00:00.5"), at("23:00:00.1")), OCCURRENCES)
        .expect("valid");
    assert_eq!((none.make.len(), none.missed, none.next), (1, CAP, Some(at("23:00:01"))));
}

#[test]
fn an_occurrence_counts_for_as_many_actions_as_it_has_tenants_and_kilobytes() {
    let tenants = vec![String::new(); 300];
    let all = Schedule { tenant: "*".to_owned(), ..hourly("all", None) };
    assert_eq!((heft(&hourly("all", None), &tenants), heft(&all, &tenants), heft(&all, &[])), (1, 300, 1));
    let large = Schedule { bytes: 1 << 20, ..all };
    assert_eq!(heft(&large, &tenants[..2]), 2 * 1025);
}
