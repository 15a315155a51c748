//! What holds up a lane, and what holds up all.

use std::time::Duration;

use tokio_postgres::Client;

use super::{Stage, ahead, book, by_customer, customer, each_once, in_order, one, position, refuse};
use crate::support::outside::json;
use crate::support::relays::parse;
use crate::support::{PATIENCE, Replica, eventually, outbox_relay};

async fn dead_letters(owner: &Client) -> Vec<String> {
    let sql = "SELECT message_id FROM outbox.dead_letter WHERE state = 'dead' ORDER BY created_at, message_id::bigint";
    owner.query(sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn server_error_of_one_row_holds_up_its_lane_alone() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("k3", 503, Duration::from_millis(5)));
    book(owner, 100, 10).await;
    let text = stage.text(5, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || receiver.accepted("h").len() == 90).await;
    let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
    let status = json(&out)["cursors"][0].clone();
    assert_eq!(status["last_error"]["code"], "http_503", "{status}");
    assert!(status["last_error"]["message"].as_str().unwrap().contains("lane"), "{status}");
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("100")).await;
    replica.stop().await;
    each_once(receiver, 100);
    in_order(receiver);
    let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
    assert!(json(&out)["cursors"][0]["last_error"].is_null(), "{out}");
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_that_is_out_is_tried_seldom_and_nothing_is_lost() {
    let mut stage = Stage::new().await;
    stage.receiver.down();
    book(&stage.owner, 200, 50).await;
    let text = stage.text(20, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || {
        let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
        json(&out)["cursors"][0]["state"] == "backing_off"
    })
    .await;
    stage.receiver.answer(|_| (503, Duration::ZERO));
    stage.receiver.up();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let asked = stage.receiver.requests().len();
    assert!(asked < 100, "{asked} requests in two seconds");
    stage.receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 4, async || position(&stage.owner).await.as_deref() == Some("200")).await;
    replica.stop().await;
    each_once(&stage.receiver, 200);
    in_order(&stage.receiver);
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_holds_over_all_lanes() {
    let stage = Stage::new().await;
    stage.receiver.answer(|_| (200, Duration::from_millis(100)));
    book(&stage.owner, 60, 60).await;
    let text = stage.text(20, "", "").replace("[relay.sink.http]\n", "[relay.sink.http]\nrate_per_second = 40\n");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || position(&stage.owner).await.as_deref() == Some("60")).await;
    replica.stop().await;
    each_once(&stage.receiver, 60);
    let requests = stage.receiver.requests();
    let took = requests[59].at.duration_since(requests[0].at).unwrap();
    assert!(took >= Duration::from_millis(59 * 1000 / 40 - 30), "{took:?}");
    let most = requests.iter().map(|request| request.at_once).max().unwrap();
    assert!(most > 1, "side by side: {most}");
}

// Guarantee: lanes.poison
#[tokio::test(flavor = "multi_thread")]
async fn poison_halts_or_is_dead_lettered_in_its_place() {
    for (policy, accepted) in [("halt", 91), ("dead_letter", 99)] {
        let stage = Stage::new().await;
        let Stage { owner, receiver, .. } = &stage;
        receiver.answer(|request| (if request.key == "h/14" { 422 } else { 200 }, Duration::from_millis(2)));
        book(owner, 100, 10).await;
        let text = stage.text(6, &format!("on_poison = \"{policy}\"\n"), "");
        let replica = Replica::start(&parse(&text), "r1");
        if policy == "halt" {
            eventually(PATIENCE * 2, async || {
                let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
                json(&out)["cursors"][0]["state"] == "halted"
            })
            .await;
            assert_eq!(position(owner).await.as_deref(), Some("13"));
            assert!(receiver.accepted("h").len() <= accepted, "only row 4 of the lane stands before row 14");
            receiver.answer(|_| (200, Duration::ZERO));
            let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "h"]).await;
            assert_eq!(code, Some(0), "{log}");
            eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("100")).await;
            each_once(receiver, 100);
        } else {
            eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("100")).await;
            assert_eq!(dead_letters(owner).await, ["14"]);
            each_once(receiver, accepted);
        }
        replica.stop().await;
        in_order(receiver);
        assert_eq!(ahead(owner).await, 0, "{policy}");
    }
}

// Guarantee: lanes.poison
#[tokio::test(flavor = "multi_thread")]
async fn poison_parks_its_lane_and_lane_that_is_retried_too_long_is_parked() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|request| {
        let status = match customer(request) {
            "k4" => 422,
            "k7" => 503,
            _ => 200,
        };
        (status, Duration::from_millis(2))
    });
    book(owner, 100, 10).await;
    let text = stage.text(6, "on_poison = \"park_key\"\n", "lane_hold = \"1s\"\n");
    let replica = Replica::start(&parse(&text), "r1");
    // That the receiver accepts others tells a lane that is refused from an outage.
    eventually(PATIENCE * 4, async || {
        one(owner, "z").await;
        dead_letters(owner).await == ["4", "7"]
    })
    .await;
    let others: i64 = owner.query_one("SELECT count(*) FROM bookings WHERE customer = 'z'", &[]).await.unwrap().get(0);
    let others = usize::try_from(others).unwrap();
    // The later rows of a parked lane are recorded as they come into the window, and passed with that.
    let last = (100 + others).to_string();
    eventually(PATIENCE * 2, async || position(owner).await.as_ref() == Some(&last)).await;
    assert_eq!(receiver.accepted("h").len(), 80 + others);
    let parked = "SELECT key, count(*) FROM outbox.parked GROUP BY key ORDER BY key";
    let parked: Vec<(String, i64)> =
        owner.query(parked, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(parked, [("k4".to_owned(), 10), ("k7".to_owned(), 10)]);
    each_once(receiver, 80 + others);
    receiver.answer(|_| (200, Duration::ZERO));
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE * 4, async || receiver.accepted("h").len() == 100 + others).await;
    replica.stop().await;
    in_order(receiver);
    assert_eq!(by_customer(receiver)["k7"], (0..10).map(|n| n * 10 + 7).collect::<Vec<i64>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn full_window_makes_all_wait_until_the_lane_goes_on() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    one(owner, "a").await;
    book(owner, 300, 30).await;
    let text = stage.text(8, "", "window = 100\nrows = 50\n");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || ahead(owner).await >= 99).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let accepted = receiver.accepted("h").len();
    assert!((99..=150).contains(&accepted), "{accepted} beyond a window of 100");
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 4, async || position(owner).await.as_deref() == Some("301")).await;
    replica.stop().await;
    each_once(receiver, 301);
    in_order(receiver);
}

