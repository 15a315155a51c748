//! Single properties of the rule, scan by scan.

use super::*;

pub(super) const NO_MARGIN: Margin = Margin { window: Duration::ZERO, precision: Duration::ZERO };

pub(super) fn scan(tick: i64, found: ScanResult) -> Scan {
    Scan { at: at(tick), elapsed: Duration::ZERO, found }
}

pub(super) fn writer(transaction: &str) -> Writer {
    Writer { transaction: transaction.to_owned(), pid: Some(7) }
}

pub(super) fn start(started: i64) -> Start {
    Start { pid: 7, application: Some("shop".to_owned()), started: Some(at(started)) }
}

/// Scans of the rule `writers`: with starts that were read before the clock.
pub(super) fn writers(history: &mut History, tick: i64, starts: &[Start], names: &[&str]) -> Horizon {
    let writers = names.iter().copied().map(writer).collect();
    history.observe(scan(tick, ScanResult::Writers { starts: starts.to_vec(), writers }), NO_MARGIN)
}

pub(super) fn reported(pid: i32, transaction: Option<i64>, message: Option<i64>) -> Session {
    let activity = Activity::Reported { transaction: transaction.map(at), message: message.map(at) };
    Session { pid, application: None, activity }
}

pub(super) fn running(transaction: &str, pid: Option<i32>) -> Running {
    Running { transaction: transaction.to_owned(), pid, session_began: pid.map(|_| at(1)), login_trigger: false }
}

pub(super) fn sessions(history: &mut History, tick: i64, sessions: &[Session], running: &[Running]) -> Horizon {
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
