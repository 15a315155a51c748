//! Records to a Kafka topic.
//!
//! Promise: messages of one publication reach each partition in the order pushed, and a message counts as acknowledged
//! only when the broker (all in-sync replicas) has said so. The first failed report ends the publication: nothing after
//! it is counted, the producer with whatever it still holds is purged and dropped, and the next turn starts at the
//! first message that was not acknowledged. `enable.gapless.guarantee` keeps later records out of the partition.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rdkafka::error::KafkaError;

pub mod aws_iam;
mod classify;
mod cloudevents;
mod cluster;
mod complaint;
mod confirmed;
mod debezium;
mod doubt;
mod errors;
mod format;
mod kind;
mod ledger;
mod lending;
mod letter_topic;
mod login;
mod missing;
mod partition;
mod password;
mod polled;
mod publication;
mod record;
mod refusals;
mod schema;
mod statistics;
mod topic;

pub use cloudevents::{AttributeType, CloudEvents, EventMode, Faulty, is_extension_name, is_media_type};
pub use cluster::{Cluster, ClusterConfig};
pub use debezium::{Debezium, Origin};
pub use errors::{NO_CLIENT_CODE, known_errors};
pub use format::Format;
pub use kind::{ProducerKind, Spread};
pub use letter_topic::{LetterTopic, Obituary};
pub use login::Login;
pub use partition::OnPartitionChange;
pub use publication::KafkaPublication;
pub use record::{Passed, is_legal_topic};
pub use schema::{
    RegistryConfig, RegistryLogin, SchemaFacts, SchemaField, SchemaFormat, SchemaKind, SubjectName, WantedSchema,
    describe_schema, schema_code,
};
pub use topic::{TopicFacts, describe_topic};

use super::{Class, Failure, InvalidSetting, Mode};
use crate::message::{Field, Message};
use cluster::Context;
use doubt::Doubt;
use record::Layout;

/// What an error of a client means; `topic` is the one that was asked about.
#[must_use]
pub fn explained(error: &KafkaError, topic: Option<&str>) -> Failure {
    classify::of_topic(classify::failure(error, None), error, topic)
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
    /// What a changed number of partitions does to a relay with a key.
    pub on_partition_change: OnPartitionChange,
    /// What the record is made like.
    pub format: Format,
}

impl Config {
    /// What a sink of this configuration reads of each row.
    ///
    /// # Errors
    /// When a template cannot be compiled.
    pub fn fields(&self, passed: Passed) -> Result<Vec<Field>, InvalidSetting> {
        Ok(Layout::new(self, "", passed)?.fields)
    }

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

/// Publishes the rows of one relay.
#[derive(Debug)]
pub struct KafkaSink {
    cluster: Arc<Cluster>,
    relay: String,
    /// The most bytes of a record: the topic's limit.
    limit: usize,
    layout: Layout,
    /// Without a key all rows go to the first partition: in order, also if the topic has or gets several.
    first_only: bool,
    /// The topic, where keys are spread over its partitions.
    keyed: Option<String>,
    /// How many partitions it has, as last seen.
    partitions: AtomicI32,
    doubt: Doubt,
}

impl KafkaSink {
    /// A sink of the relay named `relay` to a topic that is like `facts` (none: each row names its own). `limit` is the
    /// most bytes of a record; `passed` says which columns the table has that become headers.
    ///
    /// # Errors
    /// When a template cannot be compiled.
    pub fn new(
        cluster: Arc<Cluster>,
        relay: &str,
        config: &Config,
        facts: Option<&TopicFacts>,
        limit: usize,
        passed: Passed,
    ) -> Result<Self, InvalidSetting> {
        let layout = Layout::new(config, relay, passed)?;
        let keyed = (config.key.is_some() && !layout.is_routed()).then(|| config.topic.clone());
        let first_only = config.key.is_none() && !config.unordered;
        let partitions = AtomicI32::new(0);
        let sink = Self {
            cluster,
            relay: relay.to_owned(),
            limit,
            layout,
            first_only,
            keyed,
            partitions,
            doubt: Doubt::default(),
        };
        sink.saw_partitions(facts.map_or(0, |facts| facts.partitions));
        Ok(sink)
    }

    /// The same, for the rows of a table: a format may name it.
    #[must_use]
    pub fn of_table(mut self, origin: Origin<'_>) -> Self {
        self.layout = self.layout.of_table(origin);
        self
    }

    fn saw_partitions(&self, partitions: usize) {
        if partitions > 0 {
            self.partitions.store(i32::try_from(partitions).unwrap_or(i32::MAX), Ordering::Relaxed);
        }
    }

    fn spread(&self) -> Spread {
        let one = self.first_only || (!self.layout.is_routed() && self.partitions.load(Ordering::Relaxed) == 1);
        if one { Spread::One } else { Spread::Several }
    }

    pub(super) fn partitions(&self) -> Option<i32> {
        let seen = self.partitions.load(Ordering::Relaxed);
        (self.keyed.is_some() && seen > 0).then_some(seen)
    }

    pub(super) fn learn_partitions(&self, from: &Self) {
        self.partitions.store(from.partitions.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(super) async fn count_partitions(&self, patience: Duration) -> Result<(), Failure> {
        let Some(topic) = &self.keyed else { return Ok(()) };
        self.saw_partitions(self.cluster.partitions(self.limit, topic, patience).await?);
        Ok(())
    }

    pub(super) fn rendered<'a>(&self, message: &Message<'a>) -> (Option<String>, Option<Cow<'a, [u8]>>) {
        self.layout.rendered(message)
    }

    /// Connects a producer ahead of the first turn.
    ///
    /// # Errors
    /// When the cluster does not answer within `patience`.
    pub async fn warm(&self, topic: &str, patience: Duration) -> Result<(), Failure> {
        self.cluster.warm(self.limit, topic, patience).await.map_err(|failure| failure.of_relay(&self.relay))
    }

    pub(super) fn relay(&self) -> &str {
        &self.relay
    }

    pub(super) fn fields(&self) -> &[Field] {
        &self.layout.fields
    }

    /// The failure that an error is; `context` is that of the client which ran into it, `topic` the record's, where they are known.
    fn failure(&self, error: &KafkaError, context: Option<&Context>, topic: Option<&str>) -> Failure {
        let topic = topic.or_else(|| self.layout.topic());
        let failure = context.map_or_else(|| classify::failure(error, None), |context| context.failure(error));
        let mut failure = classify::of_topic(failure, error, topic);
        if failure.class == Class::Retry {
            let _ = write!(failure.message, " (bootstrap_servers {})", self.cluster.bootstrap_servers());
        }
        if self.layout.is_routed() { classify::routed(failure, error) } else { failure }
    }

    /// A refusal as it counts, after `acknowledged` records that the brokers have taken since the last one.
    fn weighed(&self, failure: Failure, acknowledged: usize) -> Failure {
        let is_new = login::REFUSED.contains(&failure.code.as_str()) && self.cluster.password.is_new();
        let class = if is_new { Class::Retry } else { failure.class };
        self.doubt.weigh(Failure { class, ..failure }, 1, acknowledged)
    }

    pub(super) async fn begin(&self, mode: Mode) -> Result<KafkaPublication<'_>, Failure> {
        let producer = if mode.backlog {
            self.cluster.lend_for_backlog(self.limit, self.spread(), self.layout.topic()).await?
        } else {
            self.cluster.lend(self.limit, self.layout.topic()).await?
        };
        producer.context().ledger.begin();
        Ok(KafkaPublication::new(self, mode, producer))
    }
}
