//! What a topic holds, read by an independent consumer.

use std::time::Duration;

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Headers, Message};
use rdkafka::{Offset, TopicPartitionList};

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
    let (servers, topic) = (servers.to_owned(), topic.to_owned());
    tokio::task::spawn_blocking(move || read(&servers, &topic)).await.unwrap()
}

/// The ids of all records of a topic of one partition, in order.
pub async fn ids(servers: &str, topic: &str) -> Vec<String> {
    records(servers, topic).await.iter().map(|record| record.id().to_owned()).collect()
}

fn read(servers: &str, topic: &str) -> Vec<Record> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", servers)
        .set("group.id", "test")
        .set("enable.auto.commit", "false")
        .set("fetch.message.max.bytes", "8000000")
        .create()
        .unwrap();
    let patience = Duration::from_secs(10);
    let metadata = consumer.fetch_metadata(Some(topic), patience).unwrap();
    let mut records = Vec::new();
    for partition in metadata.topics()[0].partitions() {
        let (low, high) = consumer.fetch_watermarks(topic, partition.id(), patience).unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, partition.id(), Offset::Offset(low)).unwrap();
        consumer.assign(&list).unwrap();
        let mut next = low;
        while next < high {
            let message = match consumer.poll(patience).expect("a record below the high watermark") {
                // News of a connection, not of the topic: the client opens another by itself.
                Err(KafkaError::MessageConsumption(RDKafkaErrorCode::AllBrokersDown)) => continue,
                message => message.unwrap(),
            };
            next = message.offset() + 1;
            let headers = message.headers().map(|headers| {
                let text = |value: Option<&[u8]>| String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
                headers.iter().map(|header| (header.key.to_owned(), text(header.value))).collect()
            });
            records.push(Record {
                partition: message.partition(),
                offset: message.offset(),
                key: message.key().map(|key| String::from_utf8_lossy(key).into_owned()),
                payload: message.payload().map(<[u8]>::to_vec),
                headers: headers.unwrap_or_default(),
            });
        }
    }
    records
}
