//! A sink of one's own as the engine sees it.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;

use super::publication::{CustomPublication, of_own};
use super::{Config, CustomSink, Delivery, Description, Stopped, pinned};
use crate::batch::Batch;
use crate::message::{Field, Message};
use crate::sink::{Class, Failure, Mark, Mode, Receipt};

/// See the module.
pub struct Adapter {
    pub(super) sink: Arc<dyn CustomSink>,
    pub(super) description: Description,
    pub(super) relay: String,
}

impl Adapter {
    /// The configured sink, for a relay of this name.
    #[must_use]
    pub fn new(config: &Config, relay: &str) -> Self {
        Self { sink: Arc::clone(&config.sink), description: config.description.clone(), relay: relay.to_owned() }
    }

    pub(in crate::sink) fn fields(&self) -> &[Field] {
        &self.description.fields
    }

    pub(in crate::sink) const fn min_interval(&self) -> Option<Duration> {
        self.description.min_interval
    }

    /// The first document, else the first value: what a person looks at of a dead letter.
    pub(in crate::sink) fn rendered<'a>(&self, message: &Message<'a>) -> Option<&'a [u8]> {
        let document = self.fields().iter().position(Field::is_document);
        document.or((!self.fields().is_empty()).then_some(0)).and_then(|field| message.value(field))
    }

    pub(in crate::sink) fn begin(&self, mode: Mode) -> CustomPublication<'_> {
        CustomPublication::new(self, mode)
    }

    /// Whether the receiver is there. What panics has not found out.
    ///
    /// # Errors
    /// When it is not, or does not say so within `patience`; nothing was sent.
    pub async fn check(&self, patience: Duration) -> Result<(), Failure> {
        let asking = AssertUnwindSafe(tokio::time::timeout(patience, self.sink.check())).catch_unwind();
        match asking.await {
            Ok(Ok(checked)) => checked.map_err(of_own),
            Ok(Err(_)) => {
                let message = format!("The check of the sink had no answer within {patience:?}");
                Err(Failure::of(Class::Retry, "custom_no_answer", message, "See whether the receiver is there."))
            }
            Err(_) => {
                let hint = "The panic is in the log; correct the sink's `check`.";
                Err(Failure::of(Class::Retry, "custom_panicked", "The check of the sink panicked", hint))
            }
        }
    }

    /// The row's values, for [`Self::deliver`].
    pub(in crate::sink) fn pin(&self, message: &Message<'_>) -> Vec<u8> {
        pinned::pin(self.fields(), message)
    }

    /// Publishes one pinned message; `handed_over` is set when the sink is given it.
    pub(in crate::sink) async fn deliver(
        &self,
        id: &str,
        pinned: &[u8],
        patience: Duration,
        handed_over: &mut bool,
    ) -> Result<Receipt, Failure> {
        let message = pinned::unpin(self.fields(), id, pinned)?;
        let mode = Mode { alone: true, until: Some(Instant::now() + patience), ..Mode::default() };
        let mut publication = self.begin(mode);
        *handed_over = true;
        let _ended_in_time = tokio::time::timeout(patience, publication.push(&message)).await;
        let published = publication.finish();
        match published.stopped {
            None if published.acknowledged == 1 => Ok(Receipt::default()),
            Some(failure) => Err(failure),
            None => Err(Failure { ambiguous: false, ..Failure::deadline() }),
        }
    }

    /// Sends a part of a batch, or all of it, in order. A panic is a failure in doubt, with a pause before the next attempt.
    pub(super) async fn publish(&self, part: &[Delivery<'_>], deadline: Instant) -> Result<(), Stopped> {
        let publishing = AssertUnwindSafe(self.sink.publish(part, deadline));
        publishing.catch_unwind().await.unwrap_or_else(|_| {
            let hint = "The panic is in the log; correct the sink's `publish`.";
            let failure = Failure::of(Class::Retry, "panicked", "The sink panicked", hint);
            Err(Stopped::after(0, Failure { ambiguous: true, ..failure }))
        })
    }

    /// The messages of a batch, as the sink is given them.
    pub(super) fn deliveries<'a>(&'a self, batch: &'a Batch, mark: Option<Mark>) -> Vec<Delivery<'a>> {
        batch.messages().map(|message| Delivery { message, relay: &self.relay, mark }).collect()
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Adapter").field("description", &self.description).finish_non_exhaustive()
    }
}
