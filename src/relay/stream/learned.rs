//! What a relay learns from its turns.
//!
//! It travels by value with the task that runs the turns, as the backoff does: only the running turn changes it, and a relay
//! that is prepared again begins with nothing learned.

use std::time::{Duration, Instant};

use crate::late::{Opened, Parts};
use crate::pace::{self, Backoff, freshness::Lead};
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::letter_limit::LetterLimit;
use crate::relay::stream::outcome::{Timings, TurnOutcome};
use crate::relay::{Config, OnPoison};
use crate::source::fetch::Sizes;

/// What the labels that parked keys are made of meant, as sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelMeanings {
    /// Over these keys.
    pub keys: u64,
    /// Over all values of their enums, with what they were called.
    pub values: u64,
    /// Over the values that were called by a key.
    pub meanings: u64,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Learned {
    /// Maximum number of rows of the next turn.
    pub row_limit: usize,
    /// By which factor turns are larger than configured while a backlog is read.
    pub growth: usize,
    /// Keys are parked: turns do not record their progress.
    pub keys_are_parked: bool,
    /// They were made of the columns that this configuration makes keys of: a sum over those of which that was found out.
    pub keys_fit: Option<u64>,
    /// What the labels that keys are made of meant.
    pub label_meanings: Option<LabelMeanings>,
    /// The keys do not fit because of labels that were renamed.
    pub relabelled: bool,
    /// The last turn published for longer than a turn may read: rows that are read ahead would be too old.
    pub slow: bool,
    /// Of the rows of the last fetch.
    pub sizes: Sizes,
    /// How many of the next messages are published one at a time, because one of them was refused with its batch.
    pub suspects: usize,
    /// The number of partitions that `on_partition_change = "continue"` has accepted.
    pub accepted_partitions: Option<i32>,
    /// Rows that were acknowledged but not advanced over by the last turn.
    pub unconfirmed: usize,
    /// The last turn sent as many letters again as one may: the next is one for new rows.
    pub redrove: bool,
    /// Of rows that are sent again where no other key waits for them: no sooner than this.
    pub resend_after: Option<Instant>,
    /// How often they have failed in a row.
    pub resends: Backoff,
    /// How many readings in a row of a row that is to be sent again have taken too long.
    pub slow_resends: u32,
    /// How many rows that become dead letters the next turn looks for before it sends any.
    pub letters: LetterLimit,
    /// How long before rows are too old turns must begin.
    pub lead: Lead,
    /// How many readings in a row have taken too long without a row.
    pub slow_reads: u32,
    /// Of how many transactions the first part of the next look for late rows is.
    pub span: u64,
}

/// The same, of the first look.
const FIRST_SPAN: u64 = 1_024;
/// After so many readings that took too long, the first row is read alone.
pub(in crate::relay) const SLOW_READS: u32 = 3;
/// The most parts of one look. What they leave, the next turn asks for.
const PARTS: usize = 6;

impl Learned {
    /// Nothing yet.
    pub(in crate::relay) fn new(config: &Config) -> Self {
        Self::of(config.turn.rows, &config.poll)
    }

    fn of(rows: usize, poll: &pace::Config) -> Self {
        Self {
            row_limit: rows.min(pace::FIRST_APPETITE),
            growth: 1,
            keys_are_parked: false,
            keys_fit: None,
            label_meanings: None,
            relabelled: false,
            slow: false,
            sizes: Sizes::default(),
            suspects: 0,
            accepted_partitions: None,
            unconfirmed: 0,
            redrove: false,
            resend_after: None,
            resends: Backoff::new(),
            slow_resends: 0,
            letters: LetterLimit::default(),
            lead: Lead::new(poll),
            slow_reads: 0,
            span: FIRST_SPAN,
        }
    }

    /// Whether rows that are to be sent again wait after a failure, while others are sent.
    pub(in crate::relay) fn resends_wait(&self) -> bool {
        self.resend_after.is_some_and(|after| after > Instant::now())
    }

    /// A row that was to be sent again was not accepted; the next attempt is after this pause, or a longer one.
    pub(in crate::relay) fn resend_failed(&mut self, least: Duration) {
        let pause = self.resends.failed(fastrand::f64()).max(least);
        self.resend_after = Some(Instant::now() + pause);
    }

