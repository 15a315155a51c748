//! The Kafka cluster: how to connect to it, what it knows of topics, and the producers' settings and reports.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{NoCustomPartitioner, Producer as _, ProducerContext};

use super::classify;
use super::confirmed::Confirmed;
use super::kind::{ProducerKind, RECORD_BYTES, Spread};
use super::ledger::Ledger;
use super::lending::Shelves;
use super::missing::{MissingTopics, PROPAGATION};
use super::polled::Polled;
use super::statistics::{self, Reading, Statistics};
use crate::sink::Failure;

const QUEUE: &str = "queue.buffering.max.kbytes";

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

/// The cluster of `[kafka]`, shared by all relays of the process.
#[derive(Debug)]
pub struct Cluster {
    config: ClusterConfig,
    pub(super) shelves: Arc<Mutex<Shelves>>,
    pub(super) statistics: Statistics,
    /// Topics that rows named and that were not there.
    pub(super) missing: MissingTopics,
}

impl Cluster {
    /// A cluster to connect to when something is asked of it.
    #[must_use]
    pub fn new(config: ClusterConfig) -> Self {
        Self { config, shelves: Arc::default(), statistics: Statistics::default(), missing: MissingTopics::default() }
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

    /// A producer's settings. Those of librdkafka are not ours: without them it reorders, duplicates, drops, and invents
    /// topics.
    #[must_use]
    pub fn producer_config(&self, kind: ProducerKind) -> ClientConfig {
        let mut client = ClientConfig::new();
        for (key, value) in [
            ("linger.ms", kind.linger()),
            ("reconnect.backoff.max.ms", self.longest_reconnect()),
            ("queue.buffering.max.messages", kind.queue_messages()),
            ("statistics.interval.ms", statistics::INTERVAL_MS),
        ] {
            client.set(key, value);
        }
        let mut client = self.with_operators(client);
        let kind = ProducerKind { limit: kind.limit.clamp(*RECORD_BYTES.start(), *RECORD_BYTES.end()), ..kind };
        let configured = client.get(QUEUE).and_then(|kib| kib.parse().ok());
        let queue = kind.queue_kib(configured).to_string();
        let (limit, batch) = (kind.limit.to_string(), kind.batch_bytes().to_string());
        for (key, value) in [
            ("enable.idempotence", "true"),
            ("enable.gapless.guarantee", "true"),
            ("acks", "all"),
            ("partitioner", "murmur2_random"),
            // A message that expired alone would let a younger one overtake it, and a process that was frozen wakes
            // with the old ones expired and the one in its hand fresh. The turn's deadline purges all of them together.
            ("message.timeout.ms", "0"),
            ("message.max.bytes", &limit),
            (QUEUE, &queue),
            ("batch.size", &batch),
            ("topic.metadata.propagation.max.ms", &PROPAGATION.as_millis().to_string()),
            ("socket.nagle.disable", "true"),
        ] {
            client.set(key, value);
        }
        client
    }

    /// Milliseconds: a second, or what the operator has set as the shortest pause, which may not be longer.
    fn longest_reconnect(&self) -> &str {
        let shortest = self.config.properties.get("reconnect.backoff.ms");
        shortest.filter(|text| text.parse().is_ok_and(|shortest: u64| shortest > 1_000)).map_or("1000", String::as_str)
    }

    /// Has a producer connected before it is needed: a first turn must not spend its time on a start that a broker makes
    /// slow, or its deadline falls while records are on the wire.
    pub(super) async fn warm(self: &Arc<Self>, limit: usize, topic: &str, patience: Duration) -> Result<(), Failure> {
        let lent = self.lend(limit, Some(topic)).await?;
        let topic = topic.to_owned();
        let connected = tokio::task::spawn_blocking(move || {
            let met = lent.client().fetch_metadata(Some(&topic), patience).map(|_| ());
            (lent, met)
        });
        let Ok((lent, met)) = connected.await else { return Ok(()) };
        match met {
            Ok(()) => {
                self.take_back(lent);
                Ok(())
            }
            Err(error) => {
                let failure = classify::failure(&error, lent.context().last_error());
                self.destroy(lent);
                Err(failure)
            }
        }
    }

    /// How many partitions a topic has, as the cluster says now.
    pub(super) async fn partitions(
        self: &Arc<Self>,
        limit: usize,
        topic: &str,
        patience: Duration,
    ) -> Result<usize, Failure> {
        // Asked through producers that wait for their next turn, so that they learn the answer themselves. They stay where they
        // are: a turn that found its producer lent to a question would have to connect another.
        let mut asking: Vec<_> = {
            let shelves = self.shelves();
            let resting =
                |backlog| shelves.get(&ProducerKind { limit, backlog }).and_then(|shelf| shelf.resting.last());
            let kinds = [None, Some(Spread::One), Some(Spread::Several)];
            kinds.into_iter().filter_map(resting).map(|lent| Arc::clone(&lent.producer)).collect()
        };
        let new = if asking.is_empty() { Some(self.another(ProducerKind::prompt(limit))?) } else { None };
        asking.extend(new.iter().map(|lent| Arc::clone(&lent.producer)));
        let topic = topic.to_owned();
        let asked = tokio::task::spawn_blocking(move || {
            let ask = |producer: &Arc<Polled>| {
                producer.wake();
                let client = producer.producer().client();
                let found = client.fetch_metadata(Some(&topic), patience);
                let found = found.map_err(|error| classify::failure(&error, client.context().last_error()));
                producer.rest();
                found.map(|found| found.topics().first().map_or(0, |topic| topic.partitions().len()))
            };
            let found = asking.first().map_or(Ok(0), ask);
            if found.is_ok() {
                // What others say does not matter: they are asked so that they know.
                asking.iter().skip(1).for_each(|other| drop(ask(other)));
            }
            found
        });
        let found = asked.await.map_err(|_| classify::interrupted(None))?;
        if let Some(new) = new {
            // Below the others: it has sent nothing yet, and its first record would wait for what a producer asks at first.
            self.shelves().entry(new.kind).or_default().resting.insert(0, new);
        }
        found
    }

    /// What the producers say of themselves, together. Asked about once a second.
    #[must_use]
    pub fn statistics(&self) -> statistics::Said {
        self.tidy();
        self.statistics.said()
    }
}

impl Drop for Cluster {
    /// Ends all producers' threads at once: each needs a moment to see it, and they are dropped one after the other.
    fn drop(&mut self) {
        self.shelves().values().flat_map(|shelf| &shelf.resting).for_each(|lent| lent.producer.end());
    }
}

/// Receives the client's reports.
#[derive(Debug, Default)]
pub(super) struct Context {
    pub(super) ledger: Ledger,
    pub(super) confirmed: Mutex<Confirmed>,
    pub(super) reading: Reading,
    pub(super) last_error: Mutex<Option<(KafkaError, String)>>,
}

impl Context {
    pub(super) fn confirmed(&self) -> MutexGuard<'_, Confirmed> {
        self.confirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }

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

#[cfg(test)]
mod tests {
    use rdkafka::producer::BaseProducer;

