//! What a topic holds, read by an independent consumer.

use std::collections::{BTreeMap, BTreeSet};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{Offset, TopicPartitionList};

use super::PATIENCE;

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub partition: i32,
    pub offset: i64,
    pub key: Option<String>,
    pub payload: Option<Vec<u8>>,
    pub headers: Vec<(String, String)>,
}

impl Record {
    /// The message's id.
    pub fn id(&self) -> &str {
        self.header("id").expect("every record has an id")
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The payload as text.
    pub fn text(&self) -> String {
        String::from_utf8(self.payload.clone().expect("a payload")).unwrap()
    }
}

/// Everything that a topic holds now, partition by partition in their order.
pub async fn records(servers: &str, topic: &str) -> Vec<Record> {
    each(servers, topic, record).await
}

/// Of each row in a topic, by its id: whether it came with the mark `late`, without, or both.
pub async fn late_marks(servers: &str, topic: &str) -> BTreeMap<String, BTreeSet<bool>> {
    let mut marks: BTreeMap<String, BTreeSet<bool>> = BTreeMap::new();
    for record in records(servers, topic).await {
        marks.entry(record.id().to_owned()).or_default().insert(record.header("late").is_some());
    }
    marks
}

/// What `see` makes of everything that a topic holds now, partition by partition in their order.
pub async fn each<T: Send + 'static>(
    servers: &str,
    topic: &str,
    see: impl FnMut(&BorrowedMessage<'_>) -> T + Send + 'static,
) -> Vec<T> {
    let (servers, topic) = (servers.to_owned(), topic.to_owned());
    tokio::task::spawn_blocking(move || read(&servers, &topic, see)).await.unwrap()
}

/// How many records a topic of one partition has been given, without reading them; none while its broker does not say.
pub async fn count(servers: &str, topic: &str) -> Option<i64> {
    let (servers, topic) = (servers.to_owned(), topic.to_owned());
    let asked = tokio::task::spawn_blocking(move || consumer(&servers).fetch_watermarks(&topic, 0, PATIENCE));
    asked.await.unwrap().ok().map(|(_, high)| high)
}

/// The ids of all records of a topic of one partition, in order.
pub async fn ids(servers: &str, topic: &str) -> Vec<String> {
    records(servers, topic).await.iter().map(|record| record.id().to_owned()).collect()
}

fn consumer(servers: &str) -> BaseConsumer {
    ClientConfig::new()
        .set("bootstrap.servers", servers)
        .set("group.id", "test")
        .set("enable.auto.commit", "false")
        .set("fetch.message.max.bytes", "8000000")
        .create()
        .unwrap()
}

fn read<T>(servers: &str, topic: &str, mut see: impl FnMut(&BorrowedMessage<'_>) -> T) -> Vec<T> {
    let consumer = consumer(servers);
    let metadata = consumer.fetch_metadata(Some(topic), PATIENCE).unwrap();
    let mut seen = Vec::new();
    for partition in metadata.topics()[0].partitions() {
        let (low, high) = consumer.fetch_watermarks(topic, partition.id(), PATIENCE).unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition.id(), Offset::Offset(low)).unwrap();
        consumer.assign(&list).unwrap();
        let mut next = low;
        while next < high {
            let message = match consumer.poll(PATIENCE).expect("a record below the high watermark") {
                // News of a connection, not of the topic: the client opens another by itself.
                Err(KafkaError::MessageConsumption(RDKafkaErrorCode::AllBrokersDown)) => continue,
                message => message.unwrap(),
            };
            next = message.offset() + 1;
            seen.push(see(&message));
        }
    }
    seen
}

fn record(message: &BorrowedMessage<'_>) -> Record {
    let headers = message.headers().map(|headers| {
        let text = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
        headers.iter().map(|header| (header.key.to_owned(), text(header.value))).collect()
    });
    Record {
        partition: message.partition(),
        offset: message.offset(),
        key: message.key().map(|key| String::from_utf8_lossy(key).into_owned()),
        payload: message.payload().map(<[u8]>::to_vec),
        headers: headers.unwrap_or_default(),
    }
}
