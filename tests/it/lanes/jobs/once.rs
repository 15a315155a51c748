//! Lanes of due rows under `at_most_once`: nothing is sent twice, each lane in order, and what may be missing is listed.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::process::Signal;
use tokio_postgres::Client;

use super::{Source, Stage, in_order, lane, number, refuse};
use crate::support::relays::parse;
use crate::support::{PATIENCE, Process, Replica, eventually};

const ONCE: &str = "guarantee = \"at_most_once\"";

async fn unknown(owner: &Client) -> BTreeSet<i64> {
    let sql = "SELECT key[1] FROM outbox.claim WHERE relay = 'h' AND state = 'unknown'";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0).parse().unwrap()).collect()
}

/// Nothing listens: what is marked was provably not sent, waits marked, and its lane waits for it.
// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn due_row_that_was_marked_and_not_sent_is_sent_before_others_of_its_lane() {
    let mut stage = Stage::new(Source::Due).await;
    stage.receiver.down();
    stage.add(60, 6).await;
    let text = stage.text(4, [ONCE, "", ""]);
    let replica = Replica::start(&parse(&text), "r1");
    let waiting = "SELECT count(*) FROM outbox.claim WHERE state = 'waiting' AND marked";
    eventually(PATIENCE, async || stage.owner.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 2).await;
    stage.receiver.up();
    eventually(PATIENCE * 4, async || stage.accepted().len() == 60).await;
    replica.stop().await;
    in_order(&stage.receiver);
    assert_eq!(stage.receiver.requests().len(), 60, "none twice");
    assert_eq!(unknown(&stage.owner).await, BTreeSet::new());
}

// Guarantee: lanes.jobs
#[tokio::test(flavor = "multi_thread")]
async fn kills_under_at_most_once_send_no_job_twice_and_keep_each_lane_in_order() {
    let stage = Stage::new(Source::Due).await;
    stage.receiver.answer(|_| (200, Duration::from_millis(30)));
    stage.add(600, 20).await;
    let text = stage.text(8, [ONCE, "deadline = \"1s\"", "timeout = \"500ms\""]);
    let start = |name: String| Process::spawn(&text, &["run", "--replica-id", &name]);
    let mut replicas = [0, 1, 2].map(|n| start(format!("r{n}")));
    for kill in 0..6 {
        let at_least = stage.receiver.requests().len() + 40;
        eventually(PATIENCE * 2, async || stage.receiver.requests().len() >= at_least).await;
        let which = kill % 3;
        replicas[which].signal(Signal::KILL);
        replicas[which].wait().await;
        replicas[which] = start(format!("r{which}-{kill}"));
    }
    let claims = "SELECT count(*) FROM outbox.claim WHERE state <> 'unknown'";
    eventually(PATIENCE * 6, async || {
        stage.left().await == 0 && stage.owner.query_one(claims, &[]).await.unwrap().get::<_, i64>(0) == 0
    })
    .await;
    drop(replicas);
    let (asked, unknown) = (stage.receiver.requests(), unknown(&stage.owner).await);
    let distinct: BTreeSet<i64> = asked.iter().map(number).collect();
    assert_eq!(asked.len(), distinct.len(), "sent twice");
    let missing: BTreeSet<i64> = (1..=600).filter(|number| !distinct.contains(number)).collect();
    println!("{} unknown, {} of them missing", unknown.len(), missing.len());
    assert!(missing.is_subset(&unknown), "missing and not listed: {missing:?}");
    for of in (0..20).map(|n| format!("k{n}")) {
        let numbers: Vec<i64> = asked.iter().filter(|request| lane(request) == of).map(number).collect();
        assert!(numbers.is_sorted(), "{of}: {numbers:?}");
    }
}

/// Without a clear answer it is passed, and its lane goes on.
#[tokio::test(flavor = "multi_thread")]
async fn due_row_without_clear_answer_is_listed_and_its_lane_continues() {
    let stage = Stage::new(Source::Due).await;
    stage.receiver.answer(refuse("a", 500, Duration::ZERO));
    let first = stage.one("a").await;
    stage.add(40, 10).await;
    let replica = Replica::start(&parse(&stage.text(4, [ONCE, "", ""])), "r1");
    eventually(PATIENCE * 2, async || stage.accepted().len() == 40).await;
    assert_eq!(unknown(&stage.owner).await, BTreeSet::from([first]));
    stage.receiver.answer(|_| (200, Duration::ZERO));
    let second = stage.one("a").await;
    eventually(PATIENCE * 2, async || stage.accepted().contains(&second)).await;
    replica.stop().await;
}
