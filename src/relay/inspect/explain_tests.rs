use super::*;
use crate::cursor::open_work::OpenWork;
use crate::relay::inspect::facts::Schedules;

#[path = "explain/beside_tests.rs"]
mod beside;
#[path = "explain/blocked_tests.rs"]
mod blocked;

/// Rows wait, a replica runs, nothing is known to be wrong.
fn facts() -> CursorFacts {
    CursorFacts {
        name: "booking_sms".to_owned(),
        exists: true,
        replicas: vec!["r1".to_owned()],
        waiting: Some(Waiting { lag_seconds: 12.34, rows: 7, capped: false }),
        rested: Some(60.0),
        ..CursorFacts::default()
    }
}

fn error(class: &str, code: &str, message_id: Option<&str>) -> LastError {
    LastError {
        class: class.to_owned(),
        code: code.to_owned(),
        message: "it said no.".to_owned(),
        hint: "Fix it.".to_owned(),
        at: "2026-11-21T08:00:00Z".to_owned(),
        since: None,
        message_id: message_id.map(str::to_owned),
    }
}

#[track_caller]
fn says(facts: &CursorFacts, reason: &str, well: bool, parts: &[&str], advice: &[&str]) {
    let why = why(facts);
    assert_eq!((why.reason, why.well), (reason, well), "{why:?}");
    for part in parts {
        assert!(why.sentence.contains(part), "{part:?} in {:?}", why.sentence);
    }
    assert!(why.sentence.ends_with('.') && !why.sentence.ends_with("..") && !why.sentence.contains('\n'), "{why:?}");
    for line in advice {
        assert!(why.advice.iter().chain(&why.instead).any(|said| said == line), "{line:?} in {:?}", why.advice);
    }
    assert_eq!(well, why.advice.is_empty(), "what does not move needs advice, what moves needs none: {why:?}");
}

#[test]
fn a_paused_cursor_names_who_paused_it_and_since_when() {
    let paused = Some(("2026-11-21T08:00:00Z".to_owned(), "ann".to_owned()));
    let facts = CursorFacts { paused, ..facts() };
    let resume = ["outbox-relay cursor resume booking_sms"];
    says(&facts, "paused", false, &["paused since 2026-11-21T08:00:00Z by ann", "7 rows wait", "12.3 s"], &resume);
    let both = CursorFacts { halted: true, error: Some(error("fatal", "http_401", None)), ..facts };
    says(&both, "paused", false, &["halted, too"], &resume);
}

#[test]
fn a_halted_cursor_names_the_message_the_error_and_the_verbs() {
    let poison = CursorFacts { halted: true, error: Some(error("poison", "twilio_21211", Some("41"))), ..facts() };
    says(
        &poison,
        "halted",
        false,
        &["halted at message 41 since 2026-11-21T08:00:00Z: poison twilio_21211: it said no; 7 rows wait"],
        &["Fix it.", "outbox-relay cursor resume booking_sms", "outbox-relay cursor skip booking_sms"],
    );
    let fatal = CursorFacts { halted: true, error: Some(error("fatal", "http_401", Some("41"))), ..facts() };
    says(&fatal, "halted", false, &["fatal http_401"], &["Fix it.", "outbox-relay cursor resume booking_sms"]);
    assert!(!why(&fatal).advice.iter().any(|line| line.contains("skip")), "the message is not to blame");
    let refused = CursorFacts { exists: false, waiting: None, ..fatal };
    says(&refused, "halted", false, &["fatal http_401"], &["Fix it."]);
}

