//! Batches on their way from whoever reads to whoever publishes. Only so many bytes wait to be taken, however large a turn is.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::batch::Batch;
use crate::late::Opened;

/// Room for the bytes of one batch; dropped, there is room for the next.
pub type Room = Option<OwnedSemaphorePermit>;

/// The end that reads.
#[derive(Debug)]
pub struct Giver {
    batches: UnboundedSender<(Batch, Room)>,
    room: Arc<Semaphore>,
    window: u32,
    /// Given when the connection that it came by is closed.
    last: Option<Batch>,
    /// Told before the first batch.
    opening: Option<oneshot::Sender<Opened>>,
}

/// A batch that is given when its holder says so; none is given behind it.
#[derive(Debug)]
pub struct Last {
    batches: UnboundedSender<(Batch, Room)>,
    batch: Batch,
}

impl Last {
    /// Gives it, without waiting for room.
    pub fn give(self) {
        // Nobody may want it any more.
        let _ = self.batches.send((self.batch, None));
    }
}

/// The end that publishes.
#[derive(Debug)]
pub struct Taker {
    batches: UnboundedReceiver<(Batch, Room)>,
    opening: Option<oneshot::Receiver<Opened>>,
    opened: Option<Opened>,
}

/// How giving a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    /// The next one may follow.
    InTime,
    /// There was no room in time: it is to be the last.
    Late,
    /// Nobody takes it any more.
    Unwanted,
}

/// Two ends, between which at most `window` bytes wait, or a single batch that is larger.
#[must_use]
pub fn handoff(window: usize) -> (Giver, Taker) {
    let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
    let window = u32::try_from(window).unwrap_or(u32::MAX).clamp(1, most);
    let (sender, receiver) = unbounded_channel();
    let room = Arc::new(Semaphore::new(window as usize));
    let (opening, opened) = oneshot::channel();
    let giver = Giver { batches: sender, room, window, last: None, opening: Some(opening) };
    (giver, Taker { batches: receiver, opening: Some(opened), opened: None })
}

impl Giver {
    /// Gives a batch, as soon as there is room. Nobody waits for room beyond `until`: the batch is given without.
    pub(super) async fn give(&self, batch: Batch, until: Instant) -> Given {
        let bytes = u32::try_from(batch.bytes()).unwrap_or(u32::MAX).clamp(1, self.window);
        let room = match Arc::clone(&self.room).try_acquire_many_owned(bytes) {
            Ok(room) => Some(room),
            Err(_) => tokio::select! {
                room = Arc::clone(&self.room).acquire_many_owned(bytes) => room.ok(),
                () = self.batches.closed() => None,
                () = tokio::time::sleep_until(until.into()) => None,
            },
        };
        let given = if room.is_some() { Given::InTime } else { Given::Late };
        self.batches.send((batch, room)).map_or(Given::Unwanted, |()| given)
    }
}

impl Giver {
    /// Tells what was seen before the first row.
    pub(super) fn open(&mut self, opened: Opened) {
        if let Some(opening) = self.opening.take() {
            // Nobody may want it any more.
            let _ = opening.send(opened);
        }
    }

    /// Keeps a batch for the end.
    pub(super) fn keep(&mut self, batch: Batch) {
        self.last = Some(batch);
    }

    /// No more are read: what was kept, if anything was.
    #[must_use]
    pub fn into_last(self) -> Option<Last> {
        let Self { batches, last, .. } = self;
        last.map(|batch| Last { batches, batch })
    }
}

impl Taker {
    /// What was seen before the first row, which is not given before; none when the reading has ended without.
    pub async fn opened(&mut self) -> Option<&Opened> {
        if let Some(opening) = &mut self.opening {
            self.opened = opening.await.ok();
            self.opening = None;
        }
        self.opened.as_ref()
    }

    /// The next batch, and the room to give back when it has been published; none when there are no more.
    pub async fn next(&mut self) -> Option<(Batch, Room)> {
        self.batches.recv().await
    }

    /// The next batch, if one is there.
    pub fn take(&mut self) -> Option<Batch> {
        self.batches.try_recv().ok().map(|(batch, _)| batch)
    }

    /// No more are wanted.
    pub fn close(&mut self) {
        self.batches.close();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::position::Timestamp;

    fn batch(bytes: usize) -> Batch {
        let mut batch = Batch::new(1);
        batch.push(Timestamp::from_pg_micros(0), "", [Some(&vec![b'x'; bytes][..])]);
        batch
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[tokio::test]
    async fn no_more_bytes_wait_than_there_is_room_for() {
        let (giver, mut taker) = handoff(100);
        assert_eq!(giver.give(batch(60), later()).await, Given::InTime);
        assert_eq!(giver.give(batch(40), later()).await, Given::InTime);
        let third = giver.give(batch(1), later());
        tokio::pin!(third);
        assert!(futures_util::poll!(&mut third).is_pending());
        let (_, room) = taker.next().await.expect("a batch");
        assert!(futures_util::poll!(&mut third).is_pending(), "it is taken, and not published yet");
        drop(room);
        assert_eq!(third.await, Given::InTime);
    }

    #[tokio::test]
    async fn a_batch_larger_than_the_room_goes_alone() {
        let (giver, mut taker) = handoff(100);
        assert_eq!(giver.give(batch(1_000), later()).await, Given::InTime);
        let next = giver.give(batch(1), later());
        tokio::pin!(next);
        assert!(futures_util::poll!(&mut next).is_pending());
        assert!(taker.next().await.is_some());
        assert_eq!(next.await, Given::InTime);
    }

    #[tokio::test]
    async fn waiting_for_room_ends_with_the_time_and_nothing_is_left_out() {
        let (giver, mut taker) = handoff(100);
        assert_eq!(giver.give(batch(100), later()).await, Given::InTime);
        assert_eq!(giver.give(batch(7), Instant::now()).await, Given::Late);
        drop(giver);
        let bytes: Vec<_> = std::iter::from_fn(|| taker.take()).map(|batch| batch.bytes()).collect();
        assert_eq!(bytes, [100, 7]);
    }

    #[tokio::test]
    async fn who_waits_for_room_hears_that_no_more_is_wanted() {
        let (giver, mut taker) = handoff(100);
        assert_eq!(giver.give(batch(100), later()).await, Given::InTime);
        let next = giver.give(batch(1), later());
        tokio::pin!(next);
        assert!(futures_util::poll!(&mut next).is_pending());
        taker.close();
        assert_eq!(next.await, Given::Unwanted);
    }
}
