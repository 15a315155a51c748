//! Records to a Kafka topic.

use std::collections::BTreeMap;
use std::fmt;

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

/// Publishes to one topic.
#[derive(Debug)]
pub struct KafkaSink {}
/// One turn's records.
#[derive(Debug)]
pub struct KafkaPublication<'a>(std::marker::PhantomData<&'a ()>);
use super::{Failure, Flow, Published};
use crate::batch::Batch;
use crate::message::Field;
impl KafkaSink {
    pub(super) fn fields(&self) -> &[Field] {
        &[]
    }
    pub(super) async fn begin(&self) -> Result<KafkaPublication<'_>, Failure> {
        Ok(KafkaPublication(std::marker::PhantomData))
    }
}
impl KafkaPublication<'_> {
    pub(super) async fn push(&mut self, _batch: &Batch) -> Flow {
        Flow::Stop
    }
    pub(super) async fn settle(&mut self) {}
    pub(super) fn finish(self) -> Published {
        Published { acknowledged: 0, stopped: None }
    }
}
