//! Producers, lent to one publication at a time and taken back only when they are empty.

use std::collections::HashMap;
use std::fmt;
use std::ops::Deref;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::producer::{BaseProducer, Producer as _, PurgeConfig};
use tokio::sync::Notify;

use super::cluster::{Cluster, Context};
use super::kind::{ProducerKind, Spread};
use super::polled::Polled;
use crate::sink::Failure;

/// A producer for single rows that is made ahead is not used before: librdkafka may ask for a producer's id only by a timer of
/// half a second, and the first messages would wait for that. Its brokers have as long to answer.
const SETTLING: Duration = Duration::from_secs(1);
/// One for backlogs that nobody has used for so long is ended.
const UNUSED: Duration = Duration::from_secs(30);
/// While others of its kind are on loan, one of them is waited for so long: a few rows are acknowledged within milliseconds,
/// and the first record of a producer that is made now may have to wait for its id.
const RETURN: Duration = Duration::from_millis(20);

/// A producer on loan, with what it was made for.
pub(super) struct Lent {
    pub(super) producer: Arc<Polled>,
    pub(super) kind: ProducerKind,
    /// When it was last used; in the future for one that is not to be used yet.
    used: Instant,
    loan: Option<Loan>,
}

/// The producers of one kind.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    pub(super) resting: Vec<Lent>,
    /// How many are on loan, or made for somebody who waits.
    out: usize,
    /// One has come back, or is no more.
    returned: Arc<Notify>,
    /// One is being made ahead of its use, or was in vain, until then.
    making: Option<Instant>,
}

pub(super) type Shelves = HashMap<ProducerKind, Shelf>;

/// What a shelf has for somebody who asks.
enum Shelved {
    Resting(Lent),
    /// Nothing, and nothing to wait for: another is to be made, and counts as out.
    Nothing,
    /// Nothing yet.
    Wait,
}

impl Shelf {
    /// One that rests and can be used; it counts as out.
    fn rested(&mut self) -> Option<Lent> {
        let now = Instant::now();
        let place = self.resting.iter().rposition(|lent| lent.used <= now)?;
        self.out += 1;
        Some(self.resting.remove(place))
    }

    /// What there is for somebody who has waited `long` enough, or has not yet.
    fn take(&mut self, long: bool) -> Shelved {
        if let Some(lent) = self.rested() {
            return Shelved::Resting(lent);
        }
        if self.out > 0 && !long {
            return Shelved::Wait;
        }
        self.out += 1;
        Shelved::Nothing
    }
}

/// Counts in a shelf's `out` until it is dropped, which is not to be done by who holds the shelves.
struct Loan {
    shelves: Arc<Mutex<Shelves>>,
    kind: ProducerKind,
}

impl Drop for Loan {
    fn drop(&mut self) {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = shelves.entry(self.kind).or_default();
        shelf.out -= 1;
        shelf.returned.notify_one();
    }
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl Deref for Lent {
    type Target = BaseProducer<Context>;

    fn deref(&self) -> &Self::Target {
        self.producer.producer()
    }
}

impl Lent {
    pub(super) fn context(&self) -> &Context {
        self.producer.producer().client().context()
    }
}

impl Cluster {
    pub(super) fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A producer for one publication: one that rests, or, soon, one that comes back, or another. Who has to wait has one made
    /// for later; `topic` is what it should know then.
    pub(super) async fn lend(self: &Arc<Self>, limit: usize, topic: Option<&str>) -> Result<Lent, Failure> {
        let kind = ProducerKind::prompt(limit);
        self.end_refused();
        let returned = Arc::clone(&self.shelves().entry(kind).or_default().returned);
        let until = tokio::time::Instant::now() + RETURN;
        let mut long = false;
        loop {
            let mut returned = pin!(returned.notified());
            // Before the look: what comes back after it is heard.
            returned.as_mut().enable();
            let found = self.shelves().entry(kind).or_default().take(long);
            match found {
                Shelved::Resting(lent) => return Ok(self.on_loan(lent)),
                Shelved::Nothing => {
                    let loan = Loan { shelves: Arc::clone(&self.shelves), kind };
                    self.ready().await?;
                    let lent = Lent { loan: Some(loan), ..self.another(kind)? };
                    lent.producer.wake();
                    return Ok(lent);
                }
                Shelved::Wait => {
                    self.make(kind, topic);
                    long = tokio::time::timeout_at(until, returned).await.is_err();
                }
            }
        }
    }

    /// A producer for the publication of a backlog. When none rests, one is made for a later publication.
    pub(super) async fn lend_for_backlog(
        self: &Arc<Self>,
        limit: usize,
        spread: Spread,
        topic: Option<&str>,
    ) -> Result<Lent, Failure> {
        let kind = ProducerKind { limit, backlog: Some(spread) };
        self.end_refused();
        let rested = self.shelves().entry(kind).or_default().rested();
        if let Some(lent) = rested {
            return Ok(self.on_loan(lent));
        }
        self.make(kind, topic);
        self.lend(limit, topic).await
    }

