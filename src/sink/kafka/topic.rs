//! What a topic is like: whether it exists, how many partitions it has, how large a record may be.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, ResourceSpecifier};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::metadata::MetadataPartition;
use rdkafka::producer::{BaseProducer, Producer as _};

use super::login::Asked;
use super::{Cluster, KafkaSink, Login, ProducerKind, classify};
use crate::message::Message;
use crate::sink::Failure;

/// So long the reason of a failure is waited for, at most: a busy machine tells it late.
const REASON: Duration = Duration::from_millis(500);
/// Enough to take what already waits in the client's queue.
const EVENTS: Duration = Duration::from_millis(20);

/// Kafka's own `max.message.bytes`: only who has raised it comes near to what one request may have.
const USUAL: usize = 1_048_588;
/// What a request has beside its records, at most.
const REQUEST: usize = 4_096;

/// A topic as the cluster describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFacts {
    /// Whether it exists.
    pub exists: bool,
    /// How many partitions it has.
    pub partitions: usize,
    /// Its `max.message.bytes`, or less where its broker takes no request of that size; none when this user may not read it.
    pub max_message_bytes: Option<usize>,
}

/// Asks the cluster about a topic, without creating it.
///
/// # Errors
/// When the cluster cannot be asked.
pub async fn describe_topic(cluster: &Arc<Cluster>, topic: &str, timeout: Duration) -> Result<TopicFacts, Failure> {
    cluster.ready().await?;
    let found = {
        let (cluster, topic) = (Arc::clone(cluster), topic.to_owned());
        tokio::task::spawn_blocking(move || partitions(&cluster, &topic, timeout))
            .await
            .unwrap_or_else(|_| Err(classify::failure(&KafkaError::MetadataFetch(RDKafkaErrorCode::Fail), None)))?
    };
    let Some((partitions, leader)) = found else {
        return Ok(TopicFacts { exists: false, partitions: 0, max_message_bytes: None });
    };
    let max_message_bytes = max_message_bytes(cluster, topic, leader, timeout).await;
    Ok(TopicFacts { exists: true, partitions, max_message_bytes })
}

impl Cluster {
    /// A client of one question. A producer, because a consumer throws the words of an error away; with every setting of those
    /// that send, so that it refuses now which settings it would refuse then.
    fn asking(&self) -> Result<BaseProducer<Asked>, Failure> {
        let mut settings = self.producer_config(ProducerKind::prompt(USUAL));
        let asked = Asked::new(self);
        let client = settings.set("statistics.interval.ms", "0").create_with_context(asked);
        let client: BaseProducer<Asked> = client.map_err(|error| self.not_made(&error))?;
        client.context().login.log_in(|time| client.poll(time));
        Ok(client)
    }

    /// A client for the cluster's settings and those of its topics.
    ///
    /// # Errors
    /// When the properties make no client.
    pub async fn admin(self: &Arc<Self>) -> Result<AdminClient<Login>, Failure> {
        let cluster = Arc::clone(self);
        let made = tokio::task::spawn_blocking(move || {
            let login = cluster.login();
            let admin: AdminClient<Login> = cluster.client_config().create_with_context(login.clone())?;
            login.log_in(|time| admin.poll(time));
            Ok(admin)
        });
        let made = made.await.map_err(|_| classify::interrupted())?;
        made.map_err(|error: KafkaError| self.not_made(&error))
    }
}

/// How many partitions the topic has, and who leads the first; none when it does not exist.
fn partitions(cluster: &Cluster, topic: &str, timeout: Duration) -> Result<Option<(usize, Option<i32>)>, Failure> {
    let client = cluster.asking()?;
    let failure = |error: KafkaError| {
        // The reason, a refused certificate for example, waits to be fetched; the time-out alone would blame the brokers.
        let asked = Instant::now();
        while !client.context().complaint.has_reason() && asked.elapsed() < REASON {
            client.poll(EVENTS);
        }
        client.context().failure(&error)
    };
    let metadata = client.client().fetch_metadata(Some(topic), timeout).map_err(failure)?;
    cluster.of_tls.forget();
    let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else { return Ok(None) };
    match found.error().map(RDKafkaErrorCode::from) {
        None => {
            let leader = found.partitions().first().map(MetadataPartition::leader).filter(|leader| *leader >= 0);
            Ok(Some((found.partitions().len(), leader)))
        }
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => Ok(None),
        Some(code) => Err(classify::failure(&KafkaError::MetadataFetch(code), None)),
    }
}

async fn max_message_bytes(
    cluster: &Arc<Cluster>,
    topic: &str,
    leader: Option<i32>,
    timeout: Duration,
) -> Option<usize> {
    let admin = cluster.admin().await.ok()?;
    let limit = number(&admin, ResourceSpecifier::Topic(topic), "max.message.bytes", timeout).await?;
    if limit <= USUAL {
        return Some(limit);
    }
    // At a larger request a broker closes the connection without a word: the record would be sent again indefinitely. Brokers of
    // one cluster are taken to be alike.
    let request = match leader {
        Some(leader) => number(&admin, ResourceSpecifier::Broker(leader), "socket.request.max.bytes", timeout).await,
        None => None,
    };
    Some(request.map_or(limit, |bytes| limit.min(bytes.saturating_sub(REQUEST))))
}

async fn number(
    admin: &AdminClient<Login>,
    of: ResourceSpecifier<'_>,
    setting: &str,
    timeout: Duration,
) -> Option<usize> {
    let options = AdminOptions::new().request_timeout(Some(timeout));
    let described = admin.describe_configs(&[of], &options).await.ok()?;
    let entry = described.into_iter().next()?.ok()?;
    entry.get(setting).and_then(|entry| entry.value.as_deref()?.parse().ok())
}

impl KafkaSink {
    /// An answer of the cluster, whatever it says of the message's topic; and one of the registry, where the message needs a schema that
    /// is not known.
    pub(in crate::sink) async fn reach(&self, message: &Message<'_>, patience: Duration) -> Result<(), Failure> {
        let Ok(topic) = self.layout.topic_of(message) else { return Ok(()) };
        self.have_schema_within(message, patience).await?;
        let asked = self.cluster.partitions(self.limit, &topic, patience).await;
        asked.map(drop).map_err(|failure| self.weighed(Failure { ambiguous: false, ..failure }, 0))
    }
}