#[test]
fn halted_cursor_names_fix_before_resume() {
    let (fix, resume) = ("Raise the limit", "outbox-relay cursor resume booking_sms");
    let skip = "outbox-relay cursor skip booking_sms";
    let halted = |hint: &str, paused: Option<(String, String)>| {
        let error = LastError { hint: hint.to_owned(), ..error("poison", "message_too_large", Some("41")) };
        why(&CursorFacts { halted: true, error: Some(error), paused, ..facts() })
    };
    for hint in ["Raise the limit", "Raise the limit, then `outbox-relay cursor resume NAME`"] {
        let why = halted(hint, None);
        assert_eq!((why.advice, &*why.instead[0]), (vec![fix.to_owned(), resume.to_owned()], skip));
        let paused = halted(hint, Some(("2026-11-21T08:00:00Z".to_owned(), "ann".to_owned())));
        assert_eq!(paused.advice, [fix, resume]);
    }
}

#[test]
fn a_cursor_without_a_row_says_how_it_gets_one() {
    let running = CursorFacts { exists: false, waiting: None, ..facts() };
    says(&running, "missing", false, &["has no cursor yet"], &["outbox-relay check"]);
    let create = [
        "`outbox-relay cursor create booking_sms --beginning` makes it before every row; with --now, the rows that are there \
         now are never sent.",
    ];
    says(&CursorFacts { replicas: Vec::new(), ..running }, "missing", false, &["has no cursor yet"], &create);
}

#[test]
fn a_moving_cursor_is_well_whatever_it_said_before() {
    let facts = CursorFacts {
        moved: true,
        rate: Some(1234.5),
        error: Some(error("retry", "connect", None)),
        held: true,
        ..facts()
    };
    says(&facts, "moving", true, &["1234 rows a second", "7 rows wait, the oldest for 12.3 s"], &[]);
    let slow = CursorFacts { moved: false, rate: None, rested: Some(2.0), error: None, held: false, ..facts };
    says(&slow, "moving", true, &["last advanced 2.0 s ago"], &[]);
}

#[test]
fn few_rows_tell_no_rate() {
    let facts = CursorFacts { moved: true, rate: None, rested: Some(0.1), ..facts() };
    says(&facts, "moving", true, &["is moving (last advanced 0.1 s ago); 7 rows wait"], &[]);
    let unknown = CursorFacts { rested: None, ..facts };
    says(&unknown, "moving", true, &["is moving; 7 rows wait"], &[]);
}

#[test]
fn without_a_replica_nothing_moves_even_when_nothing_waits() {
    let facts = CursorFacts { replicas: Vec::new(), ..facts() };
    says(&facts, "no_replica", false, &["No live replica has relay", "7 rows wait"], &[]);
    let idle = CursorFacts { waiting: Some(Waiting::default()), ..facts };
    says(&idle, "no_replica", false, &["nothing waits"], &[]);
    let open_work = Some(OpenWork { schedules: 2, actions: 1, requests: 0 });
    let unread = CursorFacts { waiting: None, open_work, ..idle };
    says(&unread, "no_replica", false, &["; 2 schedules and 1 action wait."], &[]);
}

#[test]
fn absent_relay_wins_over_what_a_replica_would_end() {
    let error = Some(error("retry", "http_503", None));
    let absent = CursorFacts { absent: true, relay: "booking_sms".to_owned(), error, ..facts() };
    let open = CursorFacts { circuit_opened_at: Some("2026-11-21T08:00:00Z".to_owned()), ..absent.clone() };
    let checked = CursorFacts { halted: true, by_check: true, ..absent.clone() };
    let last =
        "No live replica has relay booking_sms; its last error, 2026-11-21T08:00:00Z, was http_503: it said no; 7";
    let advice = [
        "Start a replica whose configuration has it; `outbox-relay replica list` shows what each has.",
        "if the relay was renamed: `outbox-relay cursor rename booking_sms NEW`",
        "if the relay was taken out: `outbox-relay cursor remove booking_sms`",
    ];
    for facts in [&absent, &open, &checked] {
        says(facts, "no_replica", false, &[last], &advice);
        assert_eq!(why(facts).advice.len(), 1, "the last error's hint is not the next step");
    }
    // An operator ends these, with a replica or without.
    let resume = ["outbox-relay cursor resume booking_sms"];
    says(&CursorFacts { by_check: false, ..checked }, "halted", false, &[], &resume);
    let paused = Some(("2026-11-21T08:00:00Z".to_owned(), "ann".to_owned()));
    says(&CursorFacts { paused, ..absent }, "paused", false, &[], &resume);
}

