//! What a collector answers beside yes and no: that it takes some of the spans, or none now, or nothing at all.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::{ended, exporting, metric};
use crate::support::collector::{Collector, Manner};
use crate::support::outside::{finding, json, lines, listener, stdout_relay};
use crate::support::{CLOCK, PATIENCE, Process, bookings, database, eventually, outbox_relay, toml};

const EXPORTED: &str = "outbox_relay_spans_exported_total";
const DROPPED: &str = "outbox_relay_spans_dropped_total";
const ROW: &str = "INSERT INTO bookings (payload) VALUES ('p')";

// Guarantee: observe.spans-partial
#[tokio::test(flavor = "multi_thread")]
async fn rejected_spans_are_counted_named_once_and_not_sent_again() {
    let (database, collector) = (database().await, Collector::start(Manner::Reject(1)).await);
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    let mut process = Process::spawn(&exporting(&text, &collector.url, "sample = 1"), &["run"]);
    let url = listener(&process).await;
    for turns in 1..=2 {
        owner.batch_execute(ROW).await.unwrap();
        // Batches are sent one after another: a retry of the first would come before the second.
        eventually(PATIENCE * 2, async || collector.spans().len() >= 2 * turns).await;
    }
    let counted = async || (metric(&url, EXPORTED).await, metric(&url, DROPPED).await);
    eventually(PATIENCE, async || {
        let (exported, dropped) = counted().await;
        exported + dropped == collector.spans().len() as f64
    })
    .await;
    assert_eq!(counted().await.1, collector.asked().len() as f64, "one of each request");
    let spans = collector.spans();
    let ids: HashSet<_> = spans.iter().map(|span| span.span.span_id.clone()).collect();
    assert_eq!(ids.len(), spans.len(), "none was sent again");
    assert_eq!(ended(&mut process).await, Some(0));
    let dropped = "spans dropped, and from now on only counted";
    let told: Vec<_> = lines(&process).into_iter().filter(|line| line["message"] == dropped).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["error"], "it rejects 1 of them: an attribute is too long");
}

// Guarantee: observe.spans-harmless
#[tokio::test(flavor = "multi_thread")]
async fn pause_that_a_collector_asks_for_is_kept_and_delays_no_exit() {
    let (database, collector) = (database().await, Collector::start(Manner::Later(429, 4)).await);
    let owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    let mut process = Process::spawn(&exporting(&text, &collector.url, "sample = 1"), &["run"]);
    let url = listener(&process).await;
    owner.batch_execute(ROW).await.unwrap();
    eventually(PATIENCE * 2, async || !collector.asked().is_empty()).await;
    collector.answer(Manner::Take);
    collector.span(|span| span.span.name == "turn events").await;
    let asked = collector.asked_at();
    // Without the answer's word it would be a second.
    assert!(asked[1] - asked[0] >= Duration::from_secs(4), "{:?}", asked[1] - asked[0]);
    eventually(PATIENCE, async || metric(&url, EXPORTED).await >= 2.0).await;
    assert_eq!(metric(&url, DROPPED).await, 0.0);
    collector.answer(Manner::Later(503, 3600));
    let before = collector.asked().len();
    owner.batch_execute(ROW).await.unwrap();
    eventually(PATIENCE * 2, async || collector.asked().len() > before).await;
    let begun = Instant::now();
    assert_eq!(ended(&mut process).await, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?} to end", begun.elapsed());
}

// Guarantee: observe.spans-check
#[tokio::test(flavor = "multi_thread")]
async fn check_asks_a_hanging_collector_within_its_timeout() {
    let (database, collector) = (database().await, Collector::start(Manner::Hang).await);
    let _owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    // Less than what the collector has for each export.
    let args = ["check", "-o", "json", "--timeout", "2s"];
    let (_, out, log) = outbox_relay(&exporting(&text, &collector.url, ""), &args).await;
    let document = json(&out);
    let found = finding(&document, "collector").unwrap_or_else(|| panic!("{out}{log}"));
    assert_eq!(found["level"], "warn", "{found}");
    assert!(found["message"].as_str().unwrap().contains("left of --timeout"), "{found}");
}
