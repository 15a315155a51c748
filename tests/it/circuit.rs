//! A receiver that is out: its circuit opens, it is tried by one relay at a time with one message, nothing is counted
//! against any message, others go on, and everything arrives when it is back.

mod http;
mod kafka;

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_postgres::Client;

use crate::support::outside::{get, json};
use crate::support::{PATIENCE, Process, eventually, ids, outbox_relay};

/// What `status -o json` says of a cursor's sink: `open` or `closed`.
async fn circuit(text: &str, cursor: &str) -> Value {
    let (code, out, log) = outbox_relay(text, &["status", "-o", "json"]).await;
    assert_eq!(code, Some(0), "{log}");
    let cursors = json(&out)["cursors"].clone();
    cursors.as_array().unwrap().iter().find(|found| found["name"] == cursor).expect("the cursor")["sink"].clone()
}

/// Waits until these cursors' circuits are open, or closed, in the schema.
#[track_caller]
fn all_circuits<'a>(
    owner: &'a Client,
    cursors: &'a [&'a str],
    open: bool,
    patience: Duration,
) -> impl Future<Output = ()> + 'a {
    eventually(patience, move || async move {
        let sql = "SELECT count(*) FROM outbox.cursor_status WHERE cursor = ANY ($1) AND circuit_opened_at IS NOT NULL";
        let found: i64 = owner.query_one(sql, &[&cursors]).await.unwrap().get(0);
        usize::try_from(found).unwrap() == if open { cursors.len() } else { 0 }
    })
}

/// Waits until every replica's gauge of these cursors' circuits says so.
#[track_caller]
fn gauges<'a>(
    listeners: &'a [String],
    sink: &'a str,
    cursors: &'a [&'a str],
    value: u8,
) -> impl Future<Output = ()> + 'a {
    eventually(PATIENCE * 2, move || async move {
        for listener in listeners {
            let metrics = get(&format!("{listener}/metrics")).await.1;
            let says = |cursor: &&str| {
                let gauge = format!("outbox_relay_sink_circuit_open{{cursor=\"{cursor}\",sink=\"{sink}\"}} {value}\n");
                metrics.contains(&gauge)
            };
            if !cursors.iter().all(says) {
                return false;
            }
        }
        true
    })
}

/// `cursor why` names the open circuit, for scripts and for people.
async fn why_says_open(text: &str, cursor: &str) {
    let (code, out, log) = outbox_relay(text, &["cursor", "why", cursor, "-o", "json"]).await;
    let answer = json(&out);
    assert_eq!((code, &answer["reason"], &answer["ok"]), (Some(3), &"circuit_open".into(), &false.into()), "{log}");
    let open = format!("the sink of {cursor} is unavailable: its circuit is open since ");
    assert!(answer["summary"].as_str().unwrap().contains(&open), "{answer}");
}

/// A line with this beginning stands in the log of one of the replicas.
fn logged(replicas: &[Process], cursor: &str, message: &str) -> bool {
    let line = |line: &Value| {
        line["message"].as_str().is_some_and(|text| text.starts_with(message)) && line["cursor"] == cursor
    };
    replicas.iter().any(|replica| crate::support::outside::lines(replica).iter().any(line))
}

/// Rows inserted one by one come to this topic, which held `before`: the slowest one's time.
async fn others_go_on(owner: &Client, servers: &str, topic: &str, before: usize, rows: usize) -> Duration {
    let mut worst = Duration::ZERO;
    for count in before + 1..=before + rows {
        owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
        let begun = Instant::now();
        eventually(PATIENCE, || async { ids(servers, topic).await.len() >= count }).await;
        worst = worst.max(begun.elapsed());
    }
    worst
}

fn numbers(range: std::ops::RangeInclusive<usize>) -> Vec<String> {
    range.map(|id| id.to_string()).collect()
}
