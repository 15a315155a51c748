//! How many slots each kind of work may have, and who waits for one.
//!
//! Promise: what waits for a permit of its kind keeps no others waiting: a query of an action needs two, and holds neither while it waits
//! for the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::database::Error;

/// The permits of one slot. It is free when they are dropped.
pub(super) type Permits = Vec<OwnedSemaphorePermit>;

/// The permits of all slots.
#[derive(Debug)]
pub(super) struct SlotPermits {
    free: Arc<Semaphore>,
    /// Sinks that answer one by one may hang for long; they never take more than half of the slots. Neither do queries of actions.
    slow: Arc<Semaphore>,
    /// Statements and queries of actions may take as long as their schedules allow; they leave one slot to others.
    actions: Arc<Semaphore>,
    /// How many wait for a slot.
    waiting: AtomicUsize,
}

impl SlotPermits {
    /// Of so many slots.
    pub(super) fn new(count: usize) -> Self {
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.max(1)));
        Self {
            free: semaphore(count),
            slow: semaphore(count / 2),
            actions: semaphore(count.saturating_sub(1)),
            waiting: AtomicUsize::new(0),
        }
    }

    /// How many wait for a slot.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The permit of a slot, if one is free now.
    pub(super) fn try_free(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Waits for those of a turn.
    pub(super) async fn of_turn(&self, slow: bool) -> Result<Permits, Error> {
        let permits = if slow { vec![acquired(&self.slow).await?] } else { Vec::new() };
        self.with_free(permits).await
    }

    /// Waits for those of a statement of an action, or, `slow`, of a query.
    pub(super) async fn of_action(&self, slow: bool) -> Result<Permits, Error> {
        let permits = if slow { self.of_query().await? } else { vec![acquired(&self.actions).await?] };
        self.with_free(permits).await
    }

    /// Waits for both, and holds none meanwhile: with it, queries that wait would keep statements, or slow turns, from slots that are free.
    async fn of_query(&self) -> Result<Permits, Error> {
        loop {
            let slow = acquired(&self.slow).await?;
            if let Ok(action) = Arc::clone(&self.actions).try_acquire_owned() {
                return Ok(vec![slow, action]);
            }
            drop(slow);
            let action = acquired(&self.actions).await?;
            if let Ok(slow) = Arc::clone(&self.slow).try_acquire_owned() {
                return Ok(vec![slow, action]);
            }
        }
    }

    /// Waiting for others of the same kind is no need of anything else's connections: only this counts.
    async fn with_free(&self, mut permits: Permits) -> Result<Permits, Error> {
        let _waiting = Waiting::new(&self.waiting);
        permits.push(acquired(&self.free).await?);
        Ok(permits)
    }
}

/// Counts as one that waits, for as long as it lives.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn acquired(semaphore: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Error> {
    Arc::clone(semaphore).acquire_owned().await.map_err(|_| Error::Pool("closed".to_owned()))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    // Guarantee: schedules.own-statements
    #[tokio::test]
    async fn query_that_waits_keeps_no_statement_and_no_slow_turn_waiting() {
        let slots = Arc::new(SlotPermits::new(2));
        let statement = slots.of_action(false).await.expect("it is open");
        let query = tokio::spawn({
            let slots = Arc::clone(&slots);
            async move { slots.of_action(true).await.map(drop) }
        });
        tokio::task::yield_now().await;
        let turn = slots.of_turn(true).now_or_never().expect("the query waits for the statement").expect("it is open");
        drop(statement);
        tokio::task::yield_now().await;
        let statement =
            slots.of_action(false).now_or_never().expect("the query waits for the turn").expect("it is open");
        drop(turn);
        tokio::task::yield_now().await;
        drop(slots.of_turn(true).now_or_never().expect("the query waits for the statement").expect("it is open"));
        assert!(!query.is_finished());
        drop(statement);
        query.await.expect("no panic").expect("it is open");
    }

    // Guarantee: schedules.own-statements
    #[tokio::test]
    async fn queries_that_wait_for_slow_turns_keep_no_statement_waiting() {
        let slots = Arc::new(SlotPermits::new(4));
        let turns = (slots.of_turn(true).await.expect("it is open"), slots.of_turn(true).await.expect("it is open"));
        let query = |slots: Arc<SlotPermits>| tokio::spawn(async move { slots.of_action(true).await.map(drop) });
        let queries: Vec<_> = (0..3).map(|_| query(Arc::clone(&slots))).collect();
        tokio::task::yield_now().await;
        drop(slots.of_action(false).now_or_never().expect("two slots are free").expect("it is open"));
        drop(turns);
        for query in queries {
            query.await.expect("no panic").expect("it is open");
        }
    }
}
