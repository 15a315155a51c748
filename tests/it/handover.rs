//! What is handed over, and to whom it counts, when a turn is cut in the middle of a batch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use outbox_relay::batch::Batch;
use outbox_relay::position::Timestamp;
use outbox_relay::sink::kafka::{Cluster, KafkaSink, Passed};
use outbox_relay::sink::{self, Flow, Mode, Sink};
use outbox_testkit::kafka::RealBroker;
use rustix::process::Signal;

use crate::support::outside::{line, lines};
use crate::support::receiver::Receiver;
use crate::support::{
    CLOCK, Database, PATIENCE, Process, bookings, broker, config, database, eventually, ids, kafka_relay, toml, unique,
};

fn kafka_sink(database: &Database, servers: &str, topic: &str) -> Sink {
    let config = config(database, "relay", Some(servers), &kafka_relay("woken", topic, ""));
    let sink::Config::Kafka(kafka) = &config.relays[0].sink else { panic!("a Kafka sink") };
    let cluster = Arc::new(Cluster::new(config.kafka.clone().unwrap()));
    Sink::Kafka(KafkaSink::new(cluster, "woken", kafka, None, 1_000_000, Passed::default()).unwrap())
}

fn batch(sink: &Sink, ids: std::ops::Range<i64>) -> Batch {
    let mut batch = Batch::new(sink.fields().len());
    for id in ids {
        batch.push(Timestamp::from_pg_micros(id), &id.to_string(), [Some(&b"p"[..]), Some(&b"c"[..])]);
    }
    batch
}

// Guarantee: failures.sigstop
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_wakes_behind_its_deadline_hands_over_nothing_of_the_rest_of_its_batch() {
    let database = database().await;
    let topic = unique("woken");
    broker().await.create_topic(&topic, 1, &[]).await.unwrap();
    let servers = broker().await.bootstrap_servers();
    let sink = kafka_sink(&database, &servers, &topic);
    let deadline = Instant::now() + Duration::from_secs(5);
    let mode = Mode { until: Some(deadline), ..Mode::default() };
    let mut publication = sink.begin(mode).await.unwrap();
    assert_eq!(publication.push(&batch(&sink, 0..10)).await, Flow::Continue);
    publication.settle().await;
    // As SIGSTOP does: no timer fires, no other task is polled, and the next line runs as if nothing had been.
    while Instant::now() < deadline {
        std::hint::spin_loop();
    }
    assert_eq!(publication.push(&batch(&sink, 10..1_000)).await, Flow::Stop);
    publication.settle().await;
    assert_eq!(publication.finish().acknowledged, 10);
    let before: Vec<String> = (0..10).map(|id: i32| id.to_string()).collect();
    assert_eq!(ids(&servers, &topic).await, before);
}

// Guarantee: failures.sigstop
#[tokio::test(flavor = "multi_thread")]
async fn a_record_queued_for_longer_than_a_lock_lives_is_not_overtaken_by_a_younger_one() {
    let database = database().await;
    let mut broker = RealBroker::start().await.unwrap();
    let (servers, topic) = (broker.bootstrap_servers(), unique("patient"));
    broker.create_topic(&topic, 1, &[]).await.unwrap();
    let sink = kafka_sink(&database, &servers, &topic);
    let mut publication = sink.begin(Mode::default()).await.unwrap();
    publication.push(&batch(&sink, 0..10)).await;
    publication.settle().await;
    broker.kill9().await.unwrap();
    // As when a process wakes behind its lock's end with one record in its hand: the old ones must not have expired.
    assert_eq!(publication.push(&batch(&sink, 10..100)).await, Flow::Continue);
    tokio::time::sleep(Duration::from_secs(13)).await;
    assert_eq!(publication.push(&batch(&sink, 100..101)).await, Flow::Continue);
    broker.restart().await.unwrap();
    tokio::time::timeout(PATIENCE * 2, publication.settle()).await.expect("the broker is back");
    assert_eq!(publication.finish().acknowledged, 101);
    let all: Vec<String> = (0..101).map(|id| id.to_string()).collect();
    assert_eq!(ids(&servers, &topic).await, all);
    broker.stop().await.unwrap();
}

