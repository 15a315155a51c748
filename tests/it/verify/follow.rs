//! `verify --follow` says what it finds as it goes, and reports in the end.

use rustix::process::Signal;

use super::{delivered, insert, put, with};
use crate::support::{PATIENCE, Process, eventually};

// Guarantee: verify.follow
#[tokio::test(flavor = "multi_thread")]
async fn differences_are_printed_as_they_are_found_and_reported_after_a_signal() {
    let relay = delivered(5).await;
    let mut process = Process::spawn(&relay.text, &["verify", "events", "--follow"]);
    insert(&relay.owner, 3).await;
    super::drain(&relay.text).await;
    let all = relay.records().await;
    put(&relay.topic, &[with(&all[7], "id", "99")]).await;
    eventually(PATIENCE * 3, async || process.out().contains("events: 99  ")).await;
    process.signal(Signal::INT);
    assert_eq!(process.wait().await, Some(3), "{}", process.log());
    let out = process.out();
    assert!(out.contains("not_in_table") && out.contains("\nevents: different: 1 not_in_table\n"), "{out}");
    assert!(out.contains("8 rows, 8 delivered"), "{out}");
}
