//! A topic that gets a copy of every dead letter. The table is what counts: the copy is for whoever watches topics.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rdkafka::error::KafkaError;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};

use super::login::Asked;
use super::record::OVERHEAD;
use super::{Cluster, ProducerKind};
use crate::sink::{Class, Failure, Subject};

/// What is said of a message that was dead-lettered.
#[derive(Clone, Copy, Debug)]
pub struct Obituary<'a> {
    /// The relay.
    pub relay: &'a str,
    /// The message's id.
    pub id: &'a str,
    /// When its row was created, RFC 3339.
    pub created_at: &'a str,
    /// Kind of the sink that refused it.
    pub sink: &'a str,
    /// Where it should have gone.
    pub target: &'a str,
    /// Its key.
    pub key: Option<&'a str>,
    /// The payload as sent.
    pub payload: Option<&'a [u8]>,
    /// Why it was refused.
    pub failure: &'a Failure,
}

/// See the module.
pub struct LetterTopic {
    topic: String,
    limit: usize,
    cluster: Arc<Cluster>,
    /// None after a failure: an idempotent producer that was refused a record may accept nothing more.
    producer: Mutex<Option<Kept>>,
}

type Kept = (FutureProducer<Asked>, Asked);

impl fmt::Debug for LetterTopic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LetterTopic").field("topic", &self.topic).field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl LetterTopic {
    /// The topic of this name, which accepts records of `limit` bytes.
    #[must_use]
    pub fn new(cluster: &Arc<Cluster>, topic: &str, limit: usize) -> Self {
        Self { topic: topic.to_owned(), limit, cluster: Arc::clone(cluster), producer: Mutex::default() }
    }

    fn producer(&self) -> Result<Kept, KafkaError> {
        let mut kept = self.kept();
        if let Some(kept) = kept.as_ref() {
            return Ok(kept.clone());
        }
        let mut config = self.cluster.producer_config(ProducerKind::prompt(self.limit));
        // Letters are few, and a broker that refuses a producer's first request may accept its second (see `Confirmed`).
        config.set("max.in.flight.requests.per.connection", "1");
        let asked = Asked::new(&self.cluster);
        let producer: FutureProducer<Asked> = config.create_with_context(asked.clone())?;
        Ok(kept.insert((producer, asked)).clone())
    }

    fn kept(&self) -> MutexGuard<'_, Option<Kept>> {
        self.producer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the topic has the copy. Without the payload when the topic is too small for it: the table has it.
    ///
    /// # Errors
    /// When it is not acknowledged in time, or refused; the row must not be dead-lettered then.
    pub async fn put(&self, obituary: &Obituary<'_>, patience: Duration) -> Result<(), Failure> {
        let Obituary { relay, id, created_at, sink, target, key, payload, failure } = *obituary;
        let said = [
            ("id", id),
            ("created_at", created_at),
            ("relay", relay),
            ("sink", sink),
            ("target", target),
            ("error_code", failure.code.as_str()),
            ("error", failure.message.as_str()),
        ];
        let size = said.iter().map(|(name, value)| name.len() + value.len() + 8).sum::<usize>()
            + OVERHEAD
            + key.map_or(0, str::len)
            + payload.map_or(0, <[u8]>::len);
        let mut headers = said
            .iter()
            .fold(OwnedHeaders::new(), |headers, (key, value)| headers.insert(Header { key, value: Some(*value) }));
        let fits = size <= self.limit;
        if !fits {
            headers = headers.insert(Header { key: "payload_omitted", value: Some("true") });
        }
        let mut record = FutureRecord::<str, [u8]>::to(&self.topic).headers(headers);
        record.key = key;
        record.payload = payload.filter(|_| fits);
        self.cluster.ready().await.map_err(|cause| self.failure(cause))?;
        let (producer, asked) = self.producer().map_err(|error| self.failure(self.cluster.not_made(&error)))?;
        let sent = tokio::time::timeout(patience, producer.send(record, patience)).await;
        let failure = match sent {
            Ok(Ok(_)) => {
                asked.login.is_accepted();
                return Ok(());
            }
            Ok(Err((error, _))) => asked.failure(&error),
            Err(_) => asked.login.judged(asked.complaint.interrupted()),
        };
        let kept = self.kept().take();
        // Its end waits for its own thread.
        std::thread::spawn(move || drop((kept, producer)));
        Err(self.failure(failure))
    }

    fn failure(&self, cause: Failure) -> Failure {
        // That the copy is refused says nothing about the message: an operator must fix the topic.
        let class = if cause.class == Class::Retry { Class::Retry } else { Class::Fatal };
        Failure {
            class,
            ambiguous: false,
            code: "dead_letter_topic".to_owned(),
            message: format!("Dead letter topic {}: {} ({})", self.topic, cause.message, cause.code),
            hint: format!("No row is dead-lettered before this topic has a copy. {}", cause.hint),
            subject: Subject::Elsewhere,
            retry_after: None,
        }
    }
}
