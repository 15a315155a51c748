//! One turn's records to Kafka.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer as _};

use super::cluster::Context;
use super::lending::Lent;
use super::record::Record;
use super::{KafkaSink, classify, partition};
use crate::batch::Batch;
use crate::sink::{Class, Failure, Flow, Mode, Published};

/// How long a cluster may take to say how many partitions a topic has; without an answer, its records go one by one.
const COUNTING: Duration = Duration::from_secs(1);

/// One turn's records. Dropping it purges whatever was not sent.
#[derive(Debug)]
pub struct KafkaPublication<'a> {
    pub(super) sink: &'a KafkaSink,
    mode: Mode,
    pub(super) producer: Option<Lent>,
    sent: usize,
    /// Rows without a key go to one partition, another one each time: this number modulo that of the partitions.
    unkeyed: u32,
    /// The topics of the records sent, where each row names its own.
    topics: Vec<String>,
    /// Why the message number `sent` was not even handed to the client.
    refused: Option<Failure>,
}

impl<'a> KafkaPublication<'a> {
    pub(in crate::sink) fn relay(&self) -> &'a str {
        self.sink.relay()
    }

    pub(super) fn new(sink: &'a KafkaSink, mode: Mode, producer: Lent) -> Self {
        Self {
            sink,
            mode,
            producer: Some(producer),
            sent: 0,
            unkeyed: fastrand::u32(..),
            topics: Vec::new(),
            refused: None,
        }
    }
}

