//! Where messages go. A sink publishes batches in order and says how far it got and why it stopped.
//!
//! Promise: a message counts as acknowledged only when the receiver said so, and the acknowledged prefix never has a
//! gap. A sink knows nothing of cursors or sources, and of PostgreSQL only the transaction that it may be handed.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

mod bound_template;
pub mod command;
pub mod custom;
pub mod email;
mod failure;
pub mod http;
mod idempotency_key;
pub mod kafka;
mod kind;
mod mode;
mod once;
mod publication;
mod receipt;
mod refusal_counts;
mod row_headers;
mod settings;
pub mod sms;
pub mod sql;
pub mod stdout;
pub mod template;
pub mod webhook;

pub use failure::{Class, Failure, KnownError, Phase, Subject, named};
pub use kind::{Kind, LaneKey};
pub use mode::{Flow, Mark, Mode};
pub use once::Progress;
pub use publication::{Asked, Publication};
pub use receipt::Receipt;
pub use settings::Config;

use deadpool_postgres::ClientWrapper;

use crate::message::{ColumnType, Field, Message};

/// A setting that a sink cannot work with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct InvalidSetting {
    /// The key below the sink's own table, for example `url` or `headers.X-Source`.
    pub key: String,
    /// What is wrong with its value, and what would be right.
    pub problem: String,
}

/// The outcome of one turn's publishing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    /// How many leading messages, in the order pushed, the receiver has acknowledged.
    pub acknowledged: usize,
    /// Why the rest was not acknowledged.
    pub stopped: Option<Failure>,
    /// Among how many messages, from the number `acknowledged` (counted from 0) on, the one stands that `stopped` is
    /// about: a refused record takes its whole batch with it. 1: it is that message.
    pub suspects: usize,
}

/// A sink, ready to publish for one relay.
#[derive(Debug)]
pub enum Sink {
    /// See [`kafka`].
    Kafka(kafka::KafkaSink),
    /// See [`http`]; [`sms`] and [`webhook`] are presets of it.
    Http(http::HttpSink),
    /// See [`sql`].
    Sql(sql::SqlSink),
    /// See [`email`].
    Email(email::EmailSink),
    /// See [`stdout`].
    Stdout(stdout::StdoutSink),
    /// See [`command`].
    Command(command::CommandSink),
    /// See [`custom`].
    Custom(custom::Adapter),
}

impl Sink {
    /// What must be read of each row.
    #[must_use]
    pub fn fields(&self) -> &[Field] {
        match self {
            Self::Kafka(sink) => sink.fields(),
            Self::Http(sink) => sink.fields(),
            Self::Sql(sink) => sink.fields(),
            Self::Email(sink) => sink.fields(),
            Self::Stdout(sink) => sink.fields(),
            Self::Command(sink) => sink.fields(),
            Self::Custom(sink) => sink.fields(),
        }
    }

    /// Whether the sink is right for a table of these columns: what it sends back to the database has their types.
    #[must_use]
    pub fn fits(&self, columns: &BTreeMap<String, ColumnType>) -> bool {
        match self {
            Self::Sql(sink) => sink.fits(columns),
            Self::Kafka(_) | Self::Http(_) | Self::Email(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                true
            }
        }
    }

    /// Whether the values go back to the database, each in its column's type.
    #[must_use]
    pub const fn is_typed(&self) -> bool {
        match self {
            Self::Sql(_) => true,
            Self::Kafka(_) | Self::Http(_) | Self::Email(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                false
            }
        }
    }

    /// Whether its publications say how far they are acknowledged while they go on.
    #[must_use]
    pub const fn says_what_is_acknowledged(&self) -> bool {
        match self {
            Self::Kafka(_) => true,
            Self::Http(_) | Self::Sql(_) | Self::Email(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                false
            }
        }
    }

    /// The least time between two messages, when a rate is configured. The engine keeps it, by the cursor's own last
    /// advance, so that it holds across replicas.
    #[must_use]
    pub fn min_interval(&self) -> Option<Duration> {
        match self {
            Self::Http(sink) => sink.min_interval(),
            Self::Email(sink) => sink.min_interval(),
            Self::Custom(sink) => sink.min_interval(),
            Self::Kafka(_) | Self::Sql(_) | Self::Stdout(_) | Self::Command(_) => None,
        }
    }

    /// How many messages can be on their way at a time; none where the sink sets no bound. More would only wait.
    #[must_use]
    pub fn at_once(&self) -> Option<usize> {
        match self {
            Self::Email(sink) => Some(sink.at_once()),
            Self::Kafka(_) | Self::Http(_) | Self::Sql(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                None
            }
        }
    }

