//! What lanes cannot be together with is refused by name, and what `check` says of them.

use super::{Stage, ahead, book, one, refuse};
use crate::support::outside::{finding, json};
use crate::support::relays::parse;
use crate::support::{PATIENCE, Replica, eventually, outbox_relay, toml};
use std::time::Duration;

// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn at_most_once_halts_where_rows_ahead_would_be_sent_again() {
    let stage = Stage::new().await;
    stage.receiver.answer(refuse("a", 503, Duration::ZERO));
    one(&stage.owner, "a").await;
    book(&stage.owner, 5, 5).await;
    let replica = Replica::start(&parse(&stage.text(4, "", "")), "r1");
    eventually(PATIENCE * 2, async || stage.receiver.accepted("h").len() == 5).await;
    replica.stop().await;
    stage.receiver.answer(|_| (200, Duration::ZERO));
    let once = stage.text(4, "guarantee = \"at_most_once\"\n", "").replace("in_flight = 4\nlane = \"customer\"\n", "");
    let replica = Replica::start(&parse(&once), "r2");
    eventually(PATIENCE * 2, async || {
        let (_, out, _) = outbox_relay(&once, &["status", "-o", "json"]).await;
        json(&out)["cursors"][0]["last_error"]["code"] == "rows_ahead"
    })
    .await;
    replica.stop().await;
    assert_eq!(stage.receiver.accepted("h").len(), 5);
}

/// The new cursors begin where the old one stands, and would send again what was accepted beyond.
// Guarantee: lanes.ahead
#[tokio::test(flavor = "multi_thread")]
async fn shards_replace_no_lanes_while_rows_beyond_the_position_are_accepted() {
    let stage = Stage::new().await;
    let Stage { database, owner, receiver } = &stage;
    receiver.answer(refuse("a", 503, Duration::ZERO));
    one(owner, "a").await;
    book(owner, 5, 5).await;
    let replica = Replica::start(&parse(&stage.text(4, "", "")), "r1");
    eventually(PATIENCE * 2, async || ahead(owner).await == 5).await;
    replica.stop().await;
    let relay = receiver.relay("h", "shards = 2\nshard_key = \"customer\"");
    let sharded = toml(database, "postgres", None, &relay);
    let (code, out, log) = outbox_relay(&sharded, &["migrate", "up", "--indexes"]).await;
    assert_eq!(code, Some(0), "{out} {log}");
    let (code, out, log) = outbox_relay(&sharded, &["cursor", "reshard", "h", "--timeout", "3s"]).await;
    assert!(code == Some(1) && log.contains("cursor h has not read what lies before"), "{code:?} {out} {log}");
    assert_eq!(ahead(owner).await, 5);
}

/// Of a stream one replica sends at a time; of jobs all do.
#[tokio::test(flavor = "multi_thread")]
async fn check_says_that_in_flight_of_a_stream_is_over_all_replicas() {
    let stage = Stage::new().await;
    let (_, out, log) = outbox_relay(&stage.text(50, "", ""), &["check", "-o", "json"]).await;
    let document = json(&out);
    let found = finding(&document, "messages_in_flight").unwrap_or_else(|| panic!("{out}{log}"));
    assert_eq!(found["message"], "up to 50 messages are on their way at a time, over all replicas");
    assert_eq!(found["level"], "ok");
    let plain = stage.text(50, "", "").replace("in_flight = 50\nlane = \"customer\"\n", "");
    let (_, out, _) = outbox_relay(&plain, &["check", "-o", "json"]).await;
    assert!(finding(&json(&out), "messages_in_flight").is_none(), "{out}");
}