#[test]
fn a_clock_that_stepped_back_says_until_when() {
    let facts = CursorFacts { regressed_until: Some("2026-11-21T09:00:00Z".to_owned()), ..facts() };
    says(&facts, "clock_regression", false, &["passed 2026-11-21T09:00:00Z"], &[]);
}

#[test]
fn an_open_circuit_says_since_when_and_the_last_error() {
    let open = Some("2026-11-21T08:00:00Z".to_owned());
    let facts = CursorFacts { circuit_opened_at: open, error: Some(error("retry", "connect", None)), ..facts() };
    let since = "its circuit is open since 2026-11-21T08:00:00Z";
    says(&facts, "circuit_open", false, &[since, "connect: it said no;"], &["Fix it."]);
    says(&CursorFacts { error: None, ..facts }, "circuit_open", false, &["its circuit is open since"], &[]);
}

#[test]
fn a_cursor_that_backs_off_says_what_failed() {
    let facts = CursorFacts { error: Some(error("retry", "http_503", None)), ..facts() };
    says(&facts, "backing_off", false, &["failed at 2026-11-21T08:00:00Z and is repeated: http_503"], &["Fix it."]);
}

#[test]
fn an_idle_cursor_is_well() {
    says(&CursorFacts { waiting: Some(Waiting::default()), ..facts() }, "idle", true, &["nothing to do"], &[]);
}

#[test]
fn due_work_whose_attempts_all_fail_names_the_failure_since_when_and_how_many_wait() {
    let since = Some("2026-11-21T07:56:00Z".to_owned());
    let error = Some(LastError { since, ..error("retry", "timeout", None) });
    let schedules = Some(Schedules { running: 1, due: 62, ..Schedules::default() });
    let facts = CursorFacts { due_work: true, schedules, error, rested: Some(1.8), ..facts() };
    let parts = [
        "no attempt of booking_sms has succeeded since 2026-11-21T07:56:00Z, when several in a row had failed",
        "the last failed at 2026-11-21T08:00:00Z: retry timeout: it said no",
        "7 rows wait, the oldest for 12.3 s",
    ];
    says(&facts, "backing_off", false, &parts, &["Fix it."]);
}

#[test]
fn a_table_that_cannot_be_read_is_not_taken_for_well() {
    says(&CursorFacts { waiting: None, ..facts() }, "unreadable", false, &["is not known"], &["outbox-relay check"]);
}

// Guarantee: at-most-once.why
#[test]
fn unknown_outcomes_are_told_beside_the_reason_and_not_called_delivered() {
    let idle = Waiting { rows: 0, ..Waiting::default() };
    let facts = CursorFacts { unknown: 3, waiting: Some(idle), ..facts() };
    says(&facts, "idle", true, &["unknown outcomes: 3", "request list --unknown --relay booking_sms"], &[]);
    assert!(!why(&facts).sentence.contains("delivered"));
    let facts = CursorFacts {
        change: Some(4),
        requested: Some("move to 2026-11-21T08:00:00Z".to_owned()),
        paused: Some(("now".to_owned(), "me".to_owned())),
        ..facts
    };
    says(
        &facts,
        "paused",
        false,
        &["unknown outcomes: 3", "change 4 of an operator (move to 2026-11-21T08:00:00Z) waits for a turn"],
        &["outbox-relay cursor resume booking_sms"],
    );
}

