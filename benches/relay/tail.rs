//! A consumer that notes when each record reaches it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::bail;
use outbox_relay::position::Timestamp;
use rdkafka::Message as _;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::Headers as _;
use rdkafka::{Offset, TopicPartitionList};

use super::stage::Stage;

const PATIENCE: Duration = Duration::from_secs(30);

/// One record's times, in seconds since 1970 by this machine's clock, which PostgreSQL and the relay share.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    /// The row's id.
    pub id: i64,
    /// The row's `created_at`.
    pub created: f64,
    /// The record's own time, in the middle of its millisecond: when a relay handed it to its client, or when the broker
    /// appended it to a topic of [`Stage::stamped_topic`].
    pub stamped: f64,
    /// When it arrived here.
    pub received: f64,
}

/// See the module.
#[derive(Debug)]
pub struct Tail {
    stop: Arc<AtomicBool>,
    receipts: Arc<Mutex<Vec<Receipt>>>,
    thread: JoinHandle<anyhow::Result<()>>,
}

/// Seconds since 1970.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Tail {
    /// Reads the only partition of a topic from its beginning.
    pub fn start(stage: &Stage, topic: &str) -> anyhow::Result<Self> {
        let mut config = stage.cluster().client_config();
        config.set("group.id", "bench").set("enable.auto.commit", "false").set("fetch.min.bytes", "1");
        let consumer: BaseConsumer = config.create()?;
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, Offset::Beginning)?;
        consumer.assign(&list)?;
        let stop = Arc::new(AtomicBool::new(false));
        let receipts = Arc::new(Mutex::new(Vec::new()));
        let (until, into) = (Arc::clone(&stop), Arc::clone(&receipts));
        let thread = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let Some(message) = consumer.poll(Duration::from_millis(100)) else { continue };
                let (message, received) = (message?, now());
                let header = |key: &str| {
                    let value = message.headers()?.iter().find(|header| header.key == key)?.value?;
                    std::str::from_utf8(value).ok()
                };
                let created = header("created_at").and_then(|value| Timestamp::parse_rfc3339(value).ok());
                let receipt = Receipt {
                    id: header("id").and_then(|value| value.parse().ok()).unwrap_or(-1),
                    created: created.map_or(f64::NAN, Timestamp::unix_seconds),
                    stamped: message.timestamp().to_millis().map_or(f64::NAN, |millis| (millis as f64 + 0.5) / 1e3),
                    received,
                };
                lock(&into).push(receipt);
            }
            Ok(())
        });
        Ok(Self { stop, receipts, thread })
    }

    /// The first record, from number `from` on, of which this is true.
    pub fn find(&self, from: usize, is: impl Fn(&Receipt) -> bool) -> Option<Receipt> {
        lock(&self.receipts).iter().skip(from).find(|receipt| is(receipt)).copied()
    }

    /// How many records have arrived.
    pub fn len(&self) -> usize {
        lock(&self.receipts).len()
    }

    /// Ends it; all that arrived.
    pub fn stop(self) -> anyhow::Result<Vec<Receipt>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow::anyhow!("the consumer panicked"))??;
        Ok(std::mem::take(&mut *lock(&self.receipts)))
    }
}

/// All that a topic holds, which is so many records.
pub async fn read(stage: &Stage, topic: &str, records: usize) -> anyhow::Result<Vec<Receipt>> {
    let tail = Tail::start(stage, topic)?;
    wait(|| Ok(tail.len()), records).await?;
    tail.stop()
}

fn lock(receipts: &Mutex<Vec<Receipt>>) -> MutexGuard<'_, Vec<Receipt>> {
    receipts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until so many records have arrived.
pub async fn wait(arrived: impl Fn() -> anyhow::Result<usize>, records: usize) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        let arrived = arrived()?;
        if arrived >= records {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            bail!("only {arrived} of {records} records have arrived within {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
