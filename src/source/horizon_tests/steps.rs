//! What a step back of the clock does to what is known of transactions.

use super::scans::{NO_MARGIN, reported, running, scan, sessions, start, writers};
use super::*;

// Guarantee: horizon.clock-steps
#[test]
fn prepared_transaction_of_later_message_is_not_bounded_by_report_of_before_step() {
    let mut history = History::default();
    let old = [reported(7, Some(900), None)];
    sessions(&mut history, 1_000, &old, &[running("7/1", Some(7))]);
    assert!(sessions(&mut history, 100, &old, &[running("7/1", Some(7))]).stepped_back.is_some());
    // Its session is on to a message that came at 111 by the clock of now, between sessions and transactions.
    sessions(&mut history, 110, &old, &[running("7/2", Some(7))]);
    assert_eq!(sessions(&mut history, 200, &[reported(7, None, None)], &[running("7/2", None)]).at, at(110));
}

// Guarantee: horizon.clock-steps
#[test]
fn session_that_was_being_opened_across_step_is_not_bounded_by_its_begin() {
    let mut history = History::default();
    let opening = [Running { session_began: None, ..running("7/0", Some(7)) }];
    sessions(&mut history, 1_000, &[], &opening);
    assert!(sessions(&mut history, 100, &[], &opening).stepped_back.is_some());
    // It began at 900 by the clock of before; its first message came at 111 by that of now, after sessions were read.
    let first = Running { session_began: Some(at(900)), ..running("7/1", Some(7)) };
    sessions(&mut history, 110, &[], &[first]);
    assert_eq!(sessions(&mut history, 200, &[reported(7, None, None)], &[running("7/1", None)]).at, at(110));
}

// Guarantee: horizon.clock-steps
#[test]
fn stamp_of_transaction_that_was_seen_before_step_stays_its_bound() {
    let mut history = History::default();
    let old = [reported(7, Some(900), None)];
    sessions(&mut history, 1_000, &old, &[running("7/1", Some(7))]);
    sessions(&mut history, 100, &old, &[running("7/1", Some(7))]);
    // Its only stamp is 900: prepared, it holds nothing of now back.
    assert_eq!(sessions(&mut history, 200, &[reported(7, None, None)], &[running("7/1", None)]).at, at(200));
}

// Guarantee: horizon.clock-steps
#[test]
fn prepared_transaction_that_no_scan_saw_before_step_is_unknowable() {
    let mut history = History::default();
    sessions(&mut history, 1_000, &[reported(7, Some(900), None)], &[running("7/1", Some(7))]);
    assert_eq!(sessions(&mut history, 100, &[], &[running("7/2", None)]).at, Timestamp::NEG_INFINITY);
    assert_eq!(sessions(&mut history, 200, &[], &[running("7/2", None)]).at, Timestamp::NEG_INFINITY);
    assert_eq!(sessions(&mut history, 300, &[], &[]).at, at(300));
}

// Guarantee: horizon.clock-steps
#[test]
fn silent_and_hidden_sessions_are_unknowable_across_step() {
    for activity in [Activity::Silent, Activity::Hidden] {
        let mut history = History::default();
        let session = [Session { pid: 7, application: None, activity }];
        sessions(&mut history, 900, &[], &[]);
        sessions(&mut history, 1_000, &session, &[running("7/1", Some(7))]);
        for tick in [100, 200] {
            let horizon = sessions(&mut history, tick, &session, &[running("7/1", Some(7))]);
            assert_eq!(horizon.at, Timestamp::NEG_INFINITY, "{activity:?} at {tick}");
        }
        assert_eq!(sessions(&mut history, 300, &[], &[]).at, at(300));
    }
}

// Guarantee: horizon.clock-steps
#[test]
fn start_after_clock_is_no_bound_when_clock_has_passed_it() {
    // A history of its own since a partition came: it has not seen the step from 1,000 to 100.
    let mut history = History::default();
    writers(&mut history, 105, &[], &["w"]);
    writers(&mut history, 106, &[start(990)], &["w"]);
    // It has stamped by the clock of now all the time.
    assert_eq!(writers(&mut history, 996, &[start(990)], &["w", "x"]).at, Timestamp::NEG_INFINITY);
}

// Guarantee: horizon.clock-steps
#[test]
fn step_back_makes_present_writers_unknowable() {
    let mut history = History::default();
    writers(&mut history, 1_000, &[], &["w"]);
    let stepped = writers(&mut history, 500, &[start(490)], &["w"]);
    assert_eq!((stepped.at, stepped.stepped_back), (Timestamp::NEG_INFINITY, Some(Duration::from_micros(500))));
    assert_eq!(writers(&mut history, 510, &[start(490)], &["w"]).at, Timestamp::NEG_INFINITY);
    assert_eq!(writers(&mut history, 520, &[], &[]).at, at(520));
}

#[test]
fn start_read_before_step_back_is_no_bound() {
    let mut history = History::default();
    writers(&mut history, 1_000, &[], &[]);
    writers(&mut history, 500, &[], &[]);
    writers(&mut history, 510, &[], &["w"]);
    // Its transaction began at 990 by the clock of before, and it stamps from 510 on by the clock of now.
    assert_eq!(writers(&mut history, 995, &[start(990)], &["w"]).at, at(500));
}

// Guarantee: horizon.clock-steps
#[test]
fn step_back_is_seen_while_clock_still_grows() {
    let mut history = History::default();
    writers(&mut history, 1_000, &[], &[]);
    let scan = Scan { at: at(1_100), elapsed: Duration::from_micros(900), found: ScanResult::Nothing };
    assert_eq!(history.observe(scan, NO_MARGIN).stepped_back, Some(Duration::from_micros(799)));
}

// Guarantee: horizon.clock-steps
#[test]
fn small_steps_back_add_up() {
    let mut history = History::default();
    let margin = Margin { window: Duration::from_micros(5), ..NO_MARGIN };
    let stepped = |history: &mut History, tick| history.observe(scan(tick, ScanResult::Nothing), margin).stepped_back;
    assert_eq!(stepped(&mut history, 100), None);
    assert_eq!(stepped(&mut history, 97), None);
    assert_eq!(stepped(&mut history, 95), None);
    assert_eq!(stepped(&mut history, 93), Some(Duration::from_micros(7)));
    assert_eq!(stepped(&mut history, 91), None, "it counts from where it was reported");
}
