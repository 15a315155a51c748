//! Rows of which no record can be made, or that name a topic which is known to be missing: found out before any of them is sent.

use std::time::{Duration, Instant};

use rdkafka::error::KafkaError;

use super::KafkaPublication;
use super::publication::ask_for;
use crate::batch::Batch;
use crate::message::Message;
use crate::sink::{Asked, Class, Failure};

/// What is known of a row without asking.
enum Known {
    /// Why it is refused, if it is.
    Judged(Option<Failure>),
    /// Its topic was missing, and may have been made since.
    Missing(String),
    /// The schema registry gave no answer.
    Unknown,
}

impl KafkaPublication<'_> {
    /// See [`crate::sink::Publication::refusals`].
    pub(in crate::sink) async fn refusals(
        &self,
        batch: &Batch,
        most: usize,
        asked: &mut Asked,
    ) -> Vec<Option<Failure>> {
        let (mut refusals, mut refused) = (Vec::with_capacity(batch.len()), 0);
        for message in batch.messages() {
            let judged = match self.known(&message, asked.since).await {
                Known::Judged(refusal) => Some(refusal),
                Known::Missing(topic) => self.still_missing(&topic, asked).await,
                Known::Unknown => None,
            };
            match judged {
                Some(refusal) => {
                    refused += usize::from(refusal.is_some());
                    refusals.push(refusal);
                }
                // It is sent like any other row: what comes of that is found out then.
                None if refusals.is_empty() => refusals.push(None),
                None => break,
            }
            if refused > most {
                break;
            }
        }
        refusals
    }

    async fn known(&self, message: &Message<'_>, since: Instant) -> Known {
        let sink = self.sink;
        let topic = match sink.record(None, message, since).await {
            Ok(record) => record.topic,
            Err(failure) if failure.class == Class::Poison => return Known::Judged(Some(failure)),
            Err(_) => return Known::Unknown,
        };
        if !sink.layout.is_routed() {
            return Known::Judged(None);
        }
        match sink.cluster.missing.known(&topic, since) {
            None => Known::Judged(None),
            Some(None) => Known::Missing(topic.into_owned()),
            Some(Some(code)) => {
                Known::Judged(Some(sink.failure(&KafkaError::MessageProduction(code), None, Some(&topic))))
            }
        }
    }

    /// Why a row that names this topic is refused, if it is; none when there was no time to ask, or no answer.
    async fn still_missing(&self, topic: &str, asked: &mut Asked) -> Option<Option<Failure>> {
        let producer = self.producer.as_ref().filter(|_| !asked.left.is_zero())?;
        let begun = Instant::now();
        let answer = ask_for(producer, topic, asked.left).await;
        asked.left = answer.map_or(Duration::ZERO, |_| asked.left.saturating_sub(begun.elapsed()));
        let missing = &self.sink.cluster.missing;
        Some(match answer? {
            Ok(_) => {
                missing.found(topic);
                None
            }
            // The answer is no older than the question.
            Err(code) => missing
                .seen(topic, code, begun)
                .then(|| self.sink.failure(&KafkaError::MessageProduction(code), None, Some(topic))),
        })
    }
}
