//! Lanes under `at_most_once`: all rows are read first; then those are chosen that are sent in this turn; how each ends is known, or it is
//! passed without a clear answer.

use std::time::Instant;

use super::{BatchStream, Failure, HashMap, JoinSet, Parked, SideBySide, TurnBuffer};
use crate::cursor::unknown;
use crate::position::Position;
use crate::sink::Class;

/// A row that was passed without a clear answer.
#[derive(Clone, Debug)]
pub(in crate::relay) struct Doubtful {
    /// Its number in the turn.
    pub(in crate::relay) row: usize,
    pub(in crate::relay) position: Position,
    pub(in crate::relay) failure: Failure,
}

impl SideBySide<'_> {
    /// The same, where no row may be sent twice.
    pub(in crate::relay) fn once(self) -> Self {
        // What is read and not sent in this turn is read again.
        Self { once: true, most: self.left, ..self }
    }

    /// Reads until enough lanes have rows, or all is read.
    pub(in crate::relay) async fn read(
        &mut self,
        kept: &mut TurnBuffer,
        parked: &mut Parked<'_>,
        mut rows: BatchStream,
    ) {
        self.read_all = true;
        // What is read must still be sent in this turn.
        let begun = Instant::now();
        let until = begun + self.until.saturating_duration_since(begun) / 2;
        while let Some((batch, _room)) = rows.next().await {
            let batch = parked.publishable(batch, None, kept.rows());
            self.take(batch, kept);
            // Nothing may be taken that stands behind a row for which there is no room.
            if parked.is_full() || self.has_enough() || Instant::now() >= until {
                rows.close();
                self.read_all = false;
                break;
            }
        }
        self.reads = false;
    }

    /// Chooses the rows that this turn may send: no other is sent by it.
    pub(in crate::relay) fn reserve(&mut self, kept: &TurnBuffer) -> Vec<(usize, Position)> {
        let (any, waiting) = (self.takes_any(), &self.ready.waiting);
        let rows = self.lanes.reserve(self.left, |lane| any || !waiting.is_out(lane));
        rows.into_iter().filter_map(|row| kept.locate(row).map(|(batch, at)| (row, batch.position(at)))).collect()
    }

    /// Sends what was chosen.
    pub(in crate::relay) async fn send_reserved(&mut self, kept: &mut TurnBuffer, parked: &mut Parked<'_>) {
        self.send(kept, parked, None).await;
    }

    /// What is on its way is given up: whether it was accepted will not be known.
    pub(in crate::relay) fn cut(&mut self, kept: &TurnBuffer) {
        while let Some(ended) = self.sending.try_join_next() {
            self.joined(ended, kept);
        }
        self.sending = JoinSet::new();
        let now = Instant::now();
        for (row, position) in std::mem::take::<HashMap<usize, Position>>(&mut self.flying) {
            let failure = Failure { hint: unknown::HINT.to_owned(), ..Failure::deadline() };
            self.doubtful(row, position, failure.clone());
            if let Some((batch, at)) = kept.locate(row) {
                let lane = self.lanes.lane(row).clone();
                let next = for_next(failure);
                let failing = self.ready.waiting.doubtful(&lane, &batch.message(at), next.clone(), now);
                self.waits(row, &lane, next, failing);
            }
        }
        self.doubtful.sort_unstable_by_key(|doubtful| doubtful.row);
    }

    /// Of the chosen rows those that provably were not sent.
    pub(in crate::relay) fn not_sent(&self, reserved: Vec<(usize, Position)>) -> Vec<Position> {
        reserved.into_iter().filter(|(row, _)| !self.lanes.is_passed(*row)).map(|(_, position)| position).collect()
    }

    /// Whether nothing may be sent any more in this turn.
    pub(in crate::relay) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// Whether there was no time to send a single one of the chosen rows.
    pub(in crate::relay) fn has_sent_none(&self) -> bool {
        self.last_start.is_none() && self.ran_out_of_time()
    }

    pub(super) fn doubtful(&mut self, row: usize, position: Position, failure: Failure) {
        self.lanes.doubtful(row);
        self.doubtful.push(Doubtful { row, position, failure });
    }
}

/// Why the next row of a lane waits behind one that was passed without a clear answer.
pub(super) fn for_next(failure: Failure) -> Failure {
    // The relay halts, and says why.
    if failure.class == Class::Fatal {
        return Failure { ambiguous: false, ..failure };
    }
    let class = if failure.class == Class::Poison { Class::Retry } else { failure.class };
    let hint = "The message of its lane before it was not answered, and is listed as unknown: `outbox-relay request list --unknown`. This \
                one is sent after a pause";
    Failure { class, ambiguous: false, hint: hint.to_owned(), ..failure }
}