    /// One that rested, and counts as out already.
    fn on_loan(&self, mut lent: Lent) -> Lent {
        // What it complained of at rest is over, or complained of again.
        lent.context().complaint.forget();
        lent.loan = Some(Loan { shelves: Arc::clone(&self.shelves), kind: lent.kind });
        lent.producer.wake();
        lent
    }

    /// Makes a producer for later, unless one is being made.
    fn make(self: &Arc<Self>, kind: ProducerKind, topic: Option<&str>) {
        let now = Instant::now();
        {
            let mut shelves = self.shelves();
            let making = &mut shelves.entry(kind).or_default().making;
            if making.is_some_and(|until| until > now) {
                return;
            }
            *making = Some(now + UNUSED);
        }
        let (cluster, topic) = (Arc::clone(self), topic.map(str::to_owned));
        tokio::task::spawn_blocking(move || match cluster.another(kind) {
            Ok(mut lent) => {
                // Where each row names its own topic, all of the cluster's would be asked for.
                // Twice: behind the first answer most new producers still waited for that timer, behind the second none did
                // that was seen (8 of 8).
                let ask = |topic: &String| lent.client().fetch_metadata(Some(topic), SETTLING).map(|_| ());
                let met = topic.as_ref().map(|topic| ask(topic).and_then(|()| ask(topic)));
                if let Some(Err(error)) = met {
                    tracing::debug!(%error, "no producer for later");
                    return;
                }
                // A backlog that waited for certainty would lose more than one that meets the timer after all.
                let settling = if kind.backlog.is_some() && topic.is_some() { Duration::ZERO } else { SETTLING };
                let settled = Instant::now() + settling;
                lent.used = settled;
                let mut shelves = cluster.shelves();
                let shelf = shelves.entry(kind).or_default();
                shelf.resting.push(lent);
                // The next one may be made when this one can be used.
                shelf.making = Some(settled);
            }
            Err(failure) => tracing::debug!(error = failure.message, "no producer for later"),
        });
    }

    pub(super) fn another(&self, kind: ProducerKind) -> Result<Lent, Failure> {
        let (reading, login, complaint) = (self.statistics.reading(), self.login(), self.complaint());
        let context = Context { reading, login, complaint, ..Context::default() };
        let producer = Polled::new(kind.thread(), &self.producer_config(kind), context);
        let producer = producer.map_err(|error| self.not_made(&error))?;
        Ok(Lent { producer: Arc::new(producer), kind, used: Instant::now(), loan: None })
    }

    /// Takes an empty producer back.
    pub(super) fn take_back(&self, mut lent: Lent) {
        if lent.client().fatal_error().is_some() {
            return self.destroy(lent);
        }
        lent.context().login.is_accepted();
        lent.context().complaint.forget();
        self.of_tls.forget();
        lent.used = Instant::now();
        lent.producer.rest();
        let loan = lent.loan.take();
        self.shelves().entry(lent.kind).or_default().resting.push(lent);
        drop(loan); // says that it is there
    }

    /// Ends the producers whose log-in was refused while they rested, or whose token has ended: a new one has the password or token of
    /// now. Those with a connection that stays need neither.
    pub(super) fn end_refused(&self) {
        let refused = |lent: &mut Lent| {
            let context = lent.context();
            context.complaint.is_of_log_in() || context.login.has_ended()
        };
        let mut over = Vec::new();
        for shelf in self.shelves().values_mut() {
            over.extend(shelf.resting.extract_if(.., refused));
        }
        over.into_iter().for_each(|lent| self.destroy(lent));
    }

    /// Ends the producers for backlogs that are not needed any more.
    pub(super) fn tidy(&self) {
        let unused = |kind: &ProducerKind, lent: &Lent| kind.backlog.is_some() && lent.used.elapsed() > UNUSED;
        let mut over = Vec::new();
        for (kind, shelf) in self.shelves().iter_mut() {
            over.extend(shelf.resting.extract_if(.., |lent| unused(kind, lent)));
        }
        over.into_iter().for_each(|lent| self.destroy(lent));
    }

    /// Ends a producer with whatever it holds: nothing of it is sent later. That takes tens of milliseconds, so it is
    /// done on a thread of its own.
    pub(super) fn destroy(&self, mut lent: Lent) {
        lent.loan = None;
        // A broker's thread that looks a name up, which takes many seconds where the resolver is silent, is not waited for: it drops what
        // it holds before it connects. One that is sending may end with another request, as if that had been on its way already; the
        // broker takes it only behind what it has of this producer.
        lent.purge(PurgeConfig::default().queue().inflight().non_blocking());
        std::thread::spawn(move || drop(lent));
    }
}

#[cfg(test)]
mod tests;
