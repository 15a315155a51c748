//! `produce_raw`: how quickly the best client that we know how to write gets records of the relay's shape acknowledged.
//!
//! As safe as the relay's (idempotent, without gaps, acks=all) and without what the relay needs besides: batches as large
//! as a topic takes them, time to fill them, a long queue, and nothing formatted that can be formatted once.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use outbox_relay::position::Timestamp;
use outbox_relay::sink::kafka::ProducerKind;
use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{DeliveryResult, Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, NoCustomPartitioner, Producer as _, ProducerContext, ThreadedProducer};

use super::process::{Raw, Stopwatch};
use super::stage::Stage;

/// A topic's limit unless it is configured, as the relay reads it.
pub const LIMIT: usize = 1_048_588;

/// What differs from the relay's own settings. A queue without end would be slower: its memory is never used again.
const SETTINGS: [(&str, &str); 4] = [
    ("linger.ms", "5"),
    ("batch.size", "1000000"),
    ("queue.buffering.max.messages", "100000"),
    ("queue.buffering.max.kbytes", "131072"),
];

const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_micros(200);

/// Counts the reports.
#[derive(Debug, Default)]
struct Counter {
    acknowledged: AtomicU64,
    failed: AtomicU64,
}

impl ClientContext for Counter {}

impl ProducerContext<NoCustomPartitioner> for Counter {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let counter = if result.is_ok() { &self.acknowledged } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Rows and bytes of the large requests that the broker is warmed up with.
const LARGE: [(u64, usize); 2] = [(1_000_000, 200), (20_000, 16_384)];

/// Has the broker take large requests, and for `seconds` such of a single record, again and again for a minute (with few
/// seconds, less): Java compiles what runs often, for minutes, on cores that what is measured would need.
pub async fn warm(stage: &Stage, seconds: u64) -> anyhow::Result<()> {
    let (begun, enough) = (Instant::now(), Duration::from_secs((8 * seconds).min(60)));
    while begun.elapsed() < enough {
        for (rows, payload_bytes) in LARGE {
            measure(stage, payload_bytes, rows).await?;
        }
        singles(stage, seconds).await?;
    }
    Ok(())
}

async fn singles(stage: &Stage, seconds: u64) -> anyhow::Result<()> {
    let topic = stage.topic().await?;
    let config = stage.cluster().producer_config(ProducerKind::prompt(LIMIT));
    let to = topic.clone();
    let sent = tokio::task::spawn_blocking(move || {
        let producer: ThreadedProducer<Counter> = config.create_with_context(Counter::default())?;
        let begun = Instant::now();
        let mut sent = 0;
        while begun.elapsed() < Duration::from_secs(seconds) {
            send(&producer, &to, b"x", "c", b"0", "")?;
            sent += 1;
            wait(&producer, sent)?;
        }
        anyhow::Ok(sent)
    })
    .await??;
    stage.close(&topic, sent).await
}

/// Produces `rows` records to a new topic of one partition.
pub async fn measure(stage: &Stage, payload_bytes: usize, rows: u64) -> anyhow::Result<Raw> {
    stage.rest().await?;
    let topic = stage.topic().await?;
    let mut config = stage.cluster().producer_config(ProducerKind::prompt(LIMIT));
    for (key, value) in SETTINGS {
        config.set(key, value);
    }
    config.remove("statistics.interval.ms");
    let to = topic.clone();
    let raw = tokio::task::spawn_blocking(move || {
        let producer: ThreadedProducer<Counter> = config.create_with_context(Counter::default())?;
        let payload = vec![b'x'; payload_bytes];
        let keys: Vec<String> = (0..50).map(|number| format!("c{number}")).collect();
        let at = Timestamp::from_pg_micros(0).to_string();
        let mut id = Vec::with_capacity(20);
        let mut send = |number: u64| {
            id.clear();
            let _ = write!(id, "{number}");
            send(&producer, &to, &payload, &keys[(number % 50) as usize], &id, &at)
        };
        send(0)?; // connected, and the topic known
        wait(&producer, 1)?;
        let watch = Stopwatch::start()?;
        for number in 1..=rows {
            send(number)?;
        }
        wait(&producer, rows + 1)?;
        watch.stop(rows)
    })
    .await??;
    stage.close(&topic, rows + 1).await?;
    Ok(raw)
}

fn send(
    producer: &ThreadedProducer<Counter>,
    topic: &str,
    payload: &[u8],
    key: &str,
    id: &[u8],
    at: &str,
) -> anyhow::Result<()> {
    let headers = OwnedHeaders::new_with_capacity(3)
        .insert(Header { key: "id", value: Some(id) })
        .insert(Header { key: "created_at", value: Some(at) })
        .insert(Header { key: "relay", value: Some("bookings") });
    let mut record = BaseRecord::to(topic).key(key).payload(payload).headers(headers);
    loop {
        match producer.send(record) {
            Ok(()) => return Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                record = back;
                std::thread::sleep(PAUSE);
            }
            Err((error, _)) => return Err(error.into()),
        }
    }
}

fn wait(producer: &ThreadedProducer<Counter>, records: u64) -> anyhow::Result<()> {
    let counter = producer.client().context();
    let begun = Instant::now();
    while counter.acknowledged.load(Ordering::Relaxed) < records {
        ensure!(counter.failed.load(Ordering::Relaxed) == 0, "the broker has refused records");
        if begun.elapsed() > PATIENCE {
            bail!("only {} of {records} records are acknowledged", counter.acknowledged.load(Ordering::Relaxed));
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}
