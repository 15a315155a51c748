//! Records to a Kafka topic.
//!
//! Promise: messages of one publication reach each partition in the order pushed, and a message counts as acknowledged
//! only when the broker (all in-sync replicas) has said so. The first failed report ends the publication: nothing after
//! it is counted, the producer with whatever it still holds is purged and dropped, and the next turn starts at the
//! first message that was not acknowledged. `enable.gapless.guarantee` keeps later records out of the partition.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::BaseRecord;

mod classify;
mod cluster;
mod ledger;
mod topic;

pub use cluster::Cluster;
pub use topic::{TopicFacts, describe_topic};

use super::template::Template;
use super::{Class, Failure, Flow, Published};
use crate::batch::Batch;
use crate::message::{Field, Message};
use cluster::Lent;

/// What a record takes beyond its key, value and headers: an upper bound of the batch's and the record's own fields.
const RECORD_OVERHEAD: usize = 256;

/// `[kafka]` of the configuration: the cluster, shared by all relays.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterConfig {
    /// `host:port`, several with commas.
    pub bootstrap_servers: String,
    /// Raw librdkafka properties, already checked against those that would break a guarantee.
    pub properties: BTreeMap<String, String>,
}

impl fmt::Debug for ClusterConfig {
    /// The properties by name only: their values may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterConfig")
            .field("bootstrap_servers", &self.bootstrap_servers)
            .field("properties", &self.properties.keys())
            .finish()
    }
}

/// `[relay.sink.kafka]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The topic's name, or a template of it.
    pub topic: String,
    /// The column whose text is the record's key.
    pub key: Option<String>,
    /// Allows a topic of several partitions without a key: no order then.
    pub unordered: bool,
    /// What the record's value is.
    pub payload: Payload,
    /// Header names to columns.
    pub headers: BTreeMap<String, String>,
}

impl Config {
    /// Whether the topic differs from row to row.
    #[must_use]
    pub fn templated(&self) -> bool {
        self.topic.contains("{{") || self.topic.contains("{%")
    }
}

/// What a record's value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The whole row as JSON.
    Row,
    /// One column: json, text or bytea.
    Column(String),
    /// Some columns as JSON.
    Columns(Vec<String>),
}

/// Where the topic's name comes from.
#[derive(Debug)]
enum Topic {
    Fixed(String),
    /// The template, and the field numbers of its columns.
    Template(Template, Vec<(String, usize)>),
}

/// Publishes the rows of one relay.
#[derive(Debug)]
pub struct KafkaSink {
    cluster: Arc<Cluster>,
    relay: String,
    topic: Topic,
    /// The most bytes of a record: the topic's limit.
    limit: usize,
    fields: Vec<Field>,
    key: Option<usize>,
    headers: Vec<(String, usize)>,
    traceparent: Option<usize>,
}

impl KafkaSink {
    /// A sink of the relay named `relay`. `limit` is the topic's `max.message.bytes`; `traceparent` says whether the
    /// table has a column of that name.
    ///
    /// # Errors
    /// When the topic's template cannot be compiled.
    pub fn new(
        cluster: Arc<Cluster>,
        relay: &str,
        config: &Config,
        limit: usize,
        traceparent: bool,
    ) -> Result<Self, super::template::TemplateError> {
        let mut fields = vec![match &config.payload {
            Payload::Row => Field::Row,
            Payload::Column(column) => Field::Payload(column.clone()),
            Payload::Columns(columns) => Field::Columns(columns.clone()),
        }];
        let mut want = |column: &str| {
            fields.push(Field::Text(column.to_owned()));
            fields.len() - 1
        };
        let key = config.key.as_deref().map(&mut want);
        let headers = config.headers.iter().map(|(name, column)| (name.clone(), want(column))).collect();
        let traceparent = traceparent.then(|| want("traceparent"));
        let topic = if config.templated() {
            let template = Template::compile("topic", &config.topic)?;
            let columns = template.columns().iter().map(|column| (column.clone(), want(column))).collect();
            Topic::Template(template, columns)
        } else {
            Topic::Fixed(config.topic.clone())
        };
        Ok(Self { cluster, relay: relay.to_owned(), topic, limit, fields, key, headers, traceparent })
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.fields
    }