// Guarantee: failures.cancelled-batch
#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_is_cut_in_a_batch_advances_over_what_was_accepted_of_it() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = Receiver::start();
    owner.batch_execute("INSERT INTO bookings (payload) SELECT 'p' FROM generate_series(1, 40)").await.unwrap();
    let relay = receiver.relay("cut", "turn = { rows = 40, deadline = \"1s\" }");
    receiver.answer(|_| (200, Duration::from_millis(150)));
    let _process = Process::spawn(&toml(&database, "relay", None, &relay), &["run"]);
    eventually(PATIENCE * 2, || async { receiver.accepted("cut").last().is_some_and(|id| id == "40") }).await;
    let mut repeated = receiver.accepted("cut");
    repeated.dedup();
    let all: Vec<String> = (1..=40).map(|id| id.to_string()).collect();
    assert_eq!(repeated, all, "in order, and only the one in flight at a cut may come again");
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn shutdown_with_unrecorded_stream_row_exits_1() {
    let database = database().await;
    let owner = bookings(&database, CLOCK).await;
    let receiver = Receiver::start();
    let text = toml(&database, "relay", None, &receiver.relay("a", ""));
    let mut process = Process::spawn(&text, &["run"]);
    line(&process, "relay ready").await;
    receiver.hold();
    owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
    eventually(PATIENCE, || async { receiver.requests().len() == 1 }).await;
    owner.batch_execute("REVOKE UPDATE ON outbox.cursor FROM relay").await.unwrap();
    process.signal(Signal::TERM);
    line(&process, "draining: running turns end, no new one begins").await;
    receiver.release();
    let code = tokio::time::timeout(PATIENCE * 4, process.wait()).await.unwrap();
    assert_eq!(code, Some(1), "{}", process.log());
    let unrecorded = |line: &serde_json::Value| line["cursor"] == "a" && line["outcomes"] == 1;
    assert!(lines(&process).iter().any(unrecorded), "{}", process.log());
}

// Guarantee: pending.recorded
#[tokio::test(flavor = "multi_thread")]
async fn stream_row_unrecorded_before_a_signal_exits_1() {
    for recovers in [false, true] {
        let database = database().await;
        let owner = bookings(&database, CLOCK).await;
        let receiver = Receiver::start();
        let text = toml(&database, "relay", None, &receiver.relay("a", ""));
        let mut process = Process::spawn(&text, &["run"]);
        line(&process, "relay ready").await;
        receiver.hold();
        owner.batch_execute("INSERT INTO bookings (payload) VALUES ('p')").await.unwrap();
        eventually(PATIENCE, || async { receiver.requests().len() == 1 }).await;
        owner.batch_execute("REVOKE UPDATE ON outbox.cursor FROM relay").await.unwrap();
        receiver.release();
        let failed =
            || lines(&process).iter().any(|line| line["error"].to_string().contains("could not be advanced over"));
        eventually(PATIENCE, || async { failed() }).await;
        if recovers {
            owner.batch_execute("GRANT UPDATE ON outbox.cursor TO relay").await.unwrap();
            let advanced = "SELECT position_id IS NOT DISTINCT FROM '1' FROM outbox.cursor";
            eventually(PATIENCE * 2, || async { owner.query_one(advanced, &[]).await.unwrap().get(0) }).await;
        }
        process.signal(Signal::TERM);
        let code = tokio::time::timeout(PATIENCE * 4, process.wait()).await.unwrap();
        assert_eq!(code, Some(if recovers { 0 } else { 1 }), "recovers: {recovers}\n{}", process.log());
    }
}
