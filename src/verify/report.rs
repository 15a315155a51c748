//! What a comparison has found.

use std::collections::BTreeMap;
use std::time::Duration;

use super::decide::{Kind, Known, Withheld};
use crate::position::Timestamp;

/// Rows of a minute of `created_at` are a slice.
const SLICE: Duration = Duration::from_secs(60);

/// An id that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The row's id.
    pub id: String,
    /// Its `created_at`, by the table or else by the record; none if neither says it.
    pub created_at: Option<Timestamp>,
    /// How it differs.
    pub kind: Kind,
    /// Its last record: topic, partition, offset.
    pub record: Option<(String, i32, i64)>,
    /// The cursor that passed the row, if the table has it.
    pub cursor: Option<String>,
    /// Why no repair publishes the row if the topic lacks it.
    pub withheld: Option<Withheld>,
}

/// A comparison of a table with a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The relay, or the table on trial.
    pub name: String,
    /// The topics.
    pub topic: String,
    /// Rows from here on.
    pub since: Timestamp,
    /// Rows before this.
    pub until: Timestamp,
    /// Rows of the table in the range.
    pub table: u64,
    /// Those that were delivered, as far as it is recorded.
    pub delivered: u64,
    /// Those whose turn has not come.
    pub pending: u64,
    /// Records of the range.
    pub records: u64,
    /// Records without an id, in any range.
    pub without_id: u64,
    /// Rows that the topic lacks, and why that is no difference.
    pub known: BTreeMap<Known, u64>,
    /// How many differences there are of each kind; at least so many when [`Self::complete`] is false.
    pub counts: BTreeMap<Kind, u64>,
    /// All that were found, the worst first: by kind, then by age.
    pub differences: Vec<Difference>,
    /// Whether all were found.
    pub complete: bool,
    /// What else must be said.
    pub notes: Vec<String>,
}

impl Report {
    /// Whether table and topic are equal.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.counts.is_empty() && self.complete
    }

    /// How many slices were compared.
    #[must_use]
    pub fn slices(&self) -> u64 {
        let length = self.until.since(self.since).as_micros();
        u64::try_from(length.div_ceil(SLICE.as_micros())).unwrap_or(u64::MAX)
    }
}
