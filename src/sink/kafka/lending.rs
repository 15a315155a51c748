//! Producers, lent to one publication at a time and taken back only when they are empty.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rdkafka::producer::{BaseProducer, Producer as _, PurgeConfig};

use super::classify;
use super::cluster::{Cluster, Context};
use super::kind::Kind;
use super::polled::Polled;
use crate::sink::Failure;

/// A new producer for backlogs is not used before: librdkafka asks for a producer's id by a timer of half a second, and the
/// first messages would wait for that.
const SETTLING: Duration = Duration::from_secs(1);
/// One that nobody has used for so long is ended.
const UNUSED: Duration = Duration::from_secs(30);
/// While others are on loan, one of them is waited for so long before another is made: a few rows are acknowledged within
/// milliseconds, and a new producer's first record takes a hundred times as long.
const RETURN: Duration = Duration::from_millis(20);

/// A producer on loan, with what it was made for.
pub(super) struct Lent {
    pub(super) producer: Arc<Polled>,
    pub(super) kind: Kind,
    /// When it was last used; in the future for one that is not to be used yet.
    used: Instant,
    loan: Option<Loan>,
}

/// Counts as long as somebody has a producer.
struct Loan(Arc<AtomicUsize>);

impl Loan {
    fn of(loans: &Arc<AtomicUsize>) -> Self {
        loans.fetch_add(1, Relaxed);
        Self(Arc::clone(loans))
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
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
    /// A producer for one publication.
    pub(super) async fn lend(&self, limit: usize) -> Result<Lent, Failure> {
        let kind = Kind::prompt(limit);
        let until = tokio::time::Instant::now() + RETURN;
        let mut lent = loop {
            let resting = self.idle().get_mut(&kind).and_then(Vec::pop);
            if let Some(resting) = resting {
                break resting;
            }
            let others = self.loans.load(Relaxed) > 0;
            if !others || tokio::time::timeout_at(until, self.returned.notified()).await.is_err() {
                break self.another(kind)?;
            }
        };
        lent.loan = Some(Loan::of(&self.loans));
        lent.producer.wake();
        Ok(lent)
    }

    /// A producer for the publication of a backlog. The first time that there is none it is made meanwhile, for a later
    /// publication; `topic` is one that it should know then.
    pub(super) async fn lend_for_backlog(self: &Arc<Self>, limit: usize, topic: Option<&str>) -> Result<Lent, Failure> {
        let kind = Kind { limit, backlog: true };
        let rested = self.idle().get_mut(&kind).and_then(|resting| {
            resting.iter().position(|lent| lent.used <= Instant::now()).map(|place| resting.swap_remove(place))
        });
        match rested {
            Some(lent) => {
                lent.producer.wake();
                Ok(lent)
            }
            None => {
                self.make(kind, topic.map(str::to_owned));
                self.lend(limit).await
            }
        }
    }

    /// Makes a producer for backlogs, unless one is being made.
    fn make(self: &Arc<Self>, kind: Kind, topic: Option<String>) {
        let now = Instant::now();
        {
            let mut making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            if making.is_some_and(|until| until > now) {
                return;
            }
            *making = Some(now + UNUSED);
        }
        let cluster = Arc::clone(self);
        tokio::task::spawn_blocking(move || match cluster.another(kind) {
            Ok(mut lent) => {
                // Where each row names its own topic, all of the cluster's would be asked for.
                let met = topic.map(|topic| lent.client().fetch_metadata(Some(&topic), SETTLING).map(|_| ()));
                if let Some(Err(error)) = met {
                    tracing::debug!(%error, "no producer for backlogs");
                    return;
                }
                lent.used = Instant::now() + SETTLING;
                cluster.idle().entry(kind).or_default().push(lent);
                // The next one may be made when this one can be used.
                *cluster.making.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + SETTLING);
            }
            Err(failure) => tracing::debug!(error = failure.message, "no producer for backlogs"),
        });
    }

    pub(super) fn another(&self, kind: Kind) -> Result<Lent, Failure> {
        let context = Context { reading: self.statistics.reading(), ..Context::default() };
        let producer = Polled::new(kind.thread(), &self.producer_config(kind), context);
        let producer = producer.map_err(|error| classify::failure(&error, None))?;
        Ok(Lent { producer: Arc::new(producer), kind, used: Instant::now(), loan: None })
    }

    /// Takes an empty producer back.
    pub(super) fn take_back(&self, mut lent: Lent) {
        if lent.client().fatal_error().is_some() {
            return self.destroy(lent);
        }
        // What it once complained of is over; a lasting trouble is complained of again at the next connection.
        *lent.context().last_error.lock().unwrap_or_else(PoisonError::into_inner) = None;
        lent.used = Instant::now();
        lent.loan = None;
        lent.producer.rest();
        self.idle().entry(lent.kind).or_default().push(lent);
        self.returned.notify_one();
    }

    /// Ends the producers for backlogs that are not needed any more.
    pub(super) fn tidy(&self) {
        let unused = |kind: &Kind, lent: &Lent| kind.backlog && lent.used.elapsed() > UNUSED;
        let mut over = Vec::new();
        for (kind, resting) in self.idle().iter_mut() {
            over.extend(resting.extract_if(.., |lent| unused(kind, lent)));
        }
        over.into_iter().for_each(|lent| self.destroy(lent));
    }

    /// Ends a producer with whatever it holds: nothing of it is sent later. That takes tens of milliseconds, so it is
    /// done on a thread of its own.
    pub(super) fn destroy(&self, mut lent: Lent) {
        lent.loan = None;
        self.returned.notify_one();
        lent.purge(PurgeConfig::default().queue().inflight());
        std::thread::spawn(move || drop(lent));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::sink::kafka::ClusterConfig;

    const LIMIT: usize = 1_000_000;

    /// Nobody listens there: producers are made, and never connected.
    fn cluster() -> Arc<Cluster> {
        let bootstrap_servers = "127.0.0.1:1".to_owned();
        Arc::new(Cluster::new(ClusterConfig { bootstrap_servers, properties: BTreeMap::new() }))
    }

    fn waiting(cluster: &Arc<Cluster>) -> tokio::task::JoinHandle<Lent> {
        let cluster = Arc::clone(cluster);
        tokio::spawn(async move { cluster.lend(LIMIT).await.expect("a producer") })
    }

    #[tokio::test]
    async fn a_producer_that_comes_back_soon_is_lent_again_and_no_other_is_made() {
        let cluster = cluster();
        let first = cluster.lend(LIMIT).await.expect("a producer");
        let producer = Arc::clone(&first.producer);
        let second = waiting(&cluster);
        tokio::task::yield_now().await;
        assert!(!second.is_finished(), "it waits");
        cluster.take_back(first);
        assert!(Arc::ptr_eq(&second.await.expect("no panic").producer, &producer));
        assert_eq!(cluster.loans.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn another_producer_is_made_when_those_on_loan_do_not_come_back_soon_or_are_no_more() {
        let cluster = cluster();
        let first = cluster.lend(LIMIT).await.expect("a producer");
        let second = waiting(&cluster).await.expect("no panic");
        assert!(!Arc::ptr_eq(&second.producer, &first.producer));
        assert_eq!(cluster.loans.load(Relaxed), 2);
        let third = waiting(&cluster);
        tokio::task::yield_now().await;
        cluster.destroy(first);
        cluster.destroy(second);
        let third = third.await.expect("no panic");
        assert_eq!(cluster.loans.load(Relaxed), 1, "theirs have ended");
        cluster.destroy(third);
    }
}
