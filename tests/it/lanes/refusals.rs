//! What lanes cannot be together with is refused by name.

use super::{Stage, book, one, refuse};
use crate::support::outside::json;
use crate::support::relays::parse;
use crate::support::{PATIENCE, Replica, eventually, outbox_relay};
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
