//! In which order records must be where reshards have exchanged the cursors that send them. Pure.
//!
//! Promise: one cursor's records are in order within each partition, those of several cursors within each key. The rows before a reshard's
//! place were all sent by the former cursors, and before the new ones sent any: so each set's records come behind those of the set before
//! it, too. A record of a later row that was made before the reshard is judged by its key alone: the former cursors may have sent it, and
//! ended before they could record that. So is one that was made just after it, because clocks differ.

use std::time::Duration;

use super::Keeps;
use super::operations::Handover;
use super::order::{Lane, Place};
use crate::position::Timestamp;

/// Records are stamped by the clocks of publishers or brokers, and a reshard by the database's: they differ by less.
const CLOCKS: Duration = Duration::from_secs(1);

/// A record, as far as its order is judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedRecord<'a> {
    /// Number of its partition among all that are read.
    pub(super) partition: u32,
    /// A hash of its key, if keys matter.
    pub(super) key: Option<u64>,
    /// Its row's instant.
    pub(super) at: Timestamp,
    /// Its row's id.
    pub(super) id: &'a str,
    /// When it was made, by its publisher's clock, or its broker's.
    pub(super) made_at: Option<Timestamp>,
}

/// The sets of cursors that have sent the records, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Eras {
    /// What the records of the present set keep, and those of several cursors.
    keeps: (Keeps, Keeps),
    /// Whether ids can be compared here.
    ordered: bool,
    /// The newest first.
    handovers: Vec<Handover>,
}

impl Eras {
    /// See the fields.
    pub(super) fn new(keeps: (Keeps, Keeps), ordered: bool, handovers: &[Handover]) -> Self {
        Self { keeps, ordered, handovers: handovers.to_vec() }
    }

    /// The lanes of a record, and its place in each.
    pub(super) fn lanes(&self, record: PlacedRecord<'_>) -> [Option<(Lane, Place)>; 2] {
        let PlacedRecord { partition, key, at, id, made_at } = record;
        let (whole, of_key) = (Lane::Partition(partition), Lane::Key(partition, key));
        let (place, (now, shared)) = (Place::new(at, id, self.ordered), self.keeps);
        if !self.has_handovers() || now == Keeps::Nothing {
            let lane = match now {
                Keeps::Partition => Some(whole),
                Keeps::Key => Some(of_key),
                Keeps::Nothing => None,
            };
            return [lane.map(|lane| (lane, place)), None];
        }
        // The first set that had sent all rows up to here when it ended.
        let set = self.handovers.iter().rposition(|ended| at < ended.before);
        let older = set.map_or(&self.handovers[..], |set| &self.handovers[set + 1..]);
        let begins = older.iter().map(|ended| ended.before).max().unwrap_or(Timestamp::NEG_INFINITY);
        let keeps = match set.map(|set| self.handovers[set].was_shared) {
            None => now,
            Some(true) => shared,
            Some(false) => Keeps::Partition,
        };
        let comes_early =
            |ended: &Handover| at >= ended.before && made_at.is_some_and(|made_at| made_at <= ended.at.plus(CLOCKS));
        let is_early = self.handovers.iter().any(comes_early);
        let in_partition = if keeps == Keeps::Partition { place } else { Place::new(begins, "", false) };
        let has_key = keeps == Keeps::Key || is_early && shared == Keeps::Key;
        [(!is_early).then_some((whole, in_partition)), has_key.then_some((of_key, place))]
    }

    /// Whether keys matter.
    pub(super) fn has_keys(&self) -> bool {
        let (now, shared) = self.keeps;
        now == Keeps::Key || self.has_handovers() && shared == Keeps::Key
    }

