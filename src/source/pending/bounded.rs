//! How much of due rows a claim reads: no row above its limit, and not more rows than have room together.
//!
//! Pure.

use super::due::Due;
use crate::message::Field;
use crate::source::length::Columns;
use crate::source::shape;

/// The most bytes that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Of one row: a larger one comes without its values.
    pub row: usize,
    /// Of one claim: the row that passes it is the last.
    pub claim: usize,
}

impl Due {
    /// The same, of whose rows a claim reads no more than this.
    #[must_use]
    pub fn reading(mut self, most: Most) -> Self {
        self.most = most;
        self
    }

    /// The most bytes of a row that is read.
    pub(crate) const fn largest(&self) -> usize {
        self.most.row
    }

    /// The fields of the row `t`, named `f0`, `f1` …, and its length in bytes, named `size`. A row above the limit has no
    /// values.
    pub(super) fn values(&self, fields: &[Field]) -> String {
        let types = self.types.iter().map(|(name, base)| (name.as_str(), base.as_str())).collect();
        let most = self.most.row;
        let length = Columns(types).length(fields, most).map(|length| length.sql());
        let value = |field| {
            let value = shape::value(field, &self.bytea_columns);
            length.as_ref().map_or(value.clone(), |length| format!("CASE WHEN {length} <= {most} THEN {value} END"))
        };
        let values: String =
            fields.iter().enumerate().map(|(n, field)| format!(", {} AS f{n}", value(field))).collect();
        format!("{values}, ({})::bigint AS size", length.as_deref().unwrap_or("0"))
    }

    /// Of the rows `due`, in their order, those whose values a claim reads: the one that passes its limit is the last.
    pub(super) fn within_budget(&self) -> String {
        let keys: String = (0..self.config.key.len()).map(|n| format!(", r.k{n}")).collect();
        let Most { row, claim } = self.most;
        format!(
            "(SELECT r.*, pg_catalog.sum(CASE WHEN r.size <= {row} THEN r.size ELSE 0 END) \
             OVER (ORDER BY r.raw{keys} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM due AS r) AS d \
             WHERE COALESCE(d.before, 0) < {claim}"
        )
    }
}
