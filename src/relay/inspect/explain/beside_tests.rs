//! What is said beside the reason.

use super::*;
use crate::relay::inspect::clock_step::ClockStepStatus;
use crate::relay::inspect::facts::{Counted, OutOfReach};

#[test]
fn a_change_that_waits_is_told_whatever_the_reason() {
    let facts = CursorFacts { change: Some(3), waiting: Some(Waiting::default()), ..facts() };
    says(&facts, "idle", true, &["after the position; change 3 of an operator waits for a turn."], &[]);
}

#[test]
fn rows_out_of_reach_are_named_beside_the_reason() {
    let counted = |rows| Counted { rows, capped: rows > 9 };
    let out_of_reach = OutOfReach {
        ahead: counted(10),
        nearest: Some("2027-01-01T00:00:00Z".to_owned()),
        never: counted(1),
        below: counted(2),
    };
    let facts = CursorFacts { out_of_reach, waiting: Some(Waiting::default()), ..facts() };
    let parts = [
        "after the position; 10+ rows have a created_at after now, the nearest at 2027-01-01T00:00:00Z, and are delivered",
        "; 1 row has created_at infinity and is never delivered; 2 rows have created_at -infinity, below the position",
    ];
    says(&facts, "idle", true, &parts, &[]);
}

#[test]
fn rows_that_a_clock_step_may_have_left_out_are_named_until_a_seek_has_answered() {
    let [from, to] = ["2026-11-21T08:00:00Z", "2026-11-21T08:02:00Z"].map(str::to_owned);
    let facts = CursorFacts {
        waiting: Some(Waiting::default()),
        clock_step: Some(ClockStepStatus { from: Some(from), to }),
        ..facts()
    };
    let parts = [
        "rows stamped between 2026-11-21T08:00:00Z and 2026-11-21T08:02:00Z may not have been delivered",
        "`outbox-relay cursor seek booking_sms --at 2026-11-21T08:00:00Z`",
    ];
    says(&facts, "idle", true, &parts, &[]);
    let during = CursorFacts { regressed_until: Some("2026-11-21T08:02:00Z".to_owned()), ..facts };
    let seek = ["outbox-relay cursor seek booking_sms --at 2026-11-21T08:00:00Z"];
    says(&during, "clock_regression", false, &["passed 2026-11-21T08:02:00Z"], &seek);
}

#[test]
fn clock_step_of_unknown_start_names_its_end_only() {
    let step = ClockStepStatus { from: None, to: "2026-11-21T08:02:00Z".to_owned() };
    let facts = CursorFacts { waiting: Some(Waiting::default()), clock_step: Some(step), ..facts() };
    let parts = [
        "rows stamped before 2026-11-21T08:02:00Z (no replica ran",
        "`outbox-relay cursor seek booking_sms --at INSTANT`",
    ];
    says(&facts, "idle", true, &parts, &[]);
}

#[test]
fn unknown_outcomes_of_idle_relay_have_the_command_that_settles_them() {
    let idle = Some(Waiting { rows: 0, ..Waiting::default() });
    let key = |key: &str| vec![key.to_owned()];
    let facts = CursorFacts { unknown: 2, unknown_keys: vec![key("7"), key("it's")], waiting: idle, ..facts() };
    let commands = |facts: &CursorFacts| why(facts).advice.split_off(1);
    assert_eq!(commands(&facts), ["outbox-relay request settle 7 --relay booking_sms --arrived"]);
    let of_requests = CursorFacts { of_requests: true, ..facts };
    assert_eq!(commands(&of_requests), ["outbox-relay request settle 7 --arrived"]);
}

#[test]
fn dead_letters_are_counted_with_the_command_that_lists_them() {
    let idle = Waiting { rows: 0, ..Waiting::default() };
    let facts = CursorFacts { dead_letters: 2, waiting: Some(idle), ..facts() };
    says(&facts, "idle", true, &["dead letters: 2 (`outbox-relay dead-letter list --cursor booking_sms`)"], &[]);
    let requests = CursorFacts { of_requests: true, ..facts };
    let list = "failed requests: 2 (`outbox-relay request list --status failed --relay booking_sms`)";
    says(&requests, "idle", true, &[list], &[]);
}

#[test]
fn late_rows_are_counted() {
    let idle = Waiting { rows: 0, ..Waiting::default() };
    let facts = CursorFacts { late_rows: 3, waiting: Some(idle), ..facts() };
    says(&facts, "idle", true, &["rows that came late, behind the position: 3"], &[]);
}
