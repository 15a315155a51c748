//! An independent Kafka consumer: all partitions of a topic from the beginning, without a group, by a thread of its own.
//!
//! It knows nothing of the relay but the record headers that the contract names, and it counts every offset: one that is
//! missing is a [`Gap`], because then the broker has lost data that this consumer can never judge.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::metadata::{MetadataPartition, MetadataTopic};
use rdkafka::{Offset, TopicPartitionList};

use crate::delivery::{Delivery, Gap};
use outbox_relay::position::Timestamp;

/// How long one look at the queue lasts; also how soon `stop` is noticed.
const POLL: Duration = Duration::from_millis(50);

/// A record as received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Kafka's, within the partition.
    pub offset: i64,
    /// The header `id`; empty when there is none, which no row has.
    pub id: String,
    /// The header `created_at`, when it is there and can be read.
    pub created_at: Option<Timestamp>,
    /// When this consumer received it.
    pub received_at: Timestamp,
    /// The record's key.
    pub key: Option<Vec<u8>>,
    /// A hash of the payload, to tell whether a repeated message is the same.
    pub payload_hash: u64,
    /// The payload's size.
    pub payload_bytes: usize,
    /// All headers as text, in order.
    pub headers: Vec<(String, String)>,
}

/// What has been received so far.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// By partition, in order of offset.
    pub partitions: BTreeMap<i32, Vec<Record>>,
    /// Offsets that are missing.
    pub gaps: Vec<Gap>,
}

/// A consumer at work; it ends when stopped or dropped.
pub struct Consumer {
    received: Arc<Mutex<Received>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    client: Arc<BaseConsumer>,
    topic: String,
}

