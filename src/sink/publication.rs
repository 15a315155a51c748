//! The sink's side of one turn's publishing, whatever the sink. The turn's side is `relay/stream/turn/publish.rs`.

use std::time::{Duration, Instant};

use super::{Failure, Flow, Published, custom, email, http, kafka, sql, stdout};
use crate::batch::Batch;

/// One turn's publishing: push batches in order, then `finish`. Dropping it stops at once: nothing more is sent.
#[derive(Debug)]
pub enum Publication<'a> {
    /// See [`kafka`].
    Kafka(kafka::KafkaPublication<'a>),
    /// See [`http`].
    Http(http::HttpPublication<'a>),
    /// See [`email`].
    Email(email::EmailPublication<'a>),
    /// See [`sql`].
    Sql(sql::SqlPublication<'a>),
    /// See [`stdout`].
    Stdout(stdout::StdoutPublication<'a>),
    /// See [`custom`].
    Custom(custom::CustomPublication<'a>),
}

/// What a turn has asked its receiver about messages, before it sends them.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// What the receiver says is no older than this.
    pub since: Instant,
    /// So long it may still be asked.
    pub left: Duration,
}

impl Publication<'_> {
    /// Publishes a batch after all earlier ones. It may return before the receiver has acknowledged anything.
    pub async fn push(&mut self, batch: &Batch) -> Flow {
        match self {
            Self::Kafka(publication) => publication.push(batch).await,
            Self::Http(publication) => publication.push(batch).await,
            Self::Email(publication) => publication.push(batch).await,
            Self::Sql(publication) => publication.push(batch).await,
            Self::Stdout(publication) => publication.push(batch).await,
            Self::Custom(publication) => publication.push(batch).await,
        }
    }

    /// Why the receiver would never accept each of these messages, if that can be known without sending it: of the first of them, as far as
    /// there was time to ask, and up to one refusal more than `most`.
    pub async fn refusals(&self, batch: &Batch, most: usize, asked: &mut Asked) -> Vec<Option<Failure>> {
        match self {
            Self::Kafka(publication) => publication.refusals(batch, most, asked).await,
            Self::Http(_) | Self::Email(_) | Self::Sql(_) | Self::Stdout(_) | Self::Custom(_) => {
                vec![None; batch.len()]
            }
        }
    }

    /// So many of the first messages are acknowledged for good, as far as the sink can say so before the end.
    pub(crate) fn acknowledged(&self) -> usize {
        match self {
            Self::Kafka(publication) => publication.acknowledged(),
            Self::Http(_) | Self::Email(_) | Self::Sql(_) | Self::Stdout(_) | Self::Custom(_) => 0,
        }
    }

    /// Waits until every pushed message is acknowledged or publishing has failed. The caller bounds the wait.
    pub async fn settle(&self) {
        match self {
            Self::Kafka(publication) => publication.settle().await,
            Self::Http(_) | Self::Email(_) | Self::Sql(_) | Self::Stdout(_) | Self::Custom(_) => {}
        }
    }

    /// Ends publishing now: whatever is not acknowledged is given up (and purged, so that it cannot be sent later).
    pub fn finish(self) -> Published {
        let relay = self.relay();
        let published = match self {
            Self::Kafka(publication) => publication.finish(),
            Self::Http(publication) => publication.finish(),
            Self::Email(publication) => publication.finish(),
            Self::Sql(publication) => publication.finish(),
            Self::Stdout(publication) => publication.finish(),
            Self::Custom(publication) => publication.finish(),
        };
        let named = |failure: Failure| match relay {
            Some(relay) => failure.of_relay(relay),
            None => failure,
        };
        Published { stopped: published.stopped.map(named), ..published }
    }
}

impl<'a> Publication<'a> {
    /// The name of its relay, where hints of its failures have it.
    fn relay(&self) -> Option<&'a str> {
        match self {
            Self::Kafka(publication) => Some(publication.relay()),
            Self::Http(publication) => Some(publication.relay()),
            Self::Email(publication) => Some(publication.relay()),
            Self::Sql(_) | Self::Stdout(_) | Self::Custom(_) => None,
        }
    }
}
