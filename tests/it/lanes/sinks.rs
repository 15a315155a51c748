//! Lanes of email, and what an operator is told of a lane that waits.

use std::collections::BTreeSet;
use std::time::Duration;

use outbox_testkit::smtp::{Behaviour, Security};

use super::{Stage, book, position, refuse};
use crate::support::post;
use crate::support::relays::parse;
use crate::support::tls::Showing;
use crate::support::{PATIENCE, Replica, eventually, outbox_relay};

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn lanes_of_email_take_no_more_than_its_connections() {
    let stage = post::Stage::start().await;
    let server = stage.server(Security::Tls, Showing::Right).await;
    server.behave(Behaviour::Slow(Duration::from_millis(50))).await.unwrap();
    for row in 0..45 {
        stage.add("Ann", &format!("ann{}@example.com", row % 15)).await;
    }
    let relay = stage.relay("mail", server.port(), "tls", "connections = 3");
    let text = stage.toml(&format!("{relay}[relay.turn]\nin_flight = 20\n"));
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 4, async || server.received().len() == 45).await;
    replica.stop().await;
    // A connection takes one mail at a time.
    assert_eq!(server.connections(), 3, "side by side, and no more");
    let mails = server.received();
    let ids: Vec<&str> = mails.iter().flat_map(|mail| mail.header("message-id")).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 45, "each once");
    for address in (0..15).map(|n| format!("ann{n}@example.com")) {
        let of_lane = mails.iter().filter(|mail| mail.to == [address.clone()]);
        let rows: Vec<i64> = of_lane.flat_map(|mail| mail.header("message-id")).map(row).collect();
        assert!(rows.len() == 3 && rows.is_sorted(), "{address}: {rows:?}");
    }
}

/// The row of a Message-ID.
fn row(id: &str) -> i64 {
    id.trim_start_matches("<mail/").split('@').next().unwrap().parse().unwrap()
}

// Guarantee: lanes.order
#[tokio::test(flavor = "multi_thread")]
async fn why_names_row_whose_lane_waits_and_what_to_do() {
    let stage = Stage::new().await;
    stage.receiver.answer(refuse("k3", 503, Duration::ZERO));
    book(&stage.owner, 40, 10).await;
    let text = stage.text(5, "", "");
    let replica = Replica::start(&parse(&text), "r1");
    eventually(PATIENCE * 2, async || stage.receiver.accepted("h").len() == 36).await;
    let told = async || outbox_relay(&text, &["cursor", "why", "h"]).await;
    eventually(PATIENCE, async || told().await.1.contains("lane")).await;
    let (code, out, log) = told().await;
    assert_eq!(code, Some(3), "{out}{log}");
    for part in ["the lane of message 3 of h waits", "http_503", "only rows of its lane", "38 rows wait"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    // What it says is enough to have the lane go on.
    assert!(out.contains("outbox-relay cursor skip h --id 3 --dry-run"), "{out}");
    for row in ["3", "13", "23", "33"] {
        let (code, out, log) = outbox_relay(&text, &["cursor", "skip", "h", "--id", row, "--yes"]).await;
        assert_eq!(code, Some(0), "{out}{log}");
        eventually(PATIENCE * 2, async || {
            position(&stage.owner).await.is_some_and(|at| at.parse::<i64>().unwrap() >= row.parse().unwrap())
        })
        .await;
    }
    eventually(PATIENCE * 2, async || position(&stage.owner).await.as_deref() == Some("40")).await;
    replica.stop().await;
}