impl std::fmt::Debug for Consumer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Consumer").field("topic", &self.topic).field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Consumer {
    /// Assigns all partitions of the topic, which must exist, and begins to read them.
    ///
    /// # Errors
    /// librdkafka's, or when there is no such topic.
    pub async fn start(servers: &str, topic: &str) -> anyhow::Result<Self> {
        let (servers, name) = (servers.to_owned(), topic.to_owned());
        let client = Arc::new(tokio::task::spawn_blocking(move || assign(&servers, &name)).await??);
        let consumer = Arc::clone(&client);
        let (received, end) = (Arc::new(Mutex::new(Received::default())), Arc::new(AtomicBool::new(false)));
        let (theirs, ended) = (Arc::clone(&received), Arc::clone(&end));
        let thread = std::thread::Builder::new().name("consumer".into()).spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                match consumer.poll(POLL) {
                    Some(Ok(message)) => lock(&theirs).add(&message),
                    // The broker may be down on purpose; librdkafka goes on by itself.
                    Some(Err(error)) => tracing::debug!(%error, "the consumer waits"),
                    None => {}
                }
            }
        })?;
        Ok(Self { received, end, thread: Some(thread), client, topic: topic.to_owned() })
    }

    /// Looks at what has been received so far, without a copy.
    pub fn look<T>(&self, look: impl FnOnce(&Received) -> T) -> T {
        look(&lock(&self.received))
    }

    /// How many records have come.
    #[must_use]
    pub fn count(&self) -> usize {
        self.look(|received| received.partitions.values().map(Vec::len).sum())
    }

    /// Waits until everything that the topic holds now has been received.
    ///
    /// # Errors
    /// When that takes longer than `patience`, or the broker does not answer.
    pub async fn catch_up(&self, patience: Duration) -> anyhow::Result<()> {
        let (client, topic) = (Arc::clone(&self.client), self.topic.clone());
        let ends = tokio::task::spawn_blocking(move || ends(&client, &topic, patience)).await??;
        let next = |received: &Received, partition| {
            received.partitions.get(partition).and_then(|records| records.last()).map_or(0, |last| last.offset + 1)
        };
        let wait = async {
            while self.look(|received| ends.iter().any(|(partition, end)| next(received, partition) < *end)) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(patience, wait).await.context("The consumer has not caught up with the topic")
    }

    /// Ends it.
    ///
    /// # Errors
    /// When its thread has panicked.
    pub async fn stop(mut self) -> anyhow::Result<Received> {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await?;
            ensure!(joined.is_ok(), "The consumer's thread has panicked");
        }
        Ok(std::mem::take(&mut *lock(&self.received)))
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

impl Received {
    /// As the checker wants them.
    #[must_use]
    pub fn streams(&self) -> BTreeMap<i32, Vec<Delivery>> {
        let delivery = |record: &Record| Delivery { id: record.id.clone(), created_at: record.created_at };
        self.partitions
            .iter()
            .map(|(&partition, records)| (partition, records.iter().map(delivery).collect()))
            .collect()
    }

    fn add(&mut self, message: &BorrowedMessage<'_>) {
        let records = self.partitions.entry(message.partition()).or_default();
        let expected = records.last().map_or(0, |last| last.offset + 1);
        if message.offset() != expected {
            self.gaps.push(Gap { stream: message.partition(), expected, found: message.offset() });
        }
        records.push(Record::new(message));
    }
}

impl Record {
    fn new(message: &BorrowedMessage<'_>) -> Self {
        let headers: Vec<(String, String)> = message
            .headers()
            .into_iter()
            .flat_map(Headers::iter)
            .map(|header| {
                (header.key.to_owned(), String::from_utf8_lossy(header.value.unwrap_or_default()).into_owned())
            })
            .collect();
        let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        let payload = message.payload().unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        hasher.write(payload);
        Self {
            offset: message.offset(),
            id: header("id").unwrap_or_default().to_owned(),
            created_at: header("created_at").and_then(|at| Timestamp::parse_rfc3339(at).ok()),
            received_at: super::now(),
            key: message.key().map(<[u8]>::to_vec),
            payload_hash: hasher.finish(),
            payload_bytes: payload.len(),
            headers,
        }
    }
}

fn lock(received: &Mutex<Received>) -> MutexGuard<'_, Received> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The offset after the last record of each partition.
fn ends(client: &BaseConsumer, topic: &str, patience: Duration) -> anyhow::Result<Vec<(i32, i64)>> {
    let assigned = client.assignment()?;
    let ends = assigned.elements().into_iter().map(|element| {
        let (_, end) = client.fetch_watermarks(topic, element.partition(), patience)?;
        Ok((element.partition(), end))
    });
    ends.collect()
}

fn assign(servers: &str, topic: &str) -> anyhow::Result<BaseConsumer> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", servers)
        // librdkafka wants a name; nothing is subscribed or committed under it.
        .set("group.id", "outbox-relay-independent-consumer")
        .set("enable.auto.commit", "false")
        // An offset that is gone must not be skipped in silence: the first one still there then shows as a gap.
        .set("auto.offset.reset", "earliest")
        .set("isolation.level", "read_committed")
        .set("fetch.wait.max.ms", "10")
        .set("reconnect.backoff.max.ms", "200")
        .set("log_level", "0")
        .create()?;
    let partitions = partitions(&consumer, topic)?;
    ensure!(!partitions.is_empty(), "There is no topic {topic} at {servers}");
    let mut all = TopicPartitionList::new();
    for partition in partitions {
        all.add_partition_offset(topic, partition, Offset::Beginning).context("Cannot assign a partition")?;
    }
    consumer.assign(&all)?;
    Ok(consumer)
}

/// The partitions of a topic. One that was made a moment ago may take the broker a while to know.
fn partitions(consumer: &BaseConsumer, topic: &str) -> anyhow::Result<Vec<i32>> {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let metadata = consumer.fetch_metadata(Some(topic), Duration::from_secs(10))?;
        let found = metadata.topics().first().map(MetadataTopic::partitions).unwrap_or_default();
        if !found.is_empty() || Instant::now() > end {
            return Ok(found.iter().map(MetadataPartition::id).collect());
        }
        std::thread::sleep(POLL);
    }
}
