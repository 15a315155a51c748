//! Single properties of the rule, scan by scan.

use super::*;

const NO_MARGIN: Margin = Margin { window: Duration::ZERO, precision: Duration::ZERO };

fn scan(tick: i64, found: ScanResult) -> Scan {
    Scan { at: at(tick), elapsed: Duration::ZERO, found }
}

fn writer(transaction: &str) -> Writer {
    Writer { transaction: transaction.to_owned(), pid: Some(7) }
}

fn start(started: i64) -> Start {
    Start { pid: 7, application: Some("shop".to_owned()), started: Some(at(started)) }
}

/// Scans of the rule `writers`: with starts that were read before the clock.
fn writers(history: &mut History, tick: i64, starts: &[Start], names: &[&str]) -> Horizon {
    let writers = names.iter().copied().map(writer).collect();
    history.observe(scan(tick, ScanResult::Writers { starts: starts.to_vec(), writers }), NO_MARGIN)
}

fn reported(pid: i32, transaction: Option<i64>, message: Option<i64>) -> Session {
    let activity = Activity::Reported { transaction: transaction.map(at), message: message.map(at) };
    Session { pid, application: None, activity }
}

fn running(transaction: &str, pid: Option<i32>) -> Running {
    Running { transaction: transaction.to_owned(), pid, session_began: pid.map(|_| at(1)), login_trigger: false }
}

fn sessions(history: &mut History, tick: i64, sessions: &[Session], running: &[Running]) -> Horizon {
    let found = ScanResult::Sessions { sessions: sessions.to_vec(), running: running.to_vec() };
    history.observe(scan(tick, found), NO_MARGIN)
}

proptest! {
    // Guarantee: horizon.model
    #[test]
    fn horizon_never_passes_clock_or_bound(
        ticks in prop::collection::vec((1..50_i64, prop::collection::btree_set(0..6_u8, 0..4)), 1..30),
    ) {
        let mut history = History::default();
        let mut clock = 0;
        let mut before = Timestamp::NEG_INFINITY;
        for (step, present) in ticks {
            clock += step;
            let names: Vec<String> = present.iter().map(ToString::to_string).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let horizon = writers(&mut history, clock, &[], &names);
            prop_assert!(horizon.at <= at(clock));
            for held in &horizon.held_by {
                prop_assert!(held.bound.is_none_or(|bound| horizon.at <= bound));
            }
            prop_assert!(horizon.at >= before, "a horizon goes back only with the clock");
            before = horizon.at;
        }
    }

    // Guarantee: horizon.clock-steps
    /// The clock is slewed by at most 500 ppm: that is no step, however long no scan is made.
    #[test]
    fn slewed_clock_is_not_reported(seconds in prop::collection::vec(1..600_i64, 1..50)) {
        let (mut history, margin) = (History::default(), Margin { window: Duration::from_millis(1), ..NO_MARGIN });
        let mut clock = 0;
        for pause in seconds {
            let micros = pause * 1_000_000;
            clock += micros - micros / 2_000;
            let elapsed = Duration::from_micros(micros.unsigned_abs());
            let horizon = history.observe(Scan { at: at(clock), elapsed, found: ScanResult::Nothing }, margin);
            prop_assert_eq!(horizon.stepped_back, None);
        }
    }
}

// Guarantee: horizon.first-scan
#[test]
fn unknown_writer_of_first_scan_holds_everything() {
    let mut history = History::default();
    assert_eq!(writers(&mut history, 100, &[], &["old"]).at, Timestamp::NEG_INFINITY);
    assert_eq!(writers(&mut history, 200, &[], &["old", "new"]).at, Timestamp::NEG_INFINITY);
    assert_eq!(writers(&mut history, 300, &[], &["new"]).at, at(100));
    assert_eq!(writers(&mut history, 400, &[], &[]).at, at(400));
}

// Guarantee: observe.horizon-hold
#[test]
fn unknown_holder_counts_from_first_scan_that_saw_it() {
    let mut history = History::default();
    let since = |horizon: Horizon| horizon.held_since;
    assert_eq!(since(writers(&mut history, 100, &[], &["old"])), at(100));
    assert_eq!(since(writers(&mut history, 200, &[], &["old", "new"])), at(100));
    let prepared = Writer { pid: None, ..writer("old") };
    let found = ScanResult::Writers { starts: Vec::new(), writers: vec![prepared] };
    assert_eq!(since(history.observe(scan(300, found), NO_MARGIN)), at(100), "it is the same when it is prepared");
    assert_eq!(since(writers(&mut history, 400, &[], &[])), at(400));
    assert_eq!(since(writers(&mut history, 500, &[], &["next"])), at(400));
    let stepped = writers(&mut history, 450, &[], &["next"]);
    assert_eq!((stepped.at, stepped.held_since), (Timestamp::NEG_INFINITY, at(450)), "by the clock of now");
}

#[test]
fn silent_session_counts_from_first_scan_through_all_its_transactions() {
    let mut history = History::default();
    let silent = [Session { pid: 7, application: None, activity: Activity::Silent }];
    assert_eq!(sessions(&mut history, 100, &silent, &[running("7/1", Some(7))]).held_since, at(100));
    assert_eq!(sessions(&mut history, 200, &silent, &[]).held_since, at(100));
    assert_eq!(sessions(&mut history, 300, &silent, &[running("7/2", Some(7))]).held_since, at(100));
}

