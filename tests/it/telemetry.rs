//! Spans for an OpenTelemetry collector: what is exported, and that no collector is in the way of rows.

use std::time::{Duration, Instant};

use opentelemetry_proto::tonic::trace::v1::{span::SpanKind, status::StatusCode};
use outbox_testkit::hex;
use rustix::process::Signal;
use tokio_postgres::Client;

use crate::support::collector::{Collected, Collector, Manner};
use crate::support::gateway::{Gateway, Mood, sms_relay};
use crate::support::outside::{finding, get, json, line, lines, listener, printed, stdout_relay};
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, broker, database, eventually, kafka_relay, outbox_relay, toml, unique,
};

mod answers;
mod https;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

/// A trace context, exported or not.
fn traceparent(span: u64, is_sampled: bool) -> String {
    format!("00-{TRACE}-{span:016x}-0{}", u8::from(is_sampled))
}

/// Bookings with a trace context.
async fn traced_bookings(database: &Database) -> Client {
    let owner = bookings(database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD traceparent text").await.unwrap();
    owner
}

async fn insert(owner: &Client, traceparents: &[Option<String>]) {
    let sql = "INSERT INTO bookings (payload, traceparent) SELECT 'p', * FROM unnest($1::text[])";
    owner.execute(sql, &[&traceparents]).await.unwrap();
}

/// With these keys of `[telemetry]`.
fn exporting(toml: &str, collector: &str, more: &str) -> String {
    toml.replace("[admin]", &format!("[telemetry]\notlp = \"{collector}\"\n{more}\n[admin]"))
}

/// Another topic, and a relay to it.
async fn to_kafka(database: &Database, name: &str) -> (String, String) {
    let topic = unique(name);
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let text = toml(database, "relay", Some(&broker().await.bootstrap_servers()), &kafka_relay(name, &topic, ""));
    (topic, text)
}

async fn ended(process: &mut Process) -> Option<i32> {
    process.signal(Signal::TERM);
    process.wait().await
}

async fn metric(url: &str, name: &str) -> f64 {
    let (_, text) = get(&format!("{url}/metrics")).await;
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    value.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

// Guarantee: observe.spans
#[tokio::test(flavor = "multi_thread")]
async fn published_rows_have_a_span_linked_to_their_traces() {
    let (database, collector) = (database().await, Collector::start(Manner::Take).await);
    let owner = traced_bookings(&database).await;
    let (topic, text) = to_kafka(&database, "spans").await;
    insert(&owner, &[Some(traceparent(1, true)), None, Some(traceparent(2, true)), Some(traceparent(3, false))]).await;
    let text = exporting(&text, &collector.url, "sample = 0");
    let mut process = Process::spawn(&text, &["run", "--replica-id", "r1"]);
    let send = collector.span(|span| span.span.name == format!("send {topic}")).await;
    let turn = collector.span(|span| span.span.span_id == send.span.parent_span_id).await;
    assert_eq!(ended(&mut process).await, Some(0));
    let linked = |span: u64| (TRACE.to_owned(), format!("{span:016x}"));
    assert_eq!(send.links(), [linked(1), linked(2)], "to traces that are exported");
    let attribute = |key: &str| send.attribute(key).unwrap_or_default();
    assert_eq!(attribute("messaging.system"), "kafka");
    assert_eq!(attribute("messaging.destination.name"), topic);
    assert_eq!(attribute("messaging.operation.type"), "send");
    assert_eq!(attribute("messaging.batch.message_count"), "4");
    assert_eq!(attribute("outbox_relay.cursor"), "spans");
    assert_eq!(send.span.kind, SpanKind::Client as i32);
    assert_eq!((turn.span.name.as_str(), turn.span.kind), ("turn spans", SpanKind::Internal as i32));
    assert_eq!((&turn.span.trace_id, turn.span.parent_span_id.len()), (&send.span.trace_id, 0));
    assert_eq!(turn.attribute("outbox_relay.turn.result").as_deref(), Some("relayed"));
    assert_eq!(turn.of_resource("service.name").as_deref(), Some("outbox-relay"));
    assert_eq!(turn.of_resource("service.instance.id").as_deref(), Some("r1"));
    assert!(turn.span.start_time_unix_nano <= send.span.start_time_unix_nano);
    assert!(send.span.start_time_unix_nano <= send.span.end_time_unix_nano);
    assert!(send.span.end_time_unix_nano <= turn.span.end_time_unix_nano);
    assert!(turn.span.status.is_none() && send.span.status.is_none());
}

/// The spans that are there when the process has ended.
async fn exported(more: &str, traceparents: &[Option<String>]) -> Vec<Collected> {
    let (database, collector) = (database().await, Collector::start(Manner::Take).await);
    let owner = traced_bookings(&database).await;
    let (_, text) = to_kafka(&database, "sampled").await;
    insert(&owner, traceparents).await;
    let text = exporting(&text, &collector.url, more);
    let (code, _, log) = outbox_relay(&text, &["run", "--once"]).await;
    assert_eq!(code, Some(0), "{log}");
    collector.spans()
}

// Guarantee: observe.spans-sampled
#[tokio::test(flavor = "multi_thread")]
async fn turns_are_exported_as_their_rows_are_or_by_sample() {
    let spans = |spans: Vec<Collected>| spans.len();
    assert_eq!(spans(exported("sample = 0", &[None]).await), 0);
    assert_eq!(spans(exported("sample = 1", &[None]).await), 2);
    assert_eq!(spans(exported("sample = 1", &[Some(traceparent(1, false)), Some("no context".to_owned())]).await), 0);
    assert_eq!(spans(exported("sample = 1", &[Some("no context".to_owned())]).await), 2);
    assert_eq!(spans(exported("sample = 0", &[Some(traceparent(1, false)), Some(traceparent(2, true))]).await), 2);
}

// Guarantee: observe.spans
#[tokio::test(flavor = "multi_thread")]
async fn links_of_a_large_turn_are_bounded() {
    let traceparents: Vec<_> = (1..=5000).map(|span| Some(traceparent(span, true))).collect();
    let spans = exported("sample = 0", &traceparents).await;
    let links: Vec<usize> = spans.iter().map(|span| span.span.links.len()).collect();
    assert_eq!(links.iter().max(), Some(&32), "{links:?}");
}

// Guarantee: observe.spans-failed
#[tokio::test(flavor = "multi_thread")]
async fn log_of_a_failed_turn_names_its_exported_trace() {
    let (database, collector, gateway) =
        (database().await, Collector::start(Manner::Take).await, Gateway::start().await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("ALTER TABLE bookings ADD phone text").await.unwrap();
    gateway.set(Mood::Refuse(503, "{}"));
    owner.batch_execute("INSERT INTO bookings (phone) VALUES ('+15551234567')").await.unwrap();
    let text = toml(&database, "relay", None, &sms_relay("texts", &gateway, ""));
    let mut process = Process::spawn(&exporting(&text, &collector.url, "sample = 0"), &["run"]);
    let line = line(&process, "row not published").await;
    let trace = line["span"]["trace_id"].as_str().unwrap().to_owned();
    let turn = collector.span(|span| hex(&span.span.trace_id) == trace && span.span.parent_span_id.is_empty()).await;
    assert_eq!(turn.span.status.as_ref().unwrap().code, StatusCode::Error as i32);
    assert_eq!(turn.attribute("error.type"), line["code"].as_str().map(str::to_owned));
    assert_eq!(turn.attribute("outbox_relay.turn.result").as_deref(), Some("failed"));
    let send = collector.span(|span| span.span.parent_span_id == turn.span.span_id).await;
    assert_eq!(send.span.name, "send sms");
    assert_eq!(ended(&mut process).await, Some(0));
}

/// Rows flow, dropped spans are counted and logged once, and the process ends in time, whatever the collector does.
async fn is_not_in_the_way(collector: &str) {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let text = exporting(&toml(&database, "relay", None, &stdout_relay("events", "")), collector, "sample = 1");
    let mut process = Process::spawn(&text, &["run"]);
    let url = listener(&process).await;
    let mut rows = 0;
    eventually(PATIENCE * 4, async || {
        owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
        rows += 1;
        let begun = Instant::now();
        eventually(PATIENCE, async || printed(&process, "events").len() == rows).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "a row has waited for {:?}", begun.elapsed());
        metric(&url, "outbox_relay_spans_dropped_total").await > 0.0
    })
    .await;
    assert_eq!(metric(&url, "outbox_relay_spans_exported_total").await, 0.0);
    let begun = Instant::now();
    assert_eq!(ended(&mut process).await, Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "it took {:?} to end", begun.elapsed());
    let dropped = "spans dropped, and from now on only counted";
    let told: Vec<_> = lines(&process).into_iter().filter(|line| line["message"] == dropped).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0]["collector"].as_str().unwrap().starts_with(collector) && told[0]["error"].is_string(), "{told:?}");
}

