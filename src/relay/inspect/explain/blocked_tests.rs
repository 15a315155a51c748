//! Of cursors that wait for others.

use super::*;
use crate::relay::inspect::facts::{Holder, Lock};

#[test]
fn a_held_cursor_names_the_session_and_the_exact_line_that_ends_it() {
    let session = |pid, age_seconds| Holder {
        pid: Some(pid),
        application: Some("batch".to_owned()),
        age_seconds,
        ..Holder::default()
    };
    let facts = CursorFacts { held: true, holders: vec![session(4711, Some(93.2)), session(12, None)], ..facts() };
    says(
        &facts,
        "held",
        false,
        &["held by pid 4711 (batch), open for 93 s, and 1 more"],
        &["SELECT pg_terminate_backend(4711);", "SELECT pg_terminate_backend(12);"],
    );
    let several = why(&facts);
    assert!(several.advice[0].starts_with("Let their owners end these transactions, the oldest first."), "{several:?}");
    assert!(several.advice[0].contains("pg_signal_backend"), "who may run the line: {several:?}");
    let unknown = CursorFacts { holders: vec![session(12, None)], ..facts };
    says(&unknown, "held", false, &["pid 12 (batch), open for at least 12 s:"], &[]);
    assert!(why(&unknown).advice[0].starts_with("Let its owner end the transaction."), "{unknown:?}");
}

#[test]
fn held_cursor_offers_no_transaction_that_is_younger_than_the_oldest_waiting_row() {
    let session = |pid, age_seconds| Holder { pid: Some(pid), age_seconds, ..Holder::default() };
    let holders = vec![session(4711, Some(12.5)), session(8, Some(0.004)), session(9, Some(6.0))];
    let facts = CursorFacts { held: true, holders, ..facts() };
    says(&facts, "held", false, &["held by pid 4711 (no application name), open for 12 s:"], &[]);
    let offered: Vec<_> = why(&facts).advice.into_iter().filter(|line| line.contains("pg_terminate")).collect();
    assert_eq!(offered, ["SELECT pg_terminate_backend(4711);"]);
    let young = CursorFacts { holders: vec![session(8, Some(0.004))], ..facts };
    says(&young, "held", false, &["held by a transaction that is gone by now"], &[]);
    assert!(!why(&young).advice.iter().any(|line| line.contains("pg_terminate")), "{young:?}");
}

#[test]
fn a_prepared_transaction_needs_its_own_end() {
    let prepared = |gid: Option<&str>| Holder { gid: gid.map(str::to_owned), ..Holder::default() };
    let facts = CursorFacts { held: true, holders: vec![prepared(Some("o'clock"))], ..facts() };
    says(
        &facts,
        "held",
        false,
        &["the prepared transaction o'clock"],
        &["ROLLBACK PREPARED 'o''clock';", "COMMIT PREPARED 'o''clock';"],
    );
    assert!(!why(&facts).advice.iter().any(|line| line.contains("pg_terminate_backend")));
    let nameless = CursorFacts { holders: vec![prepared(None)], ..facts };
    let look = ["SELECT gid, prepared, owner FROM pg_prepared_xacts ORDER BY prepared;"];
    says(&nameless, "held", false, &["a prepared transaction"], &look);
}

#[test]
fn a_lock_that_does_not_advance_names_its_process() {
    let lock = Lock { by: "r1".to_owned(), pid: 99, age_seconds: Some(4.0), waits_for_standby: false };
    let facts = CursorFacts { lock: Some(lock), ..facts() };
    says(&facts, "lock_held", false, &["held by r1 (pid 99) for 4 s"], &["SELECT pg_terminate_backend(99);"]);
}

#[test]
fn a_commit_that_waits_for_a_standby_is_not_to_be_ended() {
    let lock = Lock { by: "r1".to_owned(), pid: 99, age_seconds: Some(32.0), waits_for_standby: true };
    let facts = CursorFacts { lock: Some(lock), ..facts() };
    let look = ["SELECT pid, application_name, state, sync_state, flush_lsn FROM pg_stat_replication;"];
    says(&facts, "lock_held", false, &["r1 (pid 99) waits for a synchronous standby"], &look);
    assert!(!why(&facts).advice.iter().any(|line| line.contains("pg_terminate_backend")));
}

#[test]
fn prepared_transaction_that_has_the_lock_is_named_with_what_ends_it() {
    let facts = CursorFacts { prepared_lock: Some("it's".to_owned()), ..facts() };
    let told = ["held by the prepared transaction it's; "];
    says(&facts, "lock_held", false, &told, &["ROLLBACK PREPARED 'it''s';", "COMMIT PREPARED 'it''s';"]);
}

#[test]
fn rows_that_no_replica_takes_say_so() {
    says(
        &facts(),
        "not_taken",
        false,
        &["replicas run (r1), and none of them takes booking_sms"],
        &["outbox-relay check"],
    );
}
