//! Where a sink's rows meet their schemas.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Encoder, MISMATCH, OF_SCHEMAS, SchemaFacts, SchemaFormat};
use crate::message::Message;
use crate::sink::kafka::record::Record;
use crate::sink::kafka::{Cluster, KafkaSink};
use crate::sink::{Class, Failure, Mark, Subject};

impl KafkaSink {
    /// The record of a message that was there at that time. A row that does not fit the schema in use is judged by the one that the
    /// registry has had since.
    ///
    /// # Errors
    /// Why it cannot be published, or not now.
    pub(in crate::sink::kafka) async fn record<'a>(
        &'a self,
        mark: Option<Mark>,
        message: &Message<'a>,
        since: Instant,
    ) -> Result<Record<'a>, Failure> {
        self.have_schema(message).await?;
        let made = self.layout.record(&self.relay, self.limit, mark, message);
        let Some(encoder) = self.layout.encoder() else { return made };
        match made {
            Err(failure) if failure.code == MISMATCH => {
                let topic = self.layout.topic_of(message)?;
                let renewed = encoder.renew(&self.cluster.registries, &topic, since).await;
                renewed.map_err(|failure| self.of_row(encoder, failure))?;
                // In any case: another publication may have replaced the schema that it was held against.
                self.layout.record(&self.relay, self.limit, mark, message)
            }
            made => made,
        }
    }

    /// Has the schema of a message at hand, where its format needs one and it has a payload.
    ///
    /// # Errors
    /// Why there is none.
    pub(in crate::sink::kafka) async fn have_schema(&self, message: &Message<'_>) -> Result<(), Failure> {
        let Some(encoder) = self.layout.encoder().filter(|_| message.value(0).is_some()) else { return Ok(()) };
        // What is wrong with the topic is said when the record is made.
        let Ok(topic) = self.layout.topic_of(message) else { return Ok(()) };
        let prepared = encoder.prepare(&self.cluster.registries, &topic).await;
        prepared.map_err(|failure| self.of_row(encoder, failure))
    }

    /// The same, waiting no longer than that.
    ///
    /// # Errors
    /// As above, or that there was no answer in time.
    pub(in crate::sink::kafka) async fn have_schema_within(
        &self,
        message: &Message<'_>,
        patience: Duration,
    ) -> Result<(), Failure> {
        let Some(encoder) = self.layout.encoder() else { return Ok(()) };
        tokio::time::timeout(patience, self.have_schema(message)).await.unwrap_or_else(|_| Err(encoder.late()))
    }

    /// The same, ahead of the first message, where all go to one topic.
    ///
    /// # Errors
    /// As above.
    pub async fn have_schema_of(&self, topic: &str) -> Result<(), Failure> {
        let Some(encoder) = self.layout.encoder() else { return Ok(()) };
        let prepared = encoder.prepare(&self.cluster.registries, topic).await;
        prepared.map_err(|failure| failure.of_relay(&self.relay))
    }

    /// Where rows name the topics, and topics have subjects of their own, what is wrong with a schema is the fault of the row.
    fn of_row(&self, encoder: &Encoder, failure: Failure) -> Failure {
        let is_of_schema = OF_SCHEMAS.contains(&failure.code.as_str());
        if is_of_schema && self.layout.is_routed() && encoder.depends_on_topic() {
            return Failure { class: Class::Poison, ..failure }.about(Subject::Message);
        }
        failure
    }
}

/// Asks the registry about the schema of a topic's records; without a topic, which rows name, only whether it answers.
///
/// # Errors
/// What is wrong with the registry, or the schema.
pub async fn describe_schema(
    cluster: &Arc<Cluster>,
    format: &SchemaFormat,
    topic: Option<&str>,
) -> Result<Option<SchemaFacts>, Failure> {
    Encoder::new(format).inspect(&cluster.registries, topic).await
}