// Guarantee: observe.spans-harmless
#[tokio::test(flavor = "multi_thread")]
async fn dead_collector_stops_neither_rows_nor_exit() {
    // Nothing listens on it any more.
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    is_not_in_the_way(&format!("http://127.0.0.1:{port}")).await;
}

// Guarantee: observe.spans-harmless
#[tokio::test(flavor = "multi_thread")]
async fn hanging_collector_stops_neither_rows_nor_exit() {
    is_not_in_the_way(&Collector::start(Manner::Hang).await.url).await;
}

// Guarantee: observe.spans-harmless
#[tokio::test(flavor = "multi_thread")]
async fn spans_are_kept_while_a_collector_restarts() {
    let (database, collector) = (database().await, Collector::start(Manner::Refuse(503)).await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    let mut process = Process::spawn(&exporting(&text, &collector.url, "sample = 1"), &["run"]);
    eventually(PATIENCE * 2, async || !collector.asked().is_empty()).await;
    collector.answer(Manner::Take);
    collector.span(|span| span.span.name == "turn events").await;
    let url = listener(&process).await;
    eventually(PATIENCE, async || metric(&url, "outbox_relay_spans_exported_total").await >= 2.0).await;
    assert_eq!(metric(&url, "outbox_relay_spans_dropped_total").await, 0.0);
    assert_eq!(ended(&mut process).await, Some(0));
}

// Guarantee: observe.spans-secrets
#[tokio::test(flavor = "multi_thread")]
async fn headers_of_a_file_are_sent_and_never_logged() {
    let (database, collector) = (database().await, Collector::start(Manner::Refuse(401)).await);
    let owner = bookings(&database, CLOCK).await;
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("headers");
    std::fs::write(&file, "Authorization: Bearer hunter2\n\nx-tenant: 7\n").unwrap();
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    let keys = format!("sample = 1\nheaders_file = \"{}\"", file.display());
    let text = exporting(&text, &collector.url, &keys);
    let mut process = Process::spawn_with(&text, &["run"], &[("RUST_LOG", "trace".to_owned())]);
    let dropped = line(&process, "spans dropped, and from now on only counted").await;
    assert_eq!(dropped["error"], "it answers 401 Unauthorized");
    let asked = collector.asked().pop().unwrap();
    assert_eq!(
        (&asked["authorization"], &asked["x-tenant"]),
        (&"Bearer hunter2".parse().unwrap(), &"7".parse().unwrap())
    );
    std::fs::write(&file, "Authorization Bearer hunter2\n").unwrap();
    let (code, out, log) = outbox_relay(&text, &["check"]).await;
    assert!(out.contains("line 1 is no header, which is `Name: value`"), "{out}{log}");
    assert_ne!(code, Some(2), "{log}");
    assert_eq!(ended(&mut process).await, Some(0));
    assert!(![process.log(), out, log].concat().contains("hunter2"));
}

// Guarantee: observe.spans-check
#[tokio::test(flavor = "multi_thread")]
async fn check_warns_of_a_collector_that_does_not_answer() {
    let (database, collector) = (database().await, Collector::start(Manner::Take).await);
    let _owner = bookings(&database, CLOCK).await;
    let text = toml(&database, "relay", None, &stdout_relay("events", ""));
    let level = async |url: &str| {
        let (code, out, log) = outbox_relay(&exporting(&text, url, ""), &["check", "-o", "json"]).await;
        assert_eq!(code, Some(0), "{out}{log}");
        let found = finding(&json(&out), "collector").unwrap().clone();
        (found["level"].as_str().unwrap().to_owned(), found["message"].as_str().unwrap().to_owned())
    };
    assert_eq!(level(&collector.url).await.0, "ok");
    assert!(collector.spans().is_empty());
    collector.answer(Manner::Refuse(404));
    let (found, message) = level(&collector.url).await;
    assert!(found == "warn" && message.ends_with("takes no spans: it answers 404 Not Found"), "{message}");
    let (found, message) = level("http://127.0.0.1:1").await;
    assert!(found == "warn" && message.contains("refused"), "{message}");
}