impl KafkaPublication<'_> {
    pub(in crate::sink) async fn push(&mut self, batch: &Batch) -> Flow {
        let begun = Instant::now();
        for message in batch.messages() {
            if self.refused.is_some() || self.failed() || self.mode.is_over() {
                return Flow::Stop;
            }
            match self.sink.record(self.mode.mark, &message, begun).await {
                Ok(record) => {
                    let topic = self.sink.layout.is_routed().then(|| record.topic.clone().into_owned());
                    match self.send(record).await {
                        Ok(true) => {
                            self.sent += 1;
                            self.topics.extend(topic);
                        }
                        Ok(false) => return Flow::Stop,
                        Err(failure) => {
                            self.refused = Some(failure);
                            return Flow::Stop;
                        }
                    }
                    if self.mode.alone {
                        self.settle().await;
                    }
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

    /// Which partition the record goes to; none while the cluster does not say how many there are: the client decides then.
    ///
    /// # Errors
    /// When the row names a topic that has been missing, or denied, for longer than a new one may take to appear.
    async fn partition(&self, producer: &Lent, record: &Record<'_>) -> Result<Option<i32>, Failure> {
        if self.sink.first_only && !self.sink.layout.is_routed() {
            return Ok(Some(0));
        }
        // The number that the cursor knows: a topic that grows must not move a key before anybody has decided.
        let count = match self.mode.partitions.filter(|_| record.key.is_some()) {
            Some(count) => Some(count),
            None => self.count_partitions(producer, &record.topic).await?,
        };
        Ok(match (count, record.key) {
            _ if self.sink.first_only => Some(0),
            (None, _) => None,
            (Some(count), Some(key)) => Some(partition::of(key, count)),
            (Some(count), None) => u32::try_from(count).ok().and_then(|count| i32::try_from(self.unkeyed % count).ok()),
        })
    }

    /// How many partitions a topic has, as the cluster says; none while it does not say.
    async fn count_partitions(&self, producer: &Lent, topic: &str) -> Result<Option<i32>, Failure> {
        if let Some(known) = producer.context().confirmed().partitions(topic, Instant::now()) {
            return Ok(Some(known));
        }
        let begun = Instant::now();
        match ask_for(producer, topic, COUNTING).await {
            None => Ok(None),
            Some(Err(code)) if self.sink.cluster.missing.seen(topic, code, begun) => {
                Err(self.sink.failure(&KafkaError::MessageProduction(code), None, Some(topic)))
            }
            Some(Err(_)) => Ok(None),
            Some(Ok(partitions)) => {
                self.sink.cluster.missing.found(topic);
                producer.context().confirmed().counted(topic, partitions, Instant::now());
                Ok(Some(partitions))
            }
        }
    }

    /// Waits until a record for this partition may follow those before it; false when one of them has failed, or time is over.
    async fn admitted(&self, context: &Context, topic: &str, partition: Option<i32>) -> bool {
        while !context.confirmed().admits(topic, partition, Instant::now()) {
            context.ledger.answered().await;
            if context.ledger.failed() || self.mode.is_over() {
                return false;
            }
            context.confirmed().confirm(Instant::now());
        }
        true
    }

    /// Sends the record; false when one before it has failed, or time is over.
    async fn send(&self, record: Record<'_>) -> Result<bool, Failure> {
        let Some(producer) = &self.producer else { return Err(classify::interrupted()) };
        let partition = self.partition(producer, &record).await?;
        if !self.admitted(producer.context(), &record.topic, partition).await {
            return Ok(false);
        }
        let sent = self.hand_over(producer, partition, record).await;
        if !matches!(sent, Ok(true)) {
            producer.context().confirmed().give_up();
        }
        sent
    }

    /// Hands the record to the client as soon as that has room; false when time is over.
    async fn hand_over(&self, producer: &Lent, partition: Option<i32>, record: Record<'_>) -> Result<bool, Failure> {
        if self.mode.is_over() {
            return Ok(false);
        }
        let ledger = &producer.context().ledger;
        ledger.sending(self.sent);
        let Record { topic, key, value, headers } = record;
        let mut record = BaseRecord::<[u8], [u8], usize>::with_opaque_to(&topic, self.sent).headers(headers);
        record.key = key;
        record.payload = value.as_deref();
        record.partition = partition;
        loop {
            match producer.send(record) {
                Ok(()) => return Ok(true),
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back)) => {
                    record = back;
                    ledger.progress().await;
                    if self.mode.is_over() {
                        ledger.not_sent(self.sent);
                        return Ok(false);
                    }
                }
                Err((error, _)) => {
                    ledger.not_sent(self.sent);
                    let failure = self.sink.failure(&error, Some(producer.context()), Some(&topic));
                    // What a client cannot do is what the brokers said of themselves when it connected: an answer, too.
                    let said = failure.class == Class::Fatal;
                    return Err(if said { self.sink.weighed(failure, 0) } else { failure });
                }
            }
        }
    }

    pub(in crate::sink) fn acknowledged(&self) -> usize {
        self.producer.as_ref().map_or(0, |producer| producer.context().ledger.acknowledged())
    }

    pub(in crate::sink) async fn settle(&self) {
        if let Some(producer) = &self.producer {
            producer.context().ledger.settled().await;
        }
    }

    /// Gives an empty producer back, unless a turn that it is lent to next would fail as this one did.
    fn give_back(&self, producer: Lent) {
        if self.refused.as_ref().is_some_and(classify::is_of_outdated_client) {
            self.sink.cluster.destroy(producer);
        } else {
            self.sink.cluster.take_back(producer);
        }
    }

    pub(in crate::sink) fn finish(mut self) -> Published {
        let Some(producer) = self.producer.take() else {
            return Published { acknowledged: 0, stopped: None, suspects: 1 };
        };
        let outcome = producer.context().ledger.outcome();
        let acknowledged = outcome.acknowledged;
        if outcome.complete {
            producer.context().confirmed().confirm(Instant::now());
            if acknowledged > 0 || self.refused.is_none() {
                self.sink.doubt.clear();
            }
            self.give_back(producer);
            return Published { acknowledged, stopped: self.refused.take(), suspects: 1 };
        }
        let context = Arc::clone(producer.client().context());
        self.sink.cluster.destroy(producer);
        let topics = std::mem::take(&mut self.topics);
        let of = |error, topic| self.sink.failure(&KafkaError::MessageProduction(error), Some(&context), topic);
        let suspects = self.sent - acknowledged;
        // Of several records it is not known which is to blame.
        let topic = topics.get(acknowledged).filter(|_| suspects == 1).map(String::as_str);
        if let Some(failure) = outcome.refused.map(|error| of(error, topic)).filter(|it| it.class == Class::Poison) {
            let denied = topic.filter(|_| outcome.refused == Some(RDKafkaErrorCode::TopicAuthorizationFailed));
            let stopped = self.sink.doubt.weigh_denial(failure, denied, suspects, acknowledged);
            return Published { acknowledged, stopped: Some(stopped), suspects };
        }
        let failure = |row: usize, error| {
            let failure = of(error, topics.get(row).map(String::as_str));
            self.sink.weighed(failure, acknowledged)
        };
        let stopped = match outcome.error {
            Some((row, error)) if row == acknowledged => failure(row, error),
            // Something later failed first: the message in question is simply without an answer.
            Some((row, error)) => Failure { class: Class::Retry, ..failure(row, error) },
            None => {
                let failure = context.login.judged(context.complaint.interrupted());
                self.sink.weighed(failure, acknowledged)
            }
        };
        Published { acknowledged, stopped: Some(stopped), suspects: 1 }
    }
}

/// How many partitions the cluster says that a topic has, or that it is missing or denied; none while it does not say.
pub(super) async fn ask_for(producer: &Lent, topic: &str, patience: Duration) -> Option<Result<i32, RDKafkaErrorCode>> {
    let (asking, name, patience) = (Arc::clone(&producer.producer), topic.to_owned(), patience.min(COUNTING));
    let asked = tokio::task::spawn_blocking(move || {
        let found = asking.producer().client().fetch_metadata(Some(&name), patience).ok()?;
        let found = found.topics().first()?;
        let partitions = i32::try_from(found.partitions().len()).ok().filter(|partitions| *partitions > 0);
        partitions.map(Ok).or_else(|| found.error().map(RDKafkaErrorCode::from).filter(is_about_topic).map(Err))
    });
    asked.await.ok().flatten()
}

/// Whether a cluster says of a topic that it is missing, or that this user may not see it.
fn is_about_topic(code: &RDKafkaErrorCode) -> bool {
    matches!(code, RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::TopicAuthorizationFailed)
}

impl Drop for KafkaPublication<'_> {
    fn drop(&mut self) {
        if let Some(producer) = self.producer.take() {
            self.sink.cluster.destroy(producer);
        }
    }
}
