//! Ids that differ by their sums, and what is found of each when both sides are read for them alone.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use super::order::Below;
use super::sketch::Key;
use crate::position::Timestamp;

/// Makes keys of ids. Each comparison has a hash of its own: no id can be made to meet another.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys(RandomState);

impl Keys {
    pub(super) fn of(&self, id: &str) -> Key {
        Key::of(self.0.hash_one(id))
    }

    /// Of a record's key.
    pub(super) fn lane(&self, key: &[u8]) -> u64 {
        self.0.hash_one(key)
    }
}

/// What is known of one id.
#[derive(Clone, Debug, Default)]
pub(super) struct Candidate {
    pub(super) id: String,
    /// By the sums, the table has it more often than the topic.
    pub(super) lacking: bool,
    /// The row's, by the table.
    pub(super) row: Option<Timestamp>,
    /// The number of the part of the table that has the row.
    pub(super) part: usize,
    /// Rows of the range, passed.
    pub(super) due: u64,
    /// The row's, by the record.
    pub(super) record: Option<Timestamp>,
    pub(super) records: u64,
    pub(super) replayed: u64,
    /// Its first record of each partition.
    pub(super) first: Vec<(u32, i64)>,
    /// Its last record.
    pub(super) last: Option<(u32, i64)>,
    /// A record of it was below one before.
    pub(super) suspects: Vec<Below>,
}

impl Candidate {
    pub(super) fn saw(&mut self, partition: u32, offset: i64) {
        if !self.first.iter().any(|(of, _)| *of == partition) {
            self.first.push((partition, offset));
        }
        self.last = Some((partition, offset));
    }

    /// Whether rows have no record, by both sides as they were read.
    pub(super) fn is_missed(&self) -> bool {
        self.due > self.records + self.replayed
    }

    /// Whether its first record in a partition was below one before.
    pub(super) fn is_below(&self) -> bool {
        self.suspects.iter().any(|below| self.first.contains(&(below.partition, below.offset)))
    }
}

pub(super) type Candidates = HashMap<Key, Candidate>;