    use super::*;

    fn producer(limit: usize, queue: Option<&str>) -> ClientConfig {
        let properties: BTreeMap<_, _> = queue.map(|kib| (QUEUE.to_owned(), kib.to_owned())).into_iter().collect();
        Cluster::new(ClusterConfig { bootstrap_servers: "127.0.0.1:1".to_owned(), properties })
            .producer_config(ProducerKind::prompt(limit))
    }

    // Guarantee: delivery.large-rows
    #[test]
    fn a_producers_queue_has_room_for_two_records_of_the_topics_limit_whatever_it_is() {
        let kib = |limit, queue| {
            let kib = producer(limit, queue).get(QUEUE).and_then(|kib| kib.parse::<usize>().ok());
            kib.expect("a number")
        };
        assert_eq!(kib(1_048_588, None), 8_192);
        assert_eq!((kib(1_048_588, Some("65536")), kib(1_048_588, Some("4096"))), (65_536, 4_096), "the operator's");
        for (limit, queue) in [(64 << 20, None), (100_000_000, None), (1_000_000_000, None), (64 << 20, Some("1"))] {
            assert!(kib(limit, queue) * 1024 >= 2 * limit, "{limit} bytes");
        }
    }

    #[test]
    fn the_operators_shortest_pause_before_a_reconnection_is_never_above_the_longest() {
        for (shortest, longest) in [("5000", "5000"), ("100", "1000")] {
            let properties = BTreeMap::from([("reconnect.backoff.ms".to_owned(), shortest.to_owned())]);
            let cluster = Cluster::new(ClusterConfig { bootstrap_servers: "127.0.0.1:1".to_owned(), properties });
            let config = cluster.producer_config(ProducerKind::prompt(1_048_588));
            assert_eq!(config.get("reconnect.backoff.max.ms"), Some(longest));
            let made = config.create_with_context::<_, BaseProducer<Context>>(Context::default());
            assert!(made.is_ok(), "{:?}", made.err());
        }
    }

    // Guarantee: delivery.large-rows
    #[test]
    fn every_limit_that_a_topic_can_have_makes_a_producer() {
        for limit in [0, 1, 999, 1_000, 1_048_588, 1_000_000_000, 2_147_483_647] {
            let made = producer(limit, None).create_with_context::<_, BaseProducer<Context>>(Context::default());
            assert!(made.is_ok(), "{limit} bytes: {:?}", made.err());
        }
    }
}
