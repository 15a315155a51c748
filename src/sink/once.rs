//! Messages that are sent once: pinned, delivered as they were pinned, asked about.

use std::time::Duration;

use super::{Class, Failure, Receipt, Sink, email};
use crate::message::Message;

/// How far a delivery has come, for the code that stops it on the way.
#[derive(Debug, Default)]
pub struct Progress {
    /// Of a mail.
    step: email::Step,
    /// A client has the request that sends it, and does not tell what it does with it.
    handed_over: bool,
}

impl Progress {
    /// Whether the receiver may have the message.
    #[must_use]
    pub fn may_have_left(&self) -> bool {
        self.handed_over || self.step >= email::Step::Dot
    }
}

impl Sink {
    /// Renders a message as it is sent then, however often; only for sinks that can send one message once.
    ///
    /// # Errors
    /// When none can be made of it: it is poison.
    pub fn pin(&self, message: &Message<'_>) -> Result<Vec<u8>, Failure> {
        match self {
            Self::Http(sink) => sink.pin(message),
            Self::Email(sink) => sink.pin(message),
            Self::Custom(sink) => Ok(sink.pin(message)),
            Self::Kafka(_) | Self::Sql(_) | Self::Stdout(_) | Self::Command(_) => Err(not_once()),
        }
    }

    /// Sends the message with this id as it was pinned, and waits for the receiver's answer, no longer than `patience`.
    /// `progress` says how far it has come, also when this is dropped.
    ///
    /// # Errors
    /// When it was not accepted, or nobody knows: `ambiguous` tells.
    pub async fn deliver(
        &self,
        id: &str,
        pinned: &[u8],
        patience: Duration,
        progress: &mut Progress,
    ) -> Result<Receipt, Failure> {
        let delivered = match self {
            Self::Http(sink) => sink.deliver(pinned, patience, &mut progress.handed_over).await,
            Self::Email(sink) => sink.deliver(id, pinned, patience, &mut progress.step).await,
            Self::Custom(sink) => sink.deliver(id, pinned, patience, &mut progress.handed_over).await,
            Self::Kafka(_) | Self::Sql(_) | Self::Stdout(_) | Self::Command(_) => Err(not_once()),
        };
        delivered.map_err(|failure| self.named(failure))
    }

    /// Asks the receiver whether it has the message; none when it has not.
    ///
    /// # Errors
    /// When it does not say.
    pub async fn ask(&self, message: &Message<'_>, patience: Duration) -> Result<Option<Receipt>, Failure> {
        match self {
            Self::Http(sink) => sink.ask(message, patience).await.map_err(|failure| self.named(failure)),
            Self::Kafka(_) | Self::Email(_) | Self::Sql(_) | Self::Stdout(_) | Self::Command(_) | Self::Custom(_) => {
                Err(not_once())
            }
        }
    }
}

/// The configuration refuses requests for such a sink.
fn not_once() -> Failure {
    let hint = "Use a sink of kind http, sms, webhook, email or one of your own";
    Failure::of(Class::Fatal, "sink_not_once", "this sink cannot send requests", hint)
}