#[test]
fn halt_that_ends_by_its_check_advises_no_resume() {
    let error = Some(error("fatal", "template_taken", None));
    let why = why(&CursorFacts { halted: true, by_check: true, error, ..facts() });
    assert!(why.advice.iter().all(|step| !step.contains("outbox-relay cursor resume")), "{why:?}");
    assert!(why.advice[1].starts_with("No resume is needed"), "{why:?}");
}

#[test]
fn due_work_that_has_failed_waits_by_itself() {
    let retrying = Some(Retrying { rows: 7, next_in: 12.3, code: "http_503".to_owned() });
    let parts = ["all that is due has failed", "7 of booking_sms, the next in 12 s, after http_503"];
    let advice = ["outbox-relay request list --relay booking_sms"];
    says(&CursorFacts { retrying: retrying.clone(), ..facts() }, "retrying", false, &parts, &advice);
    let more = Some(Waiting { lag_seconds: 1.0, rows: 8, capped: false });
    let waits = CursorFacts { retrying, waiting: more, due_work: true, ..facts() };
    assert_ne!(why(&waits).reason, "retrying", "another row could go");
    let parts = [
        "lanes of booking_sms wait until the first of each is accepted",
        "7 failed",
        "in 12 s, after http_503; 8 rows wait",
    ];
    says(&CursorFacts { has_lanes: true, ..waits.clone() }, "retrying", false, &parts, &advice);
    assert_eq!(why(&CursorFacts { has_lanes: true, rested: Some(0.1), ..waits }).reason, "moving", "others go on");
}

#[test]
fn due_work_of_a_job_is_well_between_its_runs_and_no_verb_about_positions_is_advised() {
    let none = Some(Waiting { lag_seconds: 0.0, rows: 0, capped: false });
    let job = CursorFacts { due_work: true, replicas: Vec::new(), ..facts() };
    says(&CursorFacts { waiting: none, ..job.clone() }, "idle", true, &["nothing that is due is left"], &[]);
    let poison = CursorFacts { halted: true, error: Some(error("poison", "http_404", Some("w/1"))), ..job };
    let why = why(&poison);
    let all = || why.advice.iter().chain(&why.instead);
    assert!(!all().any(|line| line.contains("cursor skip")), "{why:?}");
    assert!(all().any(|line| line.contains("mark it as sent yourself")), "{why:?}");
}

#[test]
fn a_relay_of_schedules_says_what_runs_what_is_due_what_cannot_run_and_what_comes_next() {
    let next_at = Some("2026-11-23T08:00:00.000000Z".to_owned());
    let schedules = Some(Schedules { running: 2, due: 0, problems: 3, next_at, overdue: false });
    let waiting = Some(Waiting::default());
    let facts = CursorFacts { due_work: true, waiting, schedules, ..facts() };
    let parts = [
        "no action of booking_sms waits",
        "running 2, due 0",
        "problem 3 (`outbox-relay schedule list --problems`)",
        "08:00:00.000000Z",
    ];
    says(&facts, "idle", true, &parts, &[]);
    let none = CursorFacts { schedules: Some(Schedules::default()), ..facts.clone() };
    says(&none, "idle", true, &["actions running 0, due 0; none comes"], &[]);
    // A job may make them, from time to time: without a replica it is the instant that tells whether they are made at all.
    let job = CursorFacts { replicas: Vec::new(), ..facts };
    says(&job, "idle", true, &["nothing that is due is left"], &[]);
    // What waits for a replica is told as `status` tells it.
    let open_work = Some(OpenWork { schedules: 2, ..OpenWork::default() });
    let waits = CursorFacts { open_work, ..job.clone() };
    says(&waits, "no_replica", false, &["No live replica has relay", "; 2 schedules wait;"], &[]);
    let overdue = Schedules { overdue: true, ..job.schedules.clone().expect("they are set above") };
    let late = CursorFacts { schedules: Some(overdue), ..job };
    says(&late, "no_replica", false, &["No live replica has relay", "one has been due since 2026-11-23"], &[]);
}
