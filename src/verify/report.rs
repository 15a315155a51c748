//! What a comparison has found.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Range;
use super::decide::{Kind, Known, Withheld};
use crate::position::{Position, Timestamp};

/// Rows of a minute of `created_at` are a slice.
const SLICE: Duration = Duration::from_secs(60);

/// So many ids are named in a note, at most.
const NAMED: usize = 5;

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
    /// The transaction that wrote the row, where late rows are found by it.
    pub transaction: Option<String>,
    /// Why no repair publishes the row if the topic lacks it.
    pub withheld: Option<Withheld>,
}

/// Slices of what the cursors have passed, which were compared where there is no topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// The kind of the relay's sink.
    pub sink: &'static str,
    /// How many were compared.
    pub slices: u64,
    /// Those that differ in more ids than can be named.
    pub unclear: Vec<UnclearSlice>,
    /// Parts of the range that could not be compared.
    pub left_out: Vec<LeftOut>,
    /// How many of the ids that are not in the table cannot be named.
    pub unnamed: u64,
}

/// A slice that differs in more ids than can be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnclearSlice {
    /// Whose it is.
    pub cursor: String,
    /// After this place.
    pub after: Position,
    /// Up to this one.
    pub up_to: Position,
    /// How many rows the table has there.
    pub table: u64,
    /// How many were passed.
    pub passed: u64,
}

/// A part of the range that could not be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Whose it is.
    pub cursor: String,
    /// After this place.
    pub after: Position,
    /// Up to this one.
    pub up_to: Position,
    /// How many rows of the range the table has there that nothing else explains.
    pub rows: u64,
    /// Why.
    pub why: String,
    /// What can be done about it.
    pub fix: String,
}

/// A comparison of a table with a topic, or with what was passed.
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
    /// Those of them that are still to come late: instant and id, the oldest first.
    pub to_come: Vec<(Timestamp, String)>,
    /// How many differences there are of each kind; at least so many when [`Self::complete`] is false.
    pub counts: BTreeMap<Kind, u64>,
    /// All that were found, the worst first: by kind, then by age.
    pub differences: Vec<Difference>,
    /// Whether all were found.
    pub complete: bool,
    /// What else must be said.
    pub notes: Vec<String>,
    /// What was compared instead of a topic; none where there is one.
    pub passed: Option<Passed>,
}

impl Report {
    /// Nothing found yet of these rows.
    #[must_use]
    pub fn empty(name: &str, Range { since, until }: Range) -> Self {
        Self {
            name: name.to_owned(),
            topic: String::new(),
            since,
            until,
            table: 0,
            delivered: 0,
            pending: 0,
            records: 0,
            without_id: 0,
            known: BTreeMap::new(),
            to_come: Vec::new(),
            counts: BTreeMap::new(),
            differences: Vec::new(),
            complete: true,
            notes: Vec::new(),
            passed: None,
        }
    }

    /// Whether both sides are equal, in all of the range.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        !self.is_different() && self.passed.as_ref().is_none_or(|passed| passed.left_out.is_empty())
    }

    /// Whether the sides differ, as far as they were compared.
    #[must_use]
    pub fn is_different(&self) -> bool {
        let unclear = self.passed.as_ref().is_some_and(|passed| !passed.unclear.is_empty());
        !self.counts.is_empty() || !self.complete || unclear
    }

    /// Counts a row that the other side lacks for a known reason.
    pub(super) fn explain(&mut self, known: Known, id: &str, at: Timestamp) {
        *self.known.entry(known).or_default() += 1;
        if known == Known::LateToCome {
            self.to_come.push((at, id.to_owned()));
        }
    }

    /// What must be said of rows that are still to come late.
    pub(super) fn note_to_come(&self) -> Option<String> {
        let ids: Vec<&str> = self.to_come.iter().take(NAMED).map(|(_, id)| id.as_str()).collect();
        let more = if self.to_come.len() > ids.len() { ", …" } else { "" };
        (!ids.is_empty()).then(|| {
            format!(
                "{} rows became visible below the position after the last turn, and are still to come late: {}{more}. The next turn sends \
                 them, and no repair does: start a replica, or resume the cursor if it is paused or halted \
                 (`outbox-relay cursor resume {}`)",
                self.to_come.len(),
                ids.join(", "),
                self.name
            )
        })
    }

    /// How many slices were compared.
    #[must_use]
    pub fn slices(&self) -> u64 {
        if let Some(passed) = &self.passed {
            return passed.slices;
        }
        let length = self.until.since(self.since).as_micros();
        u64::try_from(length.div_ceil(SLICE.as_micros())).unwrap_or(u64::MAX)
    }
}
