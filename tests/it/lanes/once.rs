//! Lanes under `at_most_once`: nothing is sent twice, each lane keeps its order, and what may be missing is listed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rustix::process::Signal;
use tokio_postgres::Client;

use super::{Stage, book, customer, each_once, in_order, one, position, refuse};
use crate::support::outside::halted;
use crate::support::relays::parse;
use crate::support::{PATIENCE, Process, Replica, eventually, outbox_relay};

const ONCE: &str = "guarantee = \"at_most_once\"\n";

/// The rows that are listed as unknown.
async fn unknown(owner: &Client) -> BTreeSet<i64> {
    let sql = "SELECT key[1] FROM outbox.claim WHERE relay = 'h' AND state = 'unknown'";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get::<_, String>(0).parse().unwrap()).collect()
}

/// How many rows are remembered beyond the position.
async fn beyond(owner: &Client) -> i64 {
    let sql = "SELECT count(*) FROM outbox.ahead AS a JOIN outbox.cursor AS c ON c.name = a.cursor \
               WHERE c.position_created_at IS NULL OR a.created_at > c.position_created_at";
    owner.query_one(sql, &[]).await.unwrap().get(0)
}

/// The ids of all requests by customer, in the order in which they came, accepted or not.
fn asked(stage: &Stage) -> BTreeMap<String, Vec<i64>> {
    let mut by = BTreeMap::<String, Vec<i64>>::new();
    for request in stage.receiver.requests() {
        let id = request.key.strip_prefix("h/").unwrap().parse().unwrap();
        by.entry(customer(&request).to_owned()).or_default().push(id);
    }
    by
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_lanes_run_side_by_side_and_each_in_order() {
    let stage = Stage::new().await;
    stage.receiver.answer(|_| (200, Duration::from_millis(20)));
    book(&stage.owner, 300, 30).await;
    let replica = Replica::start(&parse(&stage.text(10, ONCE, "")), "r1");
    eventually(PATIENCE * 2, async || position(&stage.owner).await.as_deref() == Some("300")).await;
    replica.stop().await;
    each_once(&stage.receiver, 300);
    in_order(&stage.receiver);
    let most = stage.receiver.requests().iter().map(|request| request.at_once).max().unwrap();
    assert!((5..=10).contains(&most), "{most} at a time");
    assert_eq!(unknown(&stage.owner).await, BTreeSet::new());
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_one_row_of_a_lane_is_on_its_way_at_a_time() {
    let stage = Stage::new().await;
    stage.receiver.answer(|_| (200, Duration::from_millis(fastrand::u64(1..15))));
    book(&stage.owner, 120, 3).await;
    let replica = Replica::start(&parse(&stage.text(10, ONCE, "")), "r1");
    eventually(PATIENCE * 2, async || position(&stage.owner).await.as_deref() == Some("120")).await;
    replica.stop().await;
    each_once(&stage.receiver, 120);
    in_order(&stage.receiver);
    let most = stage.receiver.requests().iter().map(|request| request.at_once).max().unwrap();
    assert!((2..=3).contains(&most), "{most} at a time, of three lanes");
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_what_was_accepted_beyond_a_waiting_lane_is_never_sent_again() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 400, Duration::ZERO));
    book(owner, 20, 20).await;
    one(owner, "a").await;
    book(owner, 200, 20).await;
    let text = stage.text(8, ONCE, "");
    // Each time some are sent beyond the row that is refused; the second turn must remember what the first has sent.
    let mut sent = 20;
    for replica in ["r1", "r2"] {
        let replica = Replica::start(&parse(&text), replica);
        halted(owner, "h").await;
        replica.stop().await;
        let accepted = receiver.accepted("h").len();
        assert_eq!(beyond(owner).await, i64::try_from(accepted - 20).unwrap(), "of {accepted} that were accepted");
        assert!(accepted > sent && accepted < 220, "{accepted} after {sent}");
        sent = accepted;
        let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "h"]).await;
        assert_eq!(code, Some(0), "{log}");
    }
    receiver.answer(|_| (200, Duration::ZERO));
    let replica = Replica::start(&parse(&text), "r3");
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("221")).await;
    replica.stop().await;
    each_once(receiver, 221);
    in_order(receiver);
    assert_eq!((beyond(owner).await, unknown(owner).await), (0, BTreeSet::new()));
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_backlog_of_one_lane_keeps_no_other_waiting() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (200, Duration::from_millis(10)));
    book(owner, 5_000, 1).await;
    one(owner, "b").await;
    let replica = Replica::start(&parse(&stage.text(8, ONCE, "")), "r1");
    eventually(PATIENCE, async || receiver.accepted("h").contains(&"5001".to_owned())).await;
    let of_the_first = receiver.accepted("h").len();
    assert!(of_the_first < 200, "{of_the_first} before it");
    replica.stop().await;
    in_order(receiver);
}