    /// Whether it matters when records were made.
    pub(super) fn has_handovers(&self) -> bool {
        !self.handovers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::order::{Below, Order};
    use crate::verify::sketch::Key;

    /// When records were made, in microseconds: after the reshards below, by more than clocks differ.
    const AFTER: i64 = 5_000_000;
    const SHARED: Handover =
        Handover { before: Timestamp::from_pg_micros(100), at: Timestamp::from_pg_micros(1_000), was_shared: true };

    /// The ids of those that are below one before, of records of one partition: key, instant, when it was made. Their number is their id.
    fn below(eras: &Eras, records: &[(u64, i64, i64)]) -> Vec<usize> {
        let mut order = Order::default();
        let see = |(number, (key, at, made_at)): (usize, &(u64, i64, i64))| {
            let id = number.to_string();
            let record = PlacedRecord {
                partition: 0,
                key: Some(*key),
                at: Timestamp::from_pg_micros(*at),
                id: &id,
                made_at: Some(Timestamp::from_pg_micros(*made_at)),
            };
            let below = Below { key: Key::of(1), partition: 0, offset: 0 };
            let is_below = eras.lanes(record).into_iter().flatten().any(|(lane, place)| order.see(lane, place, below));
            is_below.then_some(number)
        };
        records.iter().enumerate().filter_map(see).collect()
    }

    fn eras(now: Keeps, handovers: &[Handover]) -> Eras {
        Eras::new((now, Keeps::Key), true, handovers)
    }

    // Guarantee: verify.order
    #[test]
    fn records_of_several_cursors_are_ordered_by_key_and_those_of_the_one_after_them_by_partition() {
        let records = [(1, 50, 900), (2, 40, 900), (1, 60, 900), (2, 110, AFTER), (1, 120, AFTER)];
        let one = eras(Keeps::Partition, &[SHARED]);
        assert_eq!(below(&one, &records), [0_usize; 0]);
        assert_eq!(below(&eras(Keeps::Partition, &[]), &records), [1], "by one cursor it would be none");
        let wrong = [(1, 50, 900), (1, 40, 900), (2, 120, AFTER), (1, 110, AFTER), (3, 99, AFTER)];
        assert_eq!(below(&one, &wrong), [1, 3, 4], "of its key, of its partition, of the set before");
    }

    // Guarantee: verify.order
    #[test]
    fn records_of_one_cursor_before_a_reshard_to_several_are_ordered_by_partition() {
        let alone = Handover { was_shared: false, ..SHARED };
        let records = [(1, 50, 900), (2, 40, 900), (1, 120, AFTER), (2, 110, AFTER), (1, 115, AFTER)];
        assert_eq!(below(&eras(Keeps::Key, &[alone]), &records), [1, 4]);
        assert_eq!(below(&eras(Keeps::Nothing, &[alone]), &records), [0_usize; 0]);
    }

    // Guarantee: verify.order
    #[test]
    fn record_that_the_former_cursors_sent_beyond_their_end_convicts_no_other() {
        let one = eras(Keeps::Partition, &[SHARED]);
        let records = [(1, 50, 900), (1, 130, 950), (2, 110, AFTER), (1, 130, AFTER), (2, 140, AFTER)];
        assert_eq!(below(&one, &records), [0_usize; 0]);
        let later = records.map(|(key, at, _)| (key, at, AFTER));
        assert_eq!(below(&one, &later), [2], "it was made by the new one");
    }

    // Guarantee: verify.order
    #[test]
    fn clock_of_a_publisher_that_is_ahead_of_the_databases_convicts_no_record() {
        let one = eras(Keeps::Partition, &[SHARED]);
        let handed_over = SHARED.at.pg_micros();
        let ahead = |by: i64| [(1, 50, 900), (1, 130, handed_over + by), (2, 110, AFTER), (2, 140, AFTER)];
        for by in [999_999, 1_000_000] {
            assert_eq!(below(&one, &ahead(by)), [0_usize; 0], "{by}");
        }
        assert_eq!(below(&one, &ahead(1_000_001)), [2], "clocks do not differ by so much");
    }

    #[test]
    fn sets_of_cursors_are_told_by_the_place_of_each_reshard() {
        let [before, at] = [200, 2_000].map(Timestamp::from_pg_micros);
        let several = eras(Keeps::Key, &[Handover { before, at, was_shared: false }, SHARED]);
        let places = [(1, 50), (2, 40), (1, 160), (2, 150), (1, 220), (2, 210), (1, 199)];
        let records = places.map(|(key, at)| (key, at, AFTER));
        assert_eq!(below(&several, &records), [3, 6], "one cursor sent the rows from 100 to 200");
    }
}