/// Rows behind one that has no room were in memory already, and must not be taken.
// Guarantee: lanes.poison
#[tokio::test(flavor = "multi_thread")]
async fn no_row_is_passed_behind_a_key_that_is_full() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|request| (if customer(request) == "full" { 422 } else { 200 }, Duration::ZERO));
    one(owner, "full").await;
    one(owner, "full").await;
    let text = stage.text(50, "on_poison = \"park_key\"\npark_limit = 2\n", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || position(owner).await.as_deref() == Some("2")).await;
    replica.stop().await;
    // 3 has no room; 4 to 4,003 stand behind it.
    one(owner, "full").await;
    book(owner, 4_000, 500).await;
    let replica = Replica::start(&parse(&text), "r2");
    eventually(PATIENCE * 2, async || {
        let (_, out, _) = outbox_relay(&text, &["status", "-o", "json"]).await;
        json(&out)["cursors"][0]["last_error"]["code"] == "park_limit"
    })
    .await;
    assert_eq!(position(owner).await.as_deref(), Some("2"));
    receiver.answer(|_| (200, Duration::ZERO));
    let (code, _, log) = outbox_relay(&text, &["dead-letter", "redrive", "--cursor", "h", "--yes"]).await;
    assert_eq!(code, Some(0), "{log}");
    let (code, _, log) = outbox_relay(&text, &["cursor", "resume", "h"]).await;
    assert_eq!(code, Some(0), "{log}");
    eventually(PATIENCE * 6, async || receiver.accepted("h").len() >= 4_003).await;
    replica.stop().await;
    each_once(receiver, 4_003);
    in_order(receiver);
}

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn backlog_of_one_lane_keeps_no_other_waiting() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (200, Duration::from_millis(10)));
    book(owner, 5_000, 1).await;
    one(owner, "b").await;
    let replica = Replica::start(&parse(&stage.text(8, "", "")), "r1");
    eventually(PATIENCE, async || receiver.accepted("h").contains(&"5001".to_owned())).await;
    let of_the_first = receiver.accepted("h").len();
    assert!(of_the_first < 1_000, "{of_the_first} before it");
    replica.stop().await;
    in_order(receiver);
}

#[tokio::test(flavor = "multi_thread")]
async fn receiver_that_wants_fewer_requests_slows_all_lanes_and_parks_none() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (429, Duration::ZERO));
    book(owner, 100, 50).await;
    let text = stage.text(10, "on_poison = \"park_key\"\n", "lane_hold = \"1s\"\n");
    let replica = Replica::start(&parse(&text), "r1");
    tokio::time::sleep(Duration::from_secs(4)).await;
    let asked = receiver.requests().len();
    assert!(asked < 120, "{asked} requests in four seconds");
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 4, async || position(owner).await.as_deref() == Some("100")).await;
    replica.stop().await;
    each_once(receiver, 100);
    assert_eq!(dead_letters(owner).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn outage_longer_than_the_hold_parks_no_lane() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|_| (503, Duration::ZERO));
    book(owner, 60, 30).await;
    let text = stage.text(10, "on_poison = \"park_key\"\n", "lane_hold = \"1s\"\n");
    let replica = Replica::start(&parse(&text), "r1");
    tokio::time::sleep(Duration::from_secs(5)).await;
    receiver.answer(|_| (200, Duration::ZERO));
    eventually(PATIENCE * 4, async || position(owner).await.as_deref() == Some("60")).await;
    replica.stop().await;
    each_once(receiver, 60);
    assert_eq!(dead_letters(owner).await.len(), 0);
}

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn lanes_that_always_fail_keep_no_other_from_a_receiver_that_works() {
    let stage = Stage::new().await;
    let Stage { owner, receiver, .. } = &stage;
    receiver.answer(|request| (if customer(request).starts_with("bad") { 503 } else { 200 }, Duration::ZERO));
    for bad in ["bad1", "bad2", "bad3", "bad4", "bad5", "bad6"] {
        one(owner, bad).await;
    }
    let replica = Replica::start(&parse(&stage.text(50, "", "")), "r1");
    let opened = "SELECT count(*) FROM outbox.cursor_status WHERE circuit_opened_at IS NOT NULL";
    eventually(PATIENCE * 4, async || owner.query_one(opened, &[]).await.unwrap().get::<_, i64>(0) == 1).await;
    book(owner, 100, 20).await;
    eventually(PATIENCE * 4, async || receiver.accepted("h").len() == 100).await;
    replica.stop().await;
    in_order(receiver);
}
