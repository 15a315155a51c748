//! Who has connections of the pool: turns, actions, and short transactions of queues.
//!
//! A slot is the right to two connections. A turn takes both. A statement or a query of an action takes one, for as long as its schedule
//! allows. Promise: where there are several slots, actions leave one of them to others; and a short transaction of a queue (a plan, a
//! claim, a record) waits for no action, because an action lends its slot's other connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Notify, OwnedSemaphorePermit};

use crate::database::{self, Error, Loan, Pool};

mod permits;

use permits::{Permits, SlotPermits};

/// The right to run one turn, with both of its connections.
#[derive(Debug)]
pub struct Slot {
    /// Holds the lock.
    pub lock: Loan,
    /// Reads.
    pub reader: Loan,
    /// Give it back when the turn ends.
    pub permits: Vec<OwnedSemaphorePermit>,
}

/// One connection of a slot.
#[derive(Debug)]
pub(in crate::relay) struct Single {
    /// The connection.
    pub(in crate::relay) connection: Loan,
    /// Drop it after the connection.
    pub(in crate::relay) right: Right,
}

/// The right to one connection of a slot. The slot is free when nothing has a right to one of its connections.
#[derive(Debug)]
pub(in crate::relay) struct Right {
    permits: Arc<Permits>,
    /// Where it goes back to, if it was lent.
    lender: Option<Arc<Lender>>,
}

impl Right {
    fn own(permits: Permits) -> Self {
        Self { permits: Arc::new(permits), lender: None }
    }

    /// The right of an action, which lends its slot's other connection.
    fn of_action(permits: Permits, lender: &Lender) -> Self {
        let right = Self::own(permits);
        lender.add(&right.permits);
        right
    }
}

impl Drop for Right {
    fn drop(&mut self) {
        if let Some(lender) = &self.lender {
            lender.add(&self.permits);
        }
    }
}

/// The second connections of slots that actions have.
#[derive(Debug, Default)]
struct Lender {
    free: Mutex<Vec<Weak<Permits>>>,
    added: Notify,
}

impl Lender {
    fn free(&self) -> MutexGuard<'_, Vec<Weak<Permits>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, permits: &Arc<Permits>) {
        let mut free = self.free();
        // Slots of actions that have ended are no longer to be lent.
        free.retain(|slot| slot.strong_count() > 0);
        free.push(Arc::downgrade(permits));
        drop(free);
        self.added.notify_one();
    }

    fn take(&self) -> Option<Arc<Permits>> {
        let mut free = self.free();
        std::iter::from_fn(|| free.pop()).find_map(|slot| slot.upgrade())
    }

    /// Waits until there is one to be lent.
    async fn lend(self: &Arc<Self>) -> Right {
        loop {
            if let Some(permits) = self.take() {
                return Right { permits, lender: Some(Arc::clone(self)) };
            }
            self.added.notified().await;
        }
    }
}

/// The slots of a process, and the pool that their connections come from.
#[derive(Debug)]
pub(super) struct Slots {
    pool: Pool,
    count: usize,
    permits: SlotPermits,
    lender: Arc<Lender>,
}

impl Slots {
    /// So many slots over a pool of twice as many connections.
    pub(super) fn new(pool: Pool, count: usize) -> Self {
        Self { pool, count, permits: SlotPermits::new(count), lender: Arc::default() }
    }

    /// How many there are.
    pub(super) const fn count(&self) -> usize {
        self.count
    }

    /// How many wait for one.
    pub(super) fn waiting(&self) -> usize {
        self.permits.waiting()
    }

    /// How many of the pool's connections are open and idle, and how many are at work.
    pub(super) fn connections(&self) -> (usize, usize) {
        let status = self.pool.status();
        (status.available, status.size.saturating_sub(status.available))
    }

    /// The permit of a slot, if one is free now.
    pub(super) fn try_permit(&self) -> Option<OwnedSemaphorePermit> {
        self.permits.try_free()
    }

    /// Waits for the permits of a slot.
    pub(super) async fn permits(&self, slow: bool) -> Result<Permits, Error> {
        self.permits.of_turn(slow).await
    }

    /// Waits for a slot and takes both of its connections, or none.
    pub(super) async fn slot(&self, slow: bool) -> Result<Slot, Error> {
        let permits = self.permits(slow).await?;
        let (lock, reader) = tokio::try_join!(self.connection(), self.connection())?;
        Ok(Slot { lock, reader, permits })
    }

    /// Waits for a connection for a short transaction: of a slot of its own, or one that an action lends.
    pub(super) async fn single(&self) -> Result<Single, Error> {
        let right = tokio::select! {
            biased;
            permits = self.permits(false) => Right::own(permits?),
            right = self.lender.lend() => right,
        };
        let connection = self.connection().await?;
        Ok(Single { connection, right })
    }

    /// Waits for a connection for a statement or a query of an action.
    pub(super) async fn for_action(&self, slow: bool) -> Result<Single, Error> {
        let right = Right::of_action(self.permits.of_action(slow).await?, &self.lender);
        let connection = self.connection().await?;
        Ok(Single { connection, right })
    }

    /// A connection of the pool, for one that has the right to it.
    pub(super) async fn connection(&self) -> Result<Loan, Error> {
        database::take(&self.pool).await
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Semaphore;

    use super::*;

    /// The only slot, which an action has.
    fn taken() -> (Arc<Semaphore>, Arc<Lender>, Right) {
        let (slot, lender) = (Arc::new(Semaphore::new(1)), Arc::new(Lender::default()));
        let permit = Arc::clone(&slot).try_acquire_owned().expect("it is free");
        let action = Right::of_action(vec![permit], &lender);
        (slot, lender, action)
    }

    // Guarantee: schedules.own-statements
    #[tokio::test]
    async fn second_connection_of_an_action_is_lent_to_one_at_a_time() {
        let (slot, lender, action) = taken();
        let first = lender.lend().await;
        assert!(lender.take().is_none(), "an action uses the other one");
        drop(first);
        let second = lender.lend().await;
        assert_eq!(slot.available_permits(), 0);
        drop((second, action));
        assert_eq!(slot.available_permits(), 1);
        assert!(lender.take().is_none(), "the slot has ended");
    }

    #[tokio::test]
    async fn slot_is_free_when_neither_the_action_nor_the_borrower_has_it() {
        let (slot, lender, action) = taken();
        let borrowed = lender.lend().await;
        drop(action);
        assert_eq!(slot.available_permits(), 0, "a connection of it is still used");
        drop(borrowed);
        assert_eq!(slot.available_permits(), 1);
    }

    #[tokio::test]
    async fn waiting_borrower_gets_what_another_gives_back() {
        let (_slot, lender, _action) = taken();
        let first = lender.lend().await;
        let waiting = tokio::spawn({
            let lender = Arc::clone(&lender);
            async move { drop(lender.lend().await) }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(first);
        waiting.await.expect("it is lent");
    }

    #[test]
    fn slots_of_ended_actions_are_forgotten() {
        let lender = Lender::default();
        for _ in 0..10 {
            drop(Right::of_action(Vec::new(), &lender));
        }
        assert_eq!(lender.free().len(), 1, "the last one is forgotten with the next");
    }
}