// Guarantee: horizon.first-write
#[test]
fn time_before_first_write_does_not_count() {
    let mut history = History::default();
    writers(&mut history, 100, &[], &[]);
    let horizon = writers(&mut history, 200, &[], &["w"]);
    assert_eq!((horizon.at, horizon.rescan), (at(100), true));
    let horizon = writers(&mut history, 210, &[start(5)], &["w"]);
    assert_eq!((horizon.at, horizon.rescan), (at(100), false));
    assert_eq!(horizon.held_by[0].holder.application.as_deref(), Some("shop"));
}

#[test]
fn start_read_before_locks_is_a_bound() {
    let mut history = History::default();
    writers(&mut history, 100, &[], &[]);
    let horizon = writers(&mut history, 200, &[start(150)], &["w"]);
    assert_eq!((horizon.at, horizon.held_by[0].holder.started), (at(150), None), "it may be an earlier transaction's");
    let horizon = writers(&mut history, 210, &[start(160)], &["w"]);
    assert_eq!((horizon.at, horizon.held_by[0].holder.started), (at(160), Some(at(160))));
}

#[test]
fn start_of_session_is_no_bound_for_prepared_writer() {
    let mut history = History::default();
    writers(&mut history, 100, &[], &[]);
    writers(&mut history, 200, &[], &["w"]);
    let prepared = Writer { pid: None, ..writer("w") };
    let found = ScanResult::Writers { starts: vec![start(205)], writers: vec![prepared] };
    assert_eq!(history.observe(scan(210, found), NO_MARGIN).at, at(100));
}

#[test]
fn transaction_renamed_when_prepared_is_unknown() {
    let mut history = History::default();
    writers(&mut history, 100, &[], &["3/14"]);
    let renamed = Writer { transaction: "-1/733".to_owned(), pid: None };
    let found = ScanResult::Writers { starts: Vec::new(), writers: vec![renamed] };
    assert_eq!(history.observe(scan(200, found), NO_MARGIN).at, Timestamp::NEG_INFINITY);
}

#[test]
fn message_in_progress_bounds_its_next_transaction() {
    let mut history = History::default();
    sessions(&mut history, 100, &[], &[]);
    let horizon = sessions(&mut history, 200, &[reported(7, None, Some(40))], &[]);
    assert_eq!((horizon.at, horizon.held_by[0].holder.pid, horizon.rescan), (at(40), Some(7), false));
    // The next transaction of the session began by a message before the one in progress.
    let horizon = sessions(&mut history, 210, &[reported(7, Some(40), Some(205))], &[running("7/2", Some(7))]);
    assert_eq!((horizon.at, horizon.held_by.len()), (at(40), 1));
    assert_eq!(sessions(&mut history, 220, &[reported(7, None, None)], &[]).at, at(220));
}

#[test]
fn prepared_transaction_keeps_bound_of_its_session() {
    let mut history = History::default();
    sessions(&mut history, 100, &[reported(7, Some(90), None)], &[running("7/1", Some(7))]);
    let horizon = sessions(&mut history, 200, &[reported(7, Some(195), None)], &[running("7/1", None)]);
    assert_eq!(horizon.at, at(90));
    assert_eq!(horizon.held_by[0].reason(Rule::Transactions), "prepared_transaction");
}

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

#[test]
fn prepared_transaction_of_idle_session_began_after_clock() {
    let mut history = History::default();
    sessions(&mut history, 100, &[reported(7, None, None)], &[running("7/1", Some(7))]);
    assert_eq!(sessions(&mut history, 200, &[reported(7, None, None)], &[running("7/1", None)]).at, at(100));
}

#[test]
fn prepared_transaction_never_seen_has_lowest_bound() {
    let mut history = History::default();
    assert_eq!(sessions(&mut history, 50, &[], &[running("1/1", None)]).at, Timestamp::NEG_INFINITY);
    let long = [reported(7, Some(60), None), reported(8, None, Some(80))];
    sessions(&mut history, 100, &long, &[]);
    // Its own bound does not hold those back that come later.
    assert_eq!(sessions(&mut history, 200, &[], &[running("9/1", None)]).at, at(60));
    let next = sessions(&mut history, 300, &[], &[running("9/2", None)]);
    assert_eq!(next.at, at(200));
}

#[test]
fn silent_session_holds_until_it_is_gone() {
    let mut history = History::default();
    let silent = Session { pid: 7, application: None, activity: Activity::Silent };
    sessions(&mut history, 100, &[reported(8, Some(90), None)], &[]);
    assert_eq!(sessions(&mut history, 200, std::slice::from_ref(&silent), &[]).at, at(90));
    assert_eq!(sessions(&mut history, 300, &[silent], &[]).at, at(90));
    assert_eq!(sessions(&mut history, 400, &[], &[]).at, at(400));
}

#[test]
fn hidden_session_is_bounded_by_last_absence() {
    let mut history = History::default();
    let hidden = Session { pid: 7, application: Some("shop".to_owned()), activity: Activity::Hidden };
    sessions(&mut history, 100, std::slice::from_ref(&hidden), &[]);
    let horizon = sessions(&mut history, 200, &[hidden], &[running("7/1", Some(7))]);
    assert_eq!((horizon.at, horizon.rescan), (at(100), true));
    assert_eq!(horizon.held_by[0].holder.application.as_deref(), Some("shop"));
}

// Guarantee: horizon.window
#[test]
fn window_and_precision_are_subtracted() {
    let margin = Margin { window: Duration::from_micros(7), precision: Duration::from_micros(2) };
    assert_eq!(History::default().observe(scan(100, ScanResult::Nothing), margin).at, at(91));
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
