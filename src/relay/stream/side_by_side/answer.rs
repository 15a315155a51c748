//! What follows from the answer to one message: for its lane, and for the sending as a whole.

use std::time::Instant;

use tokio::task::JoinError;

use super::{SideBySide, once};
use crate::relay::engine::disposition::{ForRelay, at_stop};
use crate::relay::setup::lane_memory::Lane;
use crate::relay::stream::after_publish::in_doubt;
use crate::relay::stream::turn_buffer::TurnBuffer;
use crate::sink::{Class, Failure, Published, Subject};

/// When so many lanes fail one after the other, and no message is accepted between them, the receiver is out.
const OUTAGE: usize = 5;

impl SideBySide<'_> {
    pub(super) fn joined(&mut self, ended: Result<(usize, Published), JoinError>, kept: &TurnBuffer) {
        match ended.map_err(JoinError::try_into_panic) {
            Ok((row, published)) => self.ended(row, published, kept),
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The process ends.
            Err(Err(_)) => {}
        }
    }

    fn ended(&mut self, row: usize, published: Published, kept: &TurnBuffer) {
        self.flying.remove(&row);
        let Some((batch, at)) = kept.locate(row) else { return };
        let (lane, now) = (self.lanes.lane(row).clone(), Instant::now());
        if published.acknowledged > 0 {
            self.recorder.acknowledged(row, batch.position(at));
            self.lanes.acknowledged(row);
            self.ready.waiting.accepted(&lane, self.several(), now);
            return;
        }
        if let Some(failure) = in_doubt(&published).filter(|_| self.once) {
            self.doubtful(row, batch.position(at), failure.clone());
            let next = once::for_next(failure);
            let failing = self.ready.waiting.doubtful(&lane, &batch.message(at), next.clone(), now);
            return self.waits(row, &lane, next, failing);
        }
        self.lanes.failed(row);
        let Some(failure) = published.stopped else { return };
        let failing = self.ready.waiting.failed(&lane, &batch.message(at), failure.clone(), now);
        self.waits(row, &lane, failure, failing);
    }

    /// The lane of a row waits for its next attempt.
    pub(super) fn waits(&mut self, row: usize, lane: &Lane, failure: Failure, failing: usize) {
        let until = self.ready.waiting.of(lane).map(|waiting| waiting.until());
        self.next_attempt = self.next_attempt.into_iter().chain(until).min();
        self.failures.insert(row);
        if self.whole.is_none() && self.is_about_all(&failure, failing) {
            self.whole = Some((row, failure));
        }
    }

    /// Whether a failure is about the receiver as a whole; so many lanes have failed since it accepted a message.
    fn is_about_all(&self, failure: &Failure, failing: usize) -> bool {
        match failure.class {
            Class::Retry => {
                let throttles = failure.retry_after.is_some() || failure.subject == Subject::TooMany;
                throttles || failure.is_outage() && failing >= self.several()
            }
            Class::Fatal => at_stop(failure).relay == ForRelay::Halts,
            Class::Poison => false,
        }
    }

    /// How many lanes fail when the receiver is out.
    fn several(&self) -> usize {
        if self.ready.lane.is_some() { OUTAGE.min(self.in_flight) } else { 1 }
    }
}
