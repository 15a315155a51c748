//! Outcomes of comparing what was passed with the tables.

use std::time::Instant;

use metrics::{Label, counter};

use super::table::name;
use super::trail;

/// The outcome of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditResult {
    /// The table has what was passed.
    Equal,
    /// Rows are gone from the table, and none is missing.
    Gone,
    /// Rows had become visible behind the position: they are named, and come late.
    Late,
    /// Rows are missing, and which ones cannot be told.
    Unnamed,
    /// So many rows are gone or changed that it cannot be told whether others are missing.
    Unclear,
    /// It was not compared in time.
    Skipped,
    /// It cannot be compared any more: the relay reads another table, or otherwise.
    Over,
}

impl AuditResult {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Equal, Self::Gone, Self::Late, Self::Unnamed, Self::Unclear, Self::Skipped, Self::Over];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Gone => "gone",
            Self::Late => "late",
            Self::Unnamed => "unnamed",
            Self::Unclear => "unclear",
            Self::Skipped => "skipped",
            Self::Over => "over",
        }
    }
}

/// Begins the counts of an audited cursor at 0, which an alert on an increase needs before the first.
pub fn audit_begins(cursor: &str) {
    for result in [AuditResult::Equal, AuditResult::Late, AuditResult::Unnamed] {
        audited(cursor, result, 0);
    }
}

/// Counts slices of a cursor that have been compared, or not; the status page shows the last result of a cursor that is configured here.
pub fn audited(cursor: &str, result: AuditResult, slices: u64) {
    if let Some(trail) = trail::find(cursor).filter(|_| slices > 0) {
        trail.compared(result, Instant::now());
    }
    let labels = vec![Label::new("cursor", cursor.to_owned()), Label::from_static_parts("result", result.as_str())];
    counter!(name::AUDIT_SLICES, labels).increment(slices);
}

/// Counts rows of a cursor that were found late.
pub fn late_rows(cursor: &str, rows: usize) {
    counter!(name::LATE_ROWS, "cursor" => cursor.to_owned()).increment(rows as u64);
}
