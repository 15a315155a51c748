//! The Kafka cluster: producers, lent to one publication at a time and taken back only when they are empty.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{NoCustomPartitioner, Producer as _, ProducerContext, PurgeConfig, ThreadedProducer};

use super::ledger::Ledger;
use super::statistics::{self, Reading, Statistics};
use super::{ClusterConfig, classify};
use crate::sink::Failure;

/// A topic with a larger limit does not make batches larger.
const BATCH_BYTES: usize = 1_000_000;

/// The cluster of `[kafka]`, shared by all relays of the process.
#[derive(Debug)]
pub struct Cluster {
    config: ClusterConfig,
    idle: Mutex<HashMap<usize, Vec<Lent>>>,
    statistics: Statistics,
}

/// A producer on loan, with the record size that it was made for.
pub(super) struct Lent {
    producer: Arc<ThreadedProducer<Context>>,
    limit: usize,
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl Deref for Lent {
    type Target = ThreadedProducer<Context>;

    fn deref(&self) -> &Self::Target {
        &self.producer
    }
}

impl Lent {
    pub(super) fn context(&self) -> &Context {
        self.producer.client().context()
    }
}

impl Cluster {
    /// A cluster to connect to when something is asked of it.
    #[must_use]
    pub fn new(config: ClusterConfig) -> Self {
        Self { config, idle: Mutex::default(), statistics: Statistics::default() }
    }

    /// Where the cluster is, as configured.
    #[must_use]
    pub fn bootstrap_servers(&self) -> &str {
        &self.config.bootstrap_servers
    }

    /// The client settings that all connections to the cluster share: the operator's own.
    #[must_use]
    pub fn client_config(&self) -> ClientConfig {
        self.with_operators(ClientConfig::new())
    }

    /// Lays the operator's settings over those that are there. Straight from the configuration: a `ClientConfig` gives its
    /// secrets out to nobody, and a copy of it would send what it shows in their place.
    fn with_operators(&self, mut client: ClientConfig) -> ClientConfig {
        for (key, value) in &self.config.properties {
            client.set(key, value);
        }
        client.set("bootstrap.servers", &self.config.bootstrap_servers);
        client.set("allow.auto.create.topics", "false");
        client.set_log_level(RDKafkaLogLevel::Warning);
        client
    }

    /// The producer's settings for topics that accept records of `limit` bytes. Those of librdkafka are not ours:
    /// without them it reorders, duplicates, drops, and invents topics.
    #[must_use]
    pub fn producer_config(&self, limit: usize) -> ClientConfig {
        let mut client = ClientConfig::new();
        for (key, value) in [
            ("linger.ms", "0"),
            ("reconnect.backoff.max.ms", "1000"),
            ("queue.buffering.max.kbytes", "65536"),
            ("statistics.interval.ms", statistics::INTERVAL_MS),
        ] {
            client.set(key, value);
        }
        let mut client = self.with_operators(client);
        let (limit, batch) = (limit.to_string(), limit.min(BATCH_BYTES).to_string());
        for (key, value) in [
            ("enable.idempotence", "true"),
            ("enable.gapless.guarantee", "true"),
            ("acks", "all"),
            ("partitioner", "murmur2_random"),
            // A message that expired alone would let a younger one overtake it, and a process that was frozen wakes
            // with the old ones expired and the one in its hand fresh. The turn's deadline purges all of them together.
            ("message.timeout.ms", "0"),
            ("message.max.bytes", &limit),
            ("batch.size", &batch),
            ("topic.metadata.propagation.max.ms", "3000"),
            ("socket.nagle.disable", "true"),
        ] {
            client.set(key, value);
        }
        client
    }

    /// A producer for one publication.
    pub(super) fn lend(&self, limit: usize) -> Result<Lent, Failure> {
        match self.idle().get_mut(&limit).and_then(Vec::pop) {
            Some(lent) => Ok(lent),
            None => self.another(limit),
        }
    }

    fn another(&self, limit: usize) -> Result<Lent, Failure> {
        let producer = self
            .producer_config(limit)
            .create_with_context(Context { reading: self.statistics.reading(), ..Context::default() })
            .map_err(|error| classify::failure(&error, None))?;
        Ok(Lent { producer: Arc::new(producer), limit })
    }

