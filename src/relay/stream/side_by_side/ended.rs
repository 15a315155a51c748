//! How the sending of a turn has ended, and what the first row that was not acknowledged waits for.

use std::time::{Duration, Instant};

use super::SideBySide;
use crate::position::{Position, Timestamp};
use crate::relay::OnPoison;
use crate::relay::setup::lane_memory::{Lane, WaitingLane};
use crate::relay::setup::row_key::RowKey;
use crate::relay::stream::turn_buffer::TurnBuffer;
use crate::sink::{Class, Failure, Published};

/// How sending ended.
#[derive(Debug)]
pub(in crate::relay) struct Ended {
    pub(in crate::relay) published: Published,
    /// Rows behind the prefix that were acknowledged.
    pub(in crate::relay) beyond: Vec<Position>,
    /// The prefix ends at a lane that waits, and the others go on: how long until the next attempt of one.
    pub(in crate::relay) lane_waits: Option<Duration>,
    /// The row that `published.stopped` is about, where it is not the first that was not acknowledged.
    pub(in crate::relay) at: Option<usize>,
}

impl SideBySide<'_> {
    /// How it ended; what is on its way is given up.
    /// `is_all`: the reading has found no more rows than it was given.
    pub(in crate::relay) fn finish(mut self, kept: &TurnBuffer, parked_keys: u64, is_all: bool) -> Ended {
        while let Some(ended) = self.sending.try_join_next() {
            self.joined(ended, kept);
        }
        let prefix = self.lanes.prefix();
        let beyond: Vec<Position> =
            self.lanes.beyond().filter_map(|row| kept.locate(row)).map(|(batch, row)| batch.position(row)).collect();
        if self.read_all && is_all {
            self.ready.waiting.retain(|lane| self.lanes.knows(lane));
        }
        let first = (prefix < self.lanes.rows()).then(|| self.lanes.lane(prefix).clone());
        let own = first.as_ref().and_then(|lane| self.of_lane(lane, prefix, kept, parked_keys));
        if let (Some(lane), Some(failure)) = (&first, &own)
            && failure.class != Class::Retry
        {
            // It is decided now: an operator who has it sent again shall not wait for its pause.
            self.ready.waiting.forget(lane);
        }
        if let Some((row, Failure { class: Class::Fatal, .. })) = &self.whole {
            self.ready.waiting.forget(self.lanes.lane(*row));
        }
        let waits = self.whole.is_none() && own.as_ref().is_some_and(|failure| failure.class == Class::Retry);
        let now = Instant::now();
        let lane_waits =
            waits.then(|| self.next_attempt.map_or(Duration::ZERO, |until| until.saturating_duration_since(now)));
        let on_its_way = first.is_some() && !self.sending.is_empty();
        let at = self.whole.as_ref().map(|(row, _)| *row);
        let whole = self.whole.map(|(_, failure)| failure);
        let stopped = whole.or(own).or_else(|| on_its_way.then(Failure::deadline));
        Ended { published: Published { acknowledged: prefix, stopped, suspects: 1 }, beyond, lane_waits, at }
    }

    /// Why the first row that was not acknowledged was not, if its lane waits.
    fn of_lane(&self, lane: &Lane, row: usize, kept: &TurnBuffer, parked_keys: u64) -> Option<Failure> {
        let (batch, at) = kept.locate(row)?;
        let (now, was_tried) = (Instant::now(), self.failures.contains(&row));
        let waiting = self.ready.waiting.of(lane).filter(|waiting| waiting.is_about(&batch.message(at)))?;
        if !self.lanes.is_blocked(row) {
            return None;
        }
        let parks = was_tried && self.may_park(lane, parked_keys) && self.is_given_up(&waiting, now);
        Some(if parks { given_up(waiting.failure) } else { waiting.failure })
    }

    /// Whether the lane's key can be parked.
    fn may_park(&self, lane: &Lane, parked_keys: u64) -> bool {
        let config = &self.ready.config;
        config.on_poison == OnPoison::ParkKey
            && parked_keys < config.parking.keys
            && lane.as_deref().is_some_and(RowKey::fits)
    }

    /// Whether a lane was retried for as long as it may be, and the receiver has accepted others since its attempt before the last.
    fn is_given_up(&self, waiting: &WaitingLane, now: Instant) -> bool {
        waiting.failure.class == Class::Retry
            && waiting.waits_for(now) >= self.ready.config.lanes.hold
            && waiting.previous().is_some()
            && waiting.previous() < self.ready.waiting.last_accepted()
    }

    /// When the rows were created that were acknowledged, wherever they stand.
    pub(in crate::relay) fn delivered(&self, kept: &TurnBuffer) -> Vec<Timestamp> {
        let is_doubtful = |row: usize| self.doubtful.iter().any(|doubtful| doubtful.row == row);
        let beyond = self.lanes.beyond().filter(|row| !is_doubtful(*row));
        let beyond = beyond.filter_map(|row| kept.locate(row)).map(|(batch, row)| batch.position(row).created_at);
        let prefix = kept.instants(self.lanes.prefix()).into_iter().enumerate();
        prefix.filter(|(row, _)| !is_doubtful(*row)).map(|(_, at)| at).chain(beyond).collect()
    }
}

/// A lane has been retried for as long as it may.
fn given_up(failure: Failure) -> Failure {
    let hint = format!("Its lane was retried for lane_hold, and its key is parked now. {}", failure.hint);
    Failure { class: Class::Poison, ambiguous: false, hint, ..failure }
}