    pub(super) async fn begin(&self) -> Result<KafkaPublication<'_>, Failure> {
        let producer = self.cluster.lend(self.limit)?;
        producer.context().ledger.begin();
        Ok(KafkaPublication { sink: self, producer: Some(producer), sent: 0, refused: None })
    }

    /// The topic, key, value and headers of a message, or why it can never be published.
    fn record<'a>(&'a self, message: &Message<'a>) -> Result<(Cow<'a, str>, Option<&'a [u8]>, OwnedHeaders), Failure> {
        let topic = self.topic_of(message)?;
        let key = match self.key {
            None => None,
            Some(field) => Some(message.value(field).ok_or_else(|| {
                poison(
                    "null_key",
                    "The key column is NULL, so the record has no place in the order".to_owned(),
                    "Give every row a key, or use another key column.",
                )
            })?),
        };
        let created_at = message.created_at.to_string();
        let mut headers = OwnedHeaders::new_with_capacity(4 + self.headers.len())
            .insert(Header { key: "id", value: Some(message.id) })
            .insert(Header { key: "created_at", value: Some(&created_at) })
            .insert(Header { key: "relay", value: Some(&self.relay) });
        let mut size = RECORD_OVERHEAD + message.id.len() + created_at.len() + self.relay.len();
        if let Some(value) = self.traceparent.and_then(|field| message.value(field)) {
            headers = headers.insert(Header { key: "traceparent", value: Some(value) });
            size += value.len() + 16;
        }
        for (name, field) in &self.headers {
            let value = message.value(*field);
            headers = headers.insert(Header { key: name, value });
            size += name.len() + value.map_or(0, <[u8]>::len) + 8;
        }
        size += key.map_or(0, <[u8]>::len) + message.value(0).map_or(0, <[u8]>::len);
        if size > self.limit {
            return Err(poison(
                "message_too_large",
                format!("The record takes about {size} bytes; topic {topic} accepts {}", self.limit),
                "Raise the topic's max.message.bytes (and the broker's limits), or make the payload smaller.",
            ));
        }
        Ok((topic, key, headers))
    }

    fn topic_of(&self, message: &Message<'_>) -> Result<Cow<'_, str>, Failure> {
        match &self.topic {
            Topic::Fixed(name) => Ok(Cow::Borrowed(name)),
            Topic::Template(template, columns) => {
                let values = columns.iter().map(|(column, field)| (column.as_str(), message.value(*field)));
                let name = template.render(values).map_err(|error| {
                    poison(
                        "template",
                        format!("The topic's template fails for this row: {error}"),
                        "Mend the row or the template; default() gives a value for NULL.",
                    )
                })?;
                let valid = (1..=249).contains(&name.len())
                    && name != "."
                    && name != ".."
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
                if !valid {
                    return Err(poison(
                        "invalid_topic",
                        "The topic's template gives a name that Kafka does not allow".to_owned(),
                        "A topic's name has 1 to 249 of the characters A-Z a-z 0-9 . _ -",
                    ));
                }
                Ok(Cow::Owned(name))
            }
        }
    }
}

fn poison(code: &str, message: String, hint: &str) -> Failure {
    Failure {
        class: Class::Poison,
        ambiguous: false,
        code: code.to_owned(),
        message,
        hint: hint.to_owned(),
        retry_after: None,
    }
}

/// One turn's records. Dropping it purges whatever was not sent.
#[derive(Debug)]
pub struct KafkaPublication<'a> {
    sink: &'a KafkaSink,
    producer: Option<Lent>,
    sent: usize,
    /// Why the message number `sent` was not even handed to the client.
    refused: Option<Failure>,
}

impl KafkaPublication<'_> {
    pub(super) async fn push(&mut self, batch: &Batch) -> Flow {
        for message in batch.messages() {
            if self.refused.is_some() || self.failed() {
                return Flow::Stop;
            }
            match self.sink.record(&message) {
                Ok((topic, key, headers)) => {
                    if let Err(failure) = self.send(&topic, key, message.value(0), headers).await {
                        self.refused = Some(failure);
                        return Flow::Stop;
                    }
                    self.sent += 1;
                }
                Err(failure) => {
                    self.refused = Some(failure);
                    return Flow::Stop;
                }
            }
        }
        Flow::Continue
    }

    fn failed(&self) -> bool {
        self.producer.as_ref().is_none_or(|producer| producer.context().ledger.failed())
    }

    async fn send(
        &self,
        topic: &str,
        key: Option<&[u8]>,
        payload: Option<&[u8]>,
        headers: OwnedHeaders,
    ) -> Result<(), Failure> {
        let Some(producer) = &self.producer else { return Err(classify::interrupted(None)) };
        let ledger = &producer.context().ledger;
        ledger.sending(self.sent);
        let mut record = BaseRecord::<[u8], [u8], usize>::with_opaque_to(topic, self.sent).headers(headers);
        record.key = key;
        record.payload = payload;
        loop {
            match producer.send(record) {
                Ok(()) => return Ok(()),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    ledger.progress().await;
                }
                Err((error, _)) => {
                    ledger.not_sent(self.sent);
                    return Err(classify::failure(&error, producer.context().last_error()));
                }
            }
        }
    }

    pub(super) async fn settle(&mut self) {
        if let Some(producer) = &self.producer {
            producer.context().ledger.settled().await;
        }
    }

    pub(super) fn finish(mut self) -> Published {
        let Some(producer) = self.producer.take() else {
            return Published { acknowledged: 0, stopped: None };
        };
        let outcome = producer.context().ledger.outcome();
        let last_error = producer.context().last_error();
        if outcome.complete {
            self.sink.cluster.take_back(producer);
            return Published { acknowledged: outcome.acknowledged, stopped: self.refused.take() };
        }
        self.sink.cluster.destroy(producer);
        let stopped = match outcome.error {
            Some((row, error)) if row == outcome.acknowledged => {
                classify::failure(&KafkaError::MessageProduction(error), last_error)
            }
            // Something later failed first, or nothing did: the message in question is simply without an answer.
            Some((_, error)) => {
                Failure { class: Class::Retry, ..classify::failure(&KafkaError::MessageProduction(error), last_error) }
            }
            None => classify::interrupted(last_error),
        };
        Published { acknowledged: outcome.acknowledged, stopped: Some(stopped) }
    }
}

impl Drop for KafkaPublication<'_> {
    fn drop(&mut self) {
        if let Some(producer) = self.producer.take() {
            self.sink.cluster.destroy(producer);
        }
    }
}
