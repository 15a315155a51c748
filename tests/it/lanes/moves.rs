//! What changes while rows beyond the position are accepted: a move, a skip, an adoption, a filter, the end of a replica.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;

use super::{Stage, ahead, book, customer, each_once, in_order, one, position, refuse};
use crate::support::outside::halted;
use crate::support::relays::parse;
use crate::support::{PATIENCE, Process, Replica, eventually, outbox_relay};

async fn verb(text: &str, args: &[&str]) {
    let (code, out, log) = outbox_relay(text, args).await;
    assert_eq!(code, Some(0), "{args:?}: {out}{log}");
}

// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn seek_forward_has_no_row_sent_again_that_was_acknowledged_ahead() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    one(owner, "a").await;
    book(owner, 40, 10).await;
    let text = stage.text(4, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || ahead(owner).await == 40).await;
    verb(&text, &["cursor", "seek", "h", "--after-id", "20", "--yes"]).await;
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("41")).await;
    one(owner, "b").await;
    eventually(PATIENCE * 2, async || receiver.accepted("h").contains(&"42".to_owned())).await;
    replica.stop().await;
    each_once(receiver, 41);
    in_order(receiver);
}

/// The position stays, and what lies beyond it and was accepted by the former target stays accepted, too.
// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn adopted_target_gets_no_row_that_was_acknowledged_ahead() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    one(owner, "a").await;
    book(owner, 40, 10).await;
    let text = stage.text(4, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || ahead(owner).await == 40).await;
    replica.stop().await;
    let other = text.replace("/rows\"", "/other\"");
    let replica = Replica::start(&parse(&other), "r2");
    let (_, error) = halted(owner, "h").await;
    assert_eq!(error["code"], "identity_changed", "{error}");
    receiver.answer(|_| (200, Duration::ZERO));
    verb(&other, &["cursor", "adopt", "h", "--yes", "--timeout", "20s"]).await;
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("41")).await;
    replica.stop().await;
    each_once(receiver, 41);
    in_order(receiver);
}

// Guarantee: filter.matches
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_do_not_match_are_passed_beside_a_lane_that_waits() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    one(owner, "a").await;
    let mixed = "INSERT INTO bookings (customer, payload) SELECT 'k' || n % 10, CASE n % 3 WHEN 0 THEN 'p' ELSE 'q' END \
                 FROM generate_series(1, 90) AS n";
    owner.batch_execute(mixed).await.unwrap();
    let table = "table = \"public.bookings\"\n";
    let text = stage.text(4, "", "").replace(table, &format!("{table}where = {{ payload = \"p\" }}\n"));
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 30).await;
    assert_eq!(position(owner).await, None, "the first row waits");
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 4, async || position(owner).await.as_deref() == Some("91")).await;
    replica.stop().await;
    each_once(receiver, 31);
    in_order(receiver);
    let all_match = receiver.requests().iter().all(|request| request.body.ends_with(" p"));
    assert!(all_match, "no other is sent");
}

/// As long as the grace period lasts.
// Guarantee: lanes.crash
#[tokio::test(flavor = "multi_thread")]
async fn drain_cuts_no_request_and_repeats_none() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (200, Duration::from_millis(700)));
    book(owner, 90, 30).await;
    let text = stage.text(20, "", "");
    for name in ["r1", "r2"] {
        let mut replica = Process::spawn(&text, &["run", "--replica-id", name]);
        let before = receiver.requests().len();
        eventually(PATIENCE * 2, async || receiver.requests().len() >= before + 10).await;
        replica.signal(Signal::TERM);
        assert_eq!(replica.wait().await, Some(0), "{}", replica.log());
        let cut: Vec<String> =
            receiver.requests().iter().filter(|request| request.status == 0).map(|cut| cut.key.clone()).collect();
        assert!(cut.is_empty(), "{name}: not waited for: {cut:?}");
    }
    let sent = receiver.requests().len();
    assert!(sent < 90, "{sent} sent before the end: nothing was left to be repeated");
    let replica = Replica::start(&parse(&text), "r3");
    eventually(PATIENCE * 4, async || position(owner).await.as_deref() == Some("90")).await;
    replica.stop().await;
    each_once(receiver, 90);
    in_order(receiver);
    let customers: BTreeSet<String> = receiver.requests().iter().map(|request| customer(request).to_owned()).collect();
    assert_eq!(customers.len(), 30);
}

// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn seek_back_has_rows_sent_again_that_were_acknowledged_ahead() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    book(owner, 10, 10).await;
    one(owner, "a").await;
    book(owner, 20, 10).await;
    let text = stage.text(4, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 30).await;
    eventually(PATIENCE, async || position(owner).await.as_deref() == Some("10") && ahead(owner).await == 20).await;
    let (code, out, log) = outbox_relay(&text, &["cursor", "seek", "h", "--beginning", "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    eventually(PATIENCE, async || receiver.accepted("h").len() == 60).await;
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("31")).await;
    replica.stop().await;
    in_order(receiver);
}

// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn skip_of_a_row_that_waits_has_no_other_row_sent_again() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    book(owner, 10, 10).await;
    one(owner, "a").await;
    book(owner, 40, 10).await;
    let text = stage.text(4, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("10") && ahead(owner).await == 40).await;
    let (code, out, log) = outbox_relay(&text, &["cursor", "skip", "h", "--id", "11", "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("51")).await;
    replica.stop().await;
    each_once(receiver, 50);
}