/// With few lanes no number of them says that the receiver is out.
// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_a_receiver_that_gives_no_clear_answer_costs_few_rows() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (503, Duration::ZERO));
    book(owner, 3_000, 2).await;
    let replica = Replica::start(&parse(&stage.text(8, ONCE, "")), "r1");
    eventually(PATIENCE, async || unknown(owner).await.len() >= 3).await;
    // What is measured is the cost of an outage of four seconds.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let cost = unknown(owner).await.len();
    println!("four seconds of 503 cost {cost} rows");
    assert!(cost < 40, "{cost}");
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 6, async || position(owner).await.as_deref() == Some("3000")).await;
    replica.stop().await;
    in_order(receiver);
    let asked = receiver.requests().len();
    assert_eq!(asked, 3_000, "each was sent once");
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn killed_replicas_send_no_row_of_a_lane_twice_and_list_what_may_be_missing() {
    const IN_FLIGHT: usize = 8;
    const KILLS: usize = 12;
    const EACH: i64 = 120;
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (200, Duration::from_millis(fastrand::u64(2..30))));
    let text = stage.text(IN_FLIGHT, ONCE, "");
    let start = |name: String| Process::spawn(&text, &["run", "--replica-id", &name]);
    let mut replicas = [0, 1, 2].map(|n| start(format!("r{n}")));
    for kill in 0..KILLS {
        book(owner, EACH, 30).await;
        let at_least = receiver.accepted("h").len() + 20;
        eventually(PATIENCE * 3, async || receiver.accepted("h").len() >= at_least).await;
        tokio::time::sleep(Duration::from_micros(fastrand::u64(0..30_000))).await;
        let holder: Option<String> =
            owner.query_one("SELECT advanced_by FROM outbox.cursor", &[]).await.unwrap().get(0);
        let named = holder.and_then(|holder| holder.strip_prefix('r')?.split('-').next()?.parse().ok());
        let which: usize = named.unwrap_or(0);
        replicas[which].signal(Signal::KILL);
        replicas[which].wait().await;
        replicas[which] = start(format!("r{which}-{kill}"));
    }
    let rows = EACH * i64::try_from(KILLS).unwrap();
    let last = rows.to_string();
    eventually(PATIENCE * 6, async || position(owner).await.as_deref() == Some(&last)).await;
    drop(replicas);
    let (asked, listed) = (asked(&stage), unknown(owner).await);
    let mut all = BTreeSet::new();
    for (lane, ids) in &asked {
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{lane}: twice or out of order: {ids:?}");
        all.extend(ids.iter().copied());
    }
    let missing: Vec<i64> = (1..=rows).filter(|id| !all.contains(id)).collect();
    println!("{KILLS} kills, {rows} rows: {} missing, {} listed as unknown", missing.len(), listed.len());
    assert!(missing.iter().all(|id| listed.contains(id)), "missing and not listed: {missing:?}");
    assert!(listed.len() <= KILLS * IN_FLIGHT * 4, "{} listed", listed.len());
    assert!(!listed.is_empty(), "no kill has met rows in flight");
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_a_row_without_a_clear_answer_is_listed_and_other_lanes_go_on() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|request| {
        let hangs = customer(request) == "a";
        (200, if hangs { Duration::from_millis(2_500) } else { Duration::from_millis(5) })
    });
    let first: i64 = one(owner, "a").await.parse().unwrap();
    book(owner, 60, 20).await;
    let text = stage.text(8, ONCE, "").replace("[relay.sink.http]\n", "[relay.sink.http]\ntimeout = \"1s\"\n");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("61")).await;
    replica.stop().await;
    assert_eq!(unknown(owner).await, BTreeSet::from([first]));
    let asked = asked(&stage);
    assert!(asked.values().all(|ids| ids.windows(2).all(|pair| pair[0] < pair[1])), "{asked:?}");
    assert_eq!(asked.values().map(Vec::len).sum::<usize>(), 61);
}

// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_skip_of_a_refused_row_has_no_other_sent_twice() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 400, Duration::ZERO));
    book(owner, 20, 20).await;
    one(owner, "a").await;
    book(owner, 100, 20).await;
    let text = stage.text(8, ONCE, "");
    let replica = Replica::start(&parse(&text), "r1");
    halted(owner, "h").await;
    let (code, out, log) = outbox_relay(&text, &["cursor", "skip", "h", "--id", "21", "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    eventually(PATIENCE * 3, async || position(owner).await.as_deref() == Some("121")).await;
    replica.stop().await;
    each_once(receiver, 120);
    in_order(receiver);
    assert_eq!((beyond(owner).await, unknown(owner).await), (0, BTreeSet::new()));
}

/// A move back is an operator's word that rows are sent again, which nothing else is.
// Guarantee: lanes.once
#[tokio::test(flavor = "multi_thread")]
async fn under_at_most_once_only_a_seek_back_has_rows_sent_again_each_lane_in_order() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (200, Duration::from_millis(fastrand::u64(1..10))));
    book(owner, 60, 10).await;
    let text = stage.text(8, ONCE, "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("60")).await;
    let (code, out, log) = outbox_relay(&text, &["cursor", "seek", "h", "--after-id", "20", "--yes"]).await;
    assert_eq!(code, Some(0), "{out}{log}");
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 100).await;
    eventually(PATIENCE, async || position(owner).await.as_deref() == Some("60")).await;
    replica.stop().await;
    let accepted: Vec<i64> = receiver.accepted("h").iter().map(|id| id.parse().unwrap()).collect();
    assert_eq!(accepted.len(), 100, "20 were sent once, 40 twice");
    for (rows, from) in [(&accepted[..60], 0), (&accepted[60..], 20)] {
        assert_eq!(rows.iter().copied().collect::<BTreeSet<_>>(), (from + 1..=60).collect::<BTreeSet<_>>());
        for lane in 0..10 {
            let of_lane: Vec<i64> = rows.iter().copied().filter(|id| id % 10 == lane).collect();
            assert!(of_lane.is_sorted(), "lane {lane}: {of_lane:?}");
        }
    }
    assert_eq!(unknown(owner).await, BTreeSet::new());
}