    /// Has a producer connected before it is needed: a first turn must not spend its time on a start that a broker makes
    /// slow, or its deadline falls while records are on the wire.
    pub(super) async fn warm(self: &Arc<Self>, limit: usize, topic: &str, patience: Duration) -> Result<(), Failure> {
        let lent = self.lend(limit)?;
        let topic = topic.to_owned();
        let connected = tokio::task::spawn_blocking(move || {
            let met = lent.client().fetch_metadata(Some(&topic), patience).map(|_| ());
            (lent, met)
        });
        let Ok((lent, met)) = connected.await else { return Ok(()) };
        met.map_err(|error| classify::failure(&error, lent.context().last_error()))?;
        self.take_back(lent);
        Ok(())
    }

    /// How many partitions a topic has, as the cluster says now.
    pub(super) async fn partitions(
        self: &Arc<Self>,
        limit: usize,
        topic: &str,
        patience: Duration,
    ) -> Result<usize, Failure> {
        // Asked through a producer that waits for its next turn, so that it learns the answer itself. It stays where it is: a
        // turn that found it lent to a question would have to connect another.
        let resting = self.idle().get(&limit).and_then(|resting| resting.last()).map(|lent| Arc::clone(&lent.producer));
        let (producer, new) = match resting {
            Some(producer) => (producer, None),
            None => {
                let lent = self.another(limit)?;
                (Arc::clone(&lent.producer), Some(lent))
            }
        };
        let topic = topic.to_owned();
        let asked = tokio::task::spawn_blocking(move || {
            let found = producer.client().fetch_metadata(Some(&topic), patience);
            let found = found.map_err(|error| classify::failure(&error, producer.client().context().last_error()));
            found.map(|found| found.topics().first().map_or(0, |topic| topic.partitions().len()))
        });
        let found = asked.await.map_err(|_| classify::interrupted(None))?;
        if let Some(new) = new {
            self.take_back(new);
        }
        found
    }

    /// Takes an empty producer back.
    pub(super) fn take_back(&self, lent: Lent) {
        if lent.client().fatal_error().is_some() {
            return self.destroy(lent);
        }
        // What it once complained of is over; a lasting trouble is complained of again at the next connection.
        *lent.context().last_error.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.idle().entry(lent.limit).or_default().push(lent);
    }

    /// Ends a producer with whatever it holds: nothing of it is sent later. That takes tens of milliseconds, so it is
    /// done on a thread of its own.
    pub(super) fn destroy(&self, lent: Lent) {
        lent.producer.purge(PurgeConfig::default().queue().inflight());
        std::thread::spawn(move || drop(lent));
    }

    /// What the producers say of themselves, together.
    #[must_use]
    pub fn statistics(&self) -> statistics::Said {
        self.statistics.said()
    }

    fn idle(&self) -> MutexGuard<'_, HashMap<usize, Vec<Lent>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Receives the client's reports.
#[derive(Debug, Default)]
pub(super) struct Context {
    pub(super) ledger: Ledger,
    reading: Reading,
    last_error: Mutex<Option<(KafkaError, String)>>,
}

impl Context {
    /// The client's last complaint about the cluster as a whole, for example refused credentials.
    pub(super) fn last_error(&self) -> Option<(KafkaError, String)> {
        self.last_error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl ClientContext for Context {
    fn stats_raw(&self, json: &[u8]) {
        self.reading.take(json);
    }

    fn error(&self, error: KafkaError, reason: &str) {
        tracing::debug!(%error, reason, "Kafka client");
        *self.last_error.lock().unwrap_or_else(PoisonError::into_inner) = Some((error, reason.to_owned()));
    }
}

impl ProducerContext<NoCustomPartitioner> for Context {
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, row: usize) {
        let error = match result {
            Ok(_) => None,
            Err((error, _)) => Some(error.rdkafka_error_code().unwrap_or(rdkafka::error::RDKafkaErrorCode::Fail)),
        };
        self.ledger.report(row, error);
    }
}
