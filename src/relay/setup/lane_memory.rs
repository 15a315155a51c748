//! Which lanes of a relay wait for a next attempt, and why. It is kept from turn to turn by the replica that sends; another one that
//! takes over begins with an attempt.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::message::Message;
use crate::pace::Backoff;
use crate::position::Timestamp;
use crate::sink::Failure;

/// The rows that keep their order: those of one key, or all that have none.
pub(in crate::relay) type Lane = Option<String>;

/// See the module.
#[derive(Debug, Default)]
pub struct LaneMemory(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    lanes: HashMap<Lane, WaitingLane>,
    /// Lanes that have failed for the receiver's sake since a message was accepted last.
    out: HashSet<Lane>,
    last_accepted: Option<Instant>,
    /// The id of the row that was reported last.
    reported: Option<String>,
}

/// A lane whose first row was not accepted.
#[derive(Clone, Debug)]
pub(in crate::relay) struct WaitingLane {
    /// Which row; none where that one was passed without a clear answer, and the next one waits in its stead.
    row: Option<(Timestamp, String)>,
    /// Why.
    pub(in crate::relay) failure: Failure,
    /// When it failed first.
    since: Instant,
    /// When it failed last, and the time before.
    last: Instant,
    previous: Option<Instant>,
    backoff: Backoff,
    until: Instant,
}

impl WaitingLane {
    /// How long it has been retried.
    pub(in crate::relay) fn waits_for(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    /// When the attempt before the last one failed.
    pub(in crate::relay) fn previous(&self) -> Option<Instant> {
        self.previous
    }

    /// When it may be sent again.
    pub(in crate::relay) fn until(&self) -> Instant {
        self.until
    }

    /// Whether this is the row.
    pub(in crate::relay) fn is_about(&self, row: &Message<'_>) -> bool {
        self.row.as_ref().is_none_or(|(created_at, id)| *created_at == row.created_at && *id == row.id)
    }
}

impl LaneMemory {
    /// Until when the lane must not be sent, whose first row this is. What is remembered of another row, which was passed since or comes
    /// again after a seek, counts no longer.
    pub(in crate::relay) fn blocked_until(&self, lane: &Lane, row: &Message<'_>, now: Instant) -> Option<Instant> {
        let lanes = &mut self.inner().lanes;
        let waiting = lanes.get(lane)?;
        if !waiting.is_about(row) {
            lanes.remove(lane);
            return None;
        }
        Some(waiting.until).filter(|until| now < *until)
    }

    /// What is remembered of a lane.
    pub(in crate::relay) fn of(&self, lane: &Lane) -> Option<WaitingLane> {
        self.inner().lanes.get(lane).cloned()
    }

    /// Its first row was not accepted: the next attempt comes later, each time by more. Says how many lanes have failed for the
    /// receiver's sake since a message was accepted last.
    pub(in crate::relay) fn failed(&self, lane: &Lane, row: &Message<'_>, failure: Failure, now: Instant) -> usize {
        self.waits(lane, row, Some((row.created_at, row.id.to_owned())), failure, now)
    }

    /// Its first row was passed without a clear answer: the next one comes later, as another attempt would. Says the same.
    pub(in crate::relay) fn doubtful(&self, lane: &Lane, row: &Message<'_>, failure: Failure, now: Instant) -> usize {
        self.waits(lane, row, None, failure, now)
    }

    fn waits(
        &self,
        lane: &Lane,
        about: &Message<'_>,
        row: Option<(Timestamp, String)>,
        failure: Failure,
        now: Instant,
    ) -> usize {
        let Inner { lanes, out, .. } = &mut *self.inner();
        if failure.is_outage() {
            out.insert(lane.clone());
        }
        let before = lanes.remove(lane).filter(|waiting| waiting.is_about(about));
        let previous = before.as_ref().map(|before| before.last);
        let (since, mut backoff) = before.map_or((now, Backoff::new()), |before| (before.since, before.backoff));
        let until = now + backoff.failed(fastrand::f64());
        lanes.insert(lane.clone(), WaitingLane { row, failure, since, last: now, previous, backoff, until });
        out.len()
    }

    /// A message of it was accepted. Where `several` lanes had failed, the receiver was out: how long they have been retried counts from now.
    pub(in crate::relay) fn accepted(&self, lane: &Lane, several: usize, now: Instant) {
        let Inner { lanes, out, last_accepted, .. } = &mut *self.inner();
        lanes.remove(lane);
        if out.len() >= several {
            lanes.values_mut().for_each(|waiting| waiting.since = now);
        }
        out.clear();
        *last_accepted = Some(now);
    }

    /// Whether the lane has failed for the receiver's sake since a message was accepted last.
    pub(in crate::relay) fn is_out(&self, lane: &Lane) -> bool {
        self.inner().out.contains(lane)
    }

    /// When a message was accepted last.
    pub(in crate::relay) fn last_accepted(&self) -> Option<Instant> {
        self.inner().last_accepted
    }

    /// Only these lanes have rows that are not passed. One whose last row was passed without a clear answer is remembered until its pause is
    /// over.
    pub(in crate::relay) fn retain(&self, has_rows: impl Fn(&Lane) -> bool) {
        let now = Instant::now();
        let is_doubtful = |waiting: &WaitingLane| waiting.row.is_none() && now < waiting.until;
        self.inner().lanes.retain(|lane, waiting| has_rows(lane) || is_doubtful(waiting));
    }

    /// Whether this row was not the last that was reported to wait.
    pub(in crate::relay) fn is_news(&self, row: Option<&str>) -> bool {
        let reported = &mut self.inner().reported;
        let is_news = reported.as_deref() != row;
        *reported = row.map(str::to_owned);
        is_news
    }

    /// It does not wait any more.
    pub(in crate::relay) fn forget(&self, lane: &Lane) {
        self.inner().lanes.remove(lane);
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
