//! A sink of one's own: what a program that is built on this library registers under a name.
//!
//! The relay keeps its promises around it: order, at least once or at most once, dead letters, the circuit. They rest on what
//! [`CustomSink::publish`] answers: `Ok` only for messages that the receiver has, and [`Failure::in_doubt`] wherever it may have
//! one without having said so.

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;

use super::{Failure, Mark, idempotency_key};
use crate::message::{Field, Message};

mod adapter;
mod kinds;
mod pinned;
mod publication;
#[cfg(test)]
mod tests;

pub use adapter::Adapter;
pub use kinds::{Kinds, Table};
pub use publication::CustomPublication;

/// A sink of one's own. It is made once per relay, when the configuration is read, and is shared by all turns of the process.
#[async_trait]
pub trait CustomSink: Send + Sync + 'static {
    /// What the relay must know of it. Asked once.
    fn description(&self) -> Description;

    /// Whether the receiver is there and takes messages from here, as far as that can be asked without sending one. Asked by the
    /// command `check`, before a relay runs, and before each turn under `at_most_once`: a receiver that is away is then found
    /// out before anything is in doubt.
    ///
    /// # Errors
    /// [`Class::Fatal`](super::Class::Fatal) when an operator must fix something, [`Class::Retry`](super::Class::Retry) when the
    /// receiver is away.
    async fn check(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// Sends the messages in order and waits for the receiver's answer; `Ok` says that it has accepted all of them.
    ///
    /// There is one message at a time where the sink is [one by one](Description::one_by_one), under `at_most_once`, and after
    /// one of several was refused. An answer after `deadline` comes too late: the turn ends then, this future is dropped, and
    /// what was not answered is sent again, or is an unknown outcome under `at_most_once`.
    ///
    /// # Errors
    /// How many of the first messages the receiver has accepted, and why it did not accept the next.
    async fn publish(&self, messages: &[Delivery<'_>], deadline: Instant) -> Result<(), Stopped>;
}

/// What the relay must know of a sink.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Description {
    /// Where the messages go, for the cursor's identity and for people: no secrets.
    pub target: String,
    /// What is read of each row, in this order. The whole row as JSON unless others are named.
    pub fields: Vec<Field>,
    /// Whether each message waits for the one before it.
    pub one_by_one: bool,
    /// The least time between two messages, over all replicas.
    pub min_interval: Option<Duration>,
    /// For how long the receiver remembers an idempotency key.
    pub key_memory: Option<Duration>,
    /// Files whose contents belong to the configuration.
    pub secret_files: Vec<PathBuf>,
}

impl Description {
    fn new(target: String, one_by_one: bool) -> Self {
        let fields = vec![Field::Row];
        Self { target, fields, one_by_one, min_interval: None, key_memory: None, secret_files: Vec::new() }
    }

    /// A sink that sends messages one by one, as to people: a turn has one row unless `[relay.turn]` says otherwise.
    #[must_use]
    pub fn one_by_one(target: impl Into<String>) -> Self {
        Self::new(target.into(), true)
    }

    /// A sink that takes many messages at once.
    #[must_use]
    pub fn in_batches(target: impl Into<String>) -> Self {
        Self::new(target.into(), false)
    }

    /// The same, reading these fields of each row instead of the whole row: [`Message::value`] has them by their number.
    #[must_use]
    pub fn reading(self, fields: impl IntoIterator<Item = Field>) -> Self {
        Self { fields: fields.into_iter().collect(), ..self }
    }

    /// The same, with at least this time between two messages, over all replicas; it sends one by one.
    #[must_use]
    pub fn at_most_every(self, interval: Duration) -> Self {
        Self { min_interval: Some(interval).filter(|interval| !interval.is_zero()), one_by_one: true, ..self }
    }

    /// The same, for a receiver that recognises repeats by their key for so long: `on_unknown = "resend"` needs it.
    #[must_use]
    pub fn remembering_keys_for(self, memory: Duration) -> Self {
        Self { key_memory: Some(memory), ..self }
    }

    /// The same, with a file whose content belongs to the configuration: when it changes, a halted relay retries.
    #[must_use]
    pub fn with_secret_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.secret_files.push(path.into());
        self
    }
}

/// A message on its way to the receiver; as for the rest it is the [`Message`].
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    message: Message<'a>,
    relay: &'a str,
    mark: Option<Mark>,
}

impl Delivery<'_> {
    /// The key by which the receiver can recognise a repeat: the same for each attempt of this message, another for each other
    /// message. ASCII but for letters of the row's id.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        idempotency_key::of(self.relay, &self.message)
    }

    /// The relay's name.
    #[must_use]
    pub const fn relay(&self) -> &str {
        self.relay
    }

    /// Whether an operator has it sent again: it comes out of its order.
    #[must_use]
    pub const fn is_replayed(&self) -> bool {
        matches!(self.mark, Some(Mark::Replayed))
    }

    /// Whether its row became visible behind the position: it comes out of its order, for the first time.
    #[must_use]
    pub const fn is_late(&self) -> bool {
        matches!(self.mark, Some(Mark::Late))
    }
}

impl<'a> Deref for Delivery<'a> {
    type Target = Message<'a>;

    fn deref(&self) -> &Self::Target {
        &self.message
    }
}

/// Why publishing stopped, and how far it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stopped {
    acknowledged: usize,
    suspects: usize,
    failure: Failure,
}

impl Stopped {
    /// The receiver has accepted the first `acknowledged` messages; the failure is about the next one.
    #[must_use]
    pub const fn after(acknowledged: usize, failure: Failure) -> Self {
        Self { acknowledged, suspects: 1, failure }
    }

    /// The same when one of the next `suspects` messages was refused, and with it all of them: they are sent one by one then.
    #[must_use]
    pub fn among(self, suspects: usize) -> Self {
        Self { suspects, ..self }
    }
}

impl From<Failure> for Stopped {
    /// At the first message.
    fn from(failure: Failure) -> Self {
        Self::after(0, failure)
    }
}

/// `[relay.sink.custom]` of the configuration, and the sink that was made of it.
#[derive(Clone)]
pub struct Config {
    /// The name under which it is registered.
    pub kind: &'static str,
    /// Its own keys.
    pub table: Table,
    /// What it says of itself.
    pub description: Description,
    sink: Arc<dyn CustomSink>,
}

impl PartialEq for Config {
    /// Of one kind, two of equal tables are equal.
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.table, &self.description) == (other.kind, &other.table, &other.description)
    }
}

impl fmt::Debug for Config {
    /// Without the table: any of its values may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("kind", &self.kind)
            .field("target", &self.description.target)
            .finish_non_exhaustive()
    }
}