    /// After how long a message is given up that is not answered; none where only the caller's deadline ends it.
    #[must_use]
    pub const fn timeout(&self) -> Option<Duration> {
        match self {
            Self::Http(sink) => Some(sink.timeout()),
            Self::Email(sink) => Some(sink.timeout()),
            Self::Kafka(_) | Self::Sql(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => None,
        }
    }

    /// Over how many partitions the topic spreads keys, as last seen; none where that does not matter.
    #[must_use]
    pub fn partitions(&self) -> Option<i32> {
        match self {
            Self::Kafka(sink) => sink.partitions(),
            Self::Http(_) | Self::Sql(_) | Self::Email(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                None
            }
        }
    }

    /// Asks the receiver again what [`Self::partitions`] tells.
    ///
    /// # Errors
    /// When it does not answer within `patience`.
    pub async fn look_again(&self, patience: Duration) -> Result<(), Failure> {
        match self {
            Self::Kafka(sink) => sink.count_partitions(patience).await.map_err(|failure| self.named(failure)),
            Self::Http(_) | Self::Sql(_) | Self::Email(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                Ok(())
            }
        }
    }

    /// Takes over what another relay's sink of the same target was told by [`Self::look_again`].
    pub fn learn_partitions(&self, from: &Self) {
        match self {
            Self::Kafka(sink) => {
                if let Self::Kafka(other) = from {
                    sink.learn_partitions(other);
                }
            }
            Self::Http(_) | Self::Sql(_) | Self::Email(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {}
        }
    }

    /// Asks the receiver of a message whether it is there at all, as far as that can be asked without a message: a client that queues
    /// messages for a cluster that is out cannot tell later which of them it sent.
    ///
    /// # Errors
    /// When it does not answer within `patience`; nothing was sent.
    pub async fn reach(&self, message: &Message<'_>, patience: Duration) -> Result<(), Failure> {
        match self {
            Self::Kafka(sink) => sink.reach(message, patience).await.map_err(|failure| self.named(failure)),
            Self::Email(sink) => sink.probe(patience).await.map(drop).map_err(|failure| self.named(failure)),
            Self::Custom(sink) => sink.check(patience).await,
            Self::Http(_) | Self::Sql(_) | Self::Stdout(_) | Self::Command(_) => Ok(()),
        }
    }

    /// The message's key and its payload as it would be sent; no payload when none can be made of it. A template that has failed
    /// is not printed again: that may take as long as it did.
    #[must_use]
    pub fn rendered<'a>(&self, message: &Message<'a>, failure: &Failure) -> (Option<String>, Option<Cow<'a, [u8]>>) {
        match self {
            Self::Http(_) | Self::Email(_) if failure.code == template::FAILED => (None, None),
            Self::Kafka(sink) => sink.rendered(message),
            Self::Http(sink) => (None, sink.rendered(message)),
            Self::Sql(sink) => (None, Some(Cow::Owned(sink.rendered(message)))),
            Self::Email(sink) => (None, sink.rendered(message).map(Cow::Owned)),
            Self::Stdout(_) => (None, message.value(0).map(Cow::Borrowed)),
            Self::Command(_) => (None, None),
            Self::Custom(sink) => (None, sink.rendered(message).map(Cow::Borrowed)),
        }
    }

    /// Whether [`Publication::refusals`] may name any.
    #[must_use]
    pub const fn may_refuse(&self) -> bool {
        match self {
            Self::Kafka(_) => true,
            Self::Http(_) | Self::Sql(_) | Self::Email(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                false
            }
        }
    }

    /// The same failure, with the relay's name in its hint.
    fn named(&self, failure: Failure) -> Failure {
        match self {
            Self::Kafka(sink) => failure.of_relay(sink.relay()),
            Self::Http(sink) => failure.of_relay(sink.relay()),
            Self::Email(sink) => failure.of_relay(sink.relay()),
            Self::Sql(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => failure,
        }
    }

    /// Begins one turn's publishing.
    ///
    /// # Errors
    /// When the sink cannot even begin, for example because its client cannot be built.
    pub async fn begin(&self, mode: Mode) -> Result<Publication<'_>, Failure> {
        Ok(match self {
            Self::Kafka(sink) => Publication::Kafka(sink.begin(mode).await.map_err(|failure| self.named(failure))?),
            Self::Http(sink) => Publication::Http(sink.begin(mode).map_err(|failure| self.named(failure))?),
            Self::Sql(_) => {
                let hint = "Read the table by [relay.source.stream], under the guarantee in_database.";
                return Err(Failure::of(
                    Class::Fatal,
                    "no_transaction",
                    "the statement has no transaction to run in",
                    hint,
                ));
            }
            Self::Email(sink) => Publication::Email(sink.begin(mode)),
            Self::Stdout(sink) => Publication::Stdout(sink.begin(mode)),
            Self::Command(_) => return Err(command::CommandSink::refusal()),
            Self::Custom(sink) => Publication::Custom(sink.begin(mode)),
        })
    }

    /// Begins one turn's publishing; what changes this database does so in `transaction`, which the caller commits with the
    /// advance over the acknowledged prefix, or rolls back.
    ///
    /// # Errors
    /// As for [`Self::begin`].
    pub async fn begin_within<'a>(
        &'a self,
        mode: Mode,
        transaction: &'a ClientWrapper,
    ) -> Result<Publication<'a>, Failure> {
        match self {
            Self::Sql(sink) => Ok(Publication::Sql(sink.begin(mode, transaction))),
            Self::Kafka(_) | Self::Http(_) | Self::Email(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                self.begin(mode).await
            }
        }
    }
}
