//! The Kafka cluster: how to connect to it, what it knows of topics, and the producers' settings and reports.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::KafkaError;
use rdkafka::producer::Producer as _;
use secrecy::ExposeSecret as _;

use super::classify;
use super::complaint::{Complaint, OfTls};
use super::errors::NO_CLIENT_CODE;
use super::kind::{ProducerKind, RECORD_BYTES, Spread};
use super::lending::Shelves;
use super::login::Issuer;
use super::missing::{MissingTopics, PROPAGATION};
use super::password::Password;
use super::polled::Polled;
use super::schema::Registries;
use super::statistics::{self, Statistics};
use crate::sink::Failure;

mod config;
mod context;

pub use config::ClusterConfig;
pub(super) use context::Context;

const QUEUE: &str = "queue.buffering.max.kbytes";

/// The cluster of `[kafka]`, shared by all relays of the process.
#[derive(Debug)]
pub struct Cluster {
    config: ClusterConfig,
    pub(super) shelves: Arc<Mutex<Shelves>>,
    pub(super) statistics: Statistics,
    /// Topics that rows named and that were not there.
    pub(super) missing: MissingTopics,
    pub(super) issuer: Option<Arc<Issuer>>,
    pub(super) password: Password,
    pub(super) of_tls: Arc<OfTls>,
    /// Where schemas come from, for formats that have such.
    pub(super) registries: Registries,
}

impl Cluster {
    /// A cluster to connect to when something is asked of it.
    #[must_use]
    pub fn new(config: ClusterConfig) -> Self {
        let issuer = Issuer::of(&config);
        let password =
            Password::new(config.password_file.clone(), config.properties.get("sasl.password").map(String::as_str));
        let (statistics, missing) = (Statistics::default(), MissingTopics::default());
        let (shelves, of_tls, registries) = (Arc::default(), Arc::default(), Registries::default());
        Self { config, shelves, statistics, missing, issuer, password, of_tls, registries }
    }

    /// What a client of it is to note its complaints in.
    pub(super) fn complaint(&self) -> Complaint {
        Complaint::beside(Arc::clone(&self.of_tls))
    }

    /// Why a client could not be made, with the file that is to blame, if one is.
    pub(super) fn not_made(&self, error: &KafkaError) -> Failure {
        let failure = classify::failure(error, None);
        if failure.code != NO_CLIENT_CODE {
            return failure;
        }
        if let Some(unreadable) = self.config.unreadable_file() {
            let hint = "Correct the path, or make it readable for the relay's user; it is read again at the next try";
            return Failure { message: unreadable, hint: hint.to_owned(), ..failure };
        }
        match self.config.file_in(&failure.message) {
            Some(file) => Failure { message: format!("{}: {file}", failure.message), ..failure },
            None => failure,
        }
    }

    /// The property that has the certificate which clients show, with its file, and when it ends, in seconds since 1970-01-01 UTC; none
    /// where there is no such property, or what it has cannot be read here.
    #[must_use]
    pub fn certificate_ends(&self) -> Option<(String, i64)> {
        self.config.certificate_ends()
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
        if let Some(password) = self.password.secret() {
            client.set("sasl.password", password.expose_secret());
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
                let failure = lent.context().failure(&error);
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
        self.end_refused();
        let mut asking: Vec<_> = {
            let shelves = self.shelves();
            let resting =
                |backlog| shelves.get(&ProducerKind { limit, backlog }).and_then(|shelf| shelf.resting.last());
            let kinds = [None, Some(Spread::One), Some(Spread::Several)];
            kinds.into_iter().filter_map(resting).map(|lent| Arc::clone(&lent.producer)).collect()
        };
        let new = if asking.is_empty() {
            self.ready().await?;
            Some(self.another(ProducerKind::prompt(limit))?)
        } else {
            None
        };
        asking.extend(new.iter().map(|lent| Arc::clone(&lent.producer)));
        let topic = topic.to_owned();
        let asked = tokio::task::spawn_blocking(move || {
            let ask = |producer: &Arc<Polled>| {
                producer.wake();
                let client = producer.producer().client();
                let found = client.fetch_metadata(Some(&topic), patience);
                let found = found.map_err(|error| client.context().failure(&error));
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
        let found = asked.await.map_err(|_| classify::interrupted())?;
        if found.is_ok() {
            self.of_tls.forget();
        }
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

#[cfg(test)]
mod tests;