    /// Rows that were to be sent again were accepted.
    pub(in crate::relay) fn resent(&mut self) {
        (self.resend_after, self.resends) = (None, Backoff::new());
    }

    /// How late rows are looked for: in a quarter of a turn's time at most.
    pub(in crate::relay) fn parts(&self, relay: &PreparedStream) -> Parts {
        Parts { span: self.span, most: PARTS, limit: relay.config.turn.deadline / 4 }
    }

    /// A reading has failed. If that was because it took too long, it may have been for late rows that were asked for among too
    /// many transactions; a part that is too small is followed by larger ones at once. Or it is one row that takes so long.
    pub(in crate::relay) fn reading_failed(&mut self, is_too_slow: bool) {
        self.span = (self.span / 64).max(1);
        self.slow_reads = if is_too_slow { self.slow_reads.saturating_add(1) } else { 0 };
    }

    /// A turn has ended well. One that has read to its end, or passed a row, has not taken too long.
    pub(in crate::relay) fn turn_ended(&mut self, outcome: &TurnOutcome) {
        if matches!(outcome, TurnOutcome::Relayed { .. } | TurnOutcome::Idle | TurnOutcome::Buried { .. }) {
            self.slow_reads = 0;
        }
    }

    /// Whether to read the first row alone, and how long at most. Where a row that is poison halts the relay, nothing is gained by naming
    /// it, and a server that was only slow would not go on by itself.
    pub(in crate::relay) fn alone(&self, relay: &PreparedStream) -> Option<Duration> {
        let passes = relay.config.on_poison != OnPoison::Halt;
        (passes && self.slow_reads >= SLOW_READS).then(|| relay.config.turn.call_deadline())
    }

    /// What a reading has seen before its first row.
    pub(in crate::relay) fn opened(&mut self, opened: Option<&Opened>) {
        self.span = opened.and_then(|opened| opened.span).unwrap_or(self.span);
    }

    /// Maximum number of rows of a turn at the present growth.
    pub(in crate::relay) fn most_rows(&self, relay: &PreparedStream) -> usize {
        self.grown(relay.config.turn.rows, relay.records_progress())
    }

    /// The same of a relay that is configured for `rows`, and whose turns record their progress or not.
    fn grown(&self, rows: usize, records_progress: bool) -> usize {
        pace::most_rows(rows, self.growth, records_progress && !self.keys_are_parked)
    }

    /// Maximum number of bytes of a turn at the present growth.
    pub(in crate::relay) fn most_bytes(&self, relay: &PreparedStream) -> usize {
        relay.config.turn.bytes.saturating_mul(self.growth.min(relay.largest_growth().bytes))
    }

    /// Learns from a turn of `rows` rows, all that it could take, how many rows the next turn should take.
    pub(in crate::relay) fn published(&mut self, relay: &PreparedStream, rows: usize, took: Duration) {
        self.row_limit = pace::appetite(rows, self.most_rows(relay), took, relay.config.turn.deadline);
    }

    /// Learns from a turn that left rows whether the next turn should be larger than configured.
    pub(in crate::relay) fn left_rows(&mut self, relay: &PreparedStream, timings: &Timings) {
        // A sink that sends one at a time, or at a rate, is not delayed by what a turn costs whatever its rows.
        if !relay.config.sink.one_by_one() && relay.sink.min_interval().is_none() {
            let fixed = timings.lock + timings.tail + timings.advance + timings.commit;
            let time = relay.config.turn.time;
            self.growth = pace::stretch(self.growth, relay.largest_growth(), fixed, timings.publish, time);
        }
    }

    /// A turn has moved over so many messages: fewer are to be published one at a time.
    pub(in crate::relay) fn passed(&mut self, messages: usize) {
        self.suspects = self.suspects.saturating_sub(messages);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_that_record_no_progress_because_keys_are_parked_stay_below_what_may_come_again() {
        let mut learned = Learned { growth: 16, ..Learned::of(20_000, &pace::Config::default()) };
        assert_eq!([true, false].map(|records| learned.grown(20_000, records)), [320_000, 40_000]);
        learned.keys_are_parked = true;
        assert_eq!([true, false].map(|records| learned.grown(20_000, records)), [40_000, 40_000]);
    }
}
