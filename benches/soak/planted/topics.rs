//! What has arrived, by a consumer of each topic that knows nothing of the relays; and copies of a topic without some rows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use outbox_relay::position::Timestamp;
use outbox_testkit::consumer::Consumer;
use outbox_testkit::kafka::create_topic;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedHeaders, BorrowedMessage, Headers as _, Message as _};
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer as _, ThreadedProducer};
use rdkafka::{Offset, TopicPartitionList};

use super::tables::{RELAYS, STORM, topic};
use crate::soak::stage::Access;

const PARTITIONS: i32 = 3;
const PATIENCE: Duration = Duration::from_secs(30);
/// While the producer's queue is full.
const PAUSE: Duration = Duration::from_micros(500);

type Producer = ThreadedProducer<DefaultProducerContext>;

/// What has come of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// How often it came.
    pub records: usize,
    /// How often without being marked as late.
    pub unmarked: usize,
}

/// The topics, and who reads them.
#[derive(Debug)]
pub struct Topics {
    access: Access,
    consumers: BTreeMap<&'static str, Consumer>,
}

impl Topics {
    /// Makes the topic of each relay, and begins to read it.
    pub async fn start(access: &Access) -> anyhow::Result<Self> {
        let mut consumers = BTreeMap::new();
        for relay in RELAYS {
            let name = topic(access, relay);
            create_topic(&access.broker, &name, PARTITIONS, &[]).await?;
            consumers.insert(relay, Consumer::start(&access.broker, &name).await?);
        }
        Ok(Self { access: access.clone(), consumers })
    }

    /// Waits until all that the topics hold now has been read.
    pub async fn catch_up(&self) -> anyhow::Result<()> {
        for (relay, consumer) in &self.consumers {
            consumer.catch_up(PATIENCE).await?;
            let gaps = consumer.look(|received| received.gaps.len());
            ensure!(gaps == 0, "the topic of {relay} has {gaps} gaps: the broker has lost records");
        }
        Ok(())
    }

    /// What has come of each row that a relay has sent.
    pub fn arrived(&self, relay: &str) -> HashMap<String, Arrival> {
        let Some(consumer) = self.consumers.get(relay) else { return HashMap::new() };
        consumer.look(|received| {
            let mut arrived: HashMap<String, Arrival> = HashMap::new();
            for record in received.partitions.values().flatten() {
                let arrival = arrived.entry(record.id.clone()).or_default();
                arrival.records += 1;
                arrival.unmarked += usize::from(!record.headers.iter().any(|(name, _)| name == "late"));
            }
            arrived
        })
    }

    /// Whether a row has come.
    pub fn has(&self, relay: &str, id: &str) -> bool {
        let Some(consumer) = self.consumers.get(relay) else { return false };
        consumer.look(|received| received.partitions.values().flatten().any(|record| record.id == id))
    }

    /// Rows of the storm that came without a mark, and were made between two instants.
    pub fn between(&self, from: Timestamp, to: Timestamp) -> Vec<String> {
        let Some(consumer) = self.consumers.get(STORM) else { return Vec::new() };
        let arrived = self.arrived(STORM);
        consumer.look(|received| {
            let records = received.partitions.values().flatten();
            let of_then = records.filter(|record| record.created_at.is_some_and(|at| from < at && at < to));
            let ids: HashSet<&str> = of_then.map(|record| record.id.as_str()).collect();
            let once = |id: &&str| arrived.get(*id).is_some_and(|arrival| arrival.unmarked == arrival.records);
            ids.into_iter().filter(once).map(str::to_owned).collect()
        })
    }

    /// Copies the storm's topic to a new one, without the records of these rows.
    pub async fn copy(&self, to: &str, without: &[String]) -> anyhow::Result<()> {
        create_topic(&self.access.broker, to, PARTITIONS, &[]).await?;
        let (servers, from, to) = (self.access.broker.clone(), topic(&self.access, STORM), to.to_owned());
        let without: HashSet<String> = without.iter().cloned().collect();
        tokio::task::spawn_blocking(move || copied(&servers, &from, &to, &without)).await?
    }
}

fn copied(servers: &str, from: &str, to: &str, without: &HashSet<String>) -> anyhow::Result<()> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", servers).set("log_level", "0");
    let producer: Producer = config.clone().set("enable.idempotence", "true").set("linger.ms", "5").create()?;
    let consumer: BaseConsumer = config.set("group.id", "soak-copy").set("enable.auto.commit", "false").create()?;
    let (mut kept, mut there) = (0, 0);
    for partition in 0..PARTITIONS {
        let (low, end) = consumer.fetch_watermarks(from, partition, PATIENCE)?;
        let mut part = TopicPartitionList::new();
        part.add_partition_offset(from, partition, Offset::Offset(low))?;
        consumer.assign(&part)?;
        let mut next = low;
        while next < end {
            let message = match consumer.poll(PATIENCE).context("no record comes")? {
                // News of a connection, not of the topic.
                Err(KafkaError::MessageConsumption(RDKafkaErrorCode::AllBrokersDown)) => continue,
                message => message?,
            };
            next = message.offset() + 1;
            if !id(&message).is_some_and(|id| without.contains(&id)) {
                send(&producer, to, &message)?;
                kept += 1;
            }
        }
    }
    producer.flush(PATIENCE)?;
    for partition in 0..PARTITIONS {
        let (low, end) = consumer.fetch_watermarks(to, partition, PATIENCE)?;
        there += end - low;
    }
    ensure!(there == kept, "the copy has {there} records of {kept}");
    Ok(())
}

fn id(message: &BorrowedMessage<'_>) -> Option<String> {
    let id = message.headers()?.iter().find(|header| header.key == "id")?;
    Some(String::from_utf8_lossy(id.value?).into_owned())
}

/// The same record, in the same partition.
fn send(producer: &Producer, to: &str, message: &BorrowedMessage<'_>) -> anyhow::Result<()> {
    let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(to).partition(message.partition());
    record.key = message.key();
    record.payload = message.payload();
    record.timestamp = message.timestamp().to_millis();
    record.headers = message.headers().map(BorrowedHeaders::detach);
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
