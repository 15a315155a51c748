//! How much of due rows a claim reads: no row above its limit, and not more rows than have room together.
//!
//! Pure.

use std::collections::BTreeSet;

use super::due::Due;
use crate::database::quote_ident;
use crate::message::Field;
use crate::source::length::{Columns, Length};
use crate::source::shape;

/// The most bytes that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Most {
    /// Of one row: a larger one comes without its values.
    pub row: usize,
    /// Of one claim: the row that passes it is the last.
    pub claim: usize,
}

/// Change events of Debezium, which alone ask for the table, are made of streams only.
const OF_NO_TABLE: u32 = 0;

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

    /// How long what is read of a row is.
    fn length(&self, fields: &[Field]) -> Option<Length> {
        let types = self.types.iter().map(|(name, base)| (name.as_str(), base.as_str())).collect();
        Columns { types, own: &self.own_columns }.length(fields, self.most.row)
    }

    /// The columns of the row `t` that these fields, its key and its due time are made of.
    pub(super) fn columns(&self, fields: &[Field]) -> String {
        if fields.iter().any(|field| matches!(field, Field::Row | Field::Debezium(None))) {
            return "t.*".to_owned();
        }
        let read = fields.iter().flat_map(|field| match field {
            Field::Columns(columns) | Field::Debezium(Some(columns)) => columns.as_slice(),
            Field::Text(column) | Field::Payload(column) => std::slice::from_ref(column),
            Field::Row | Field::Debezium(None) | Field::Matches => &[],
        });
        let lane = self.config.lanes.iter().filter_map(|lanes| lanes.column.as_ref());
        let all: BTreeSet<&String> = read.chain(&self.config.key).chain([&self.config.due]).chain(lane).collect();
        all.into_iter().map(|column| format!("t.{}", quote_ident(column))).collect::<Vec<_>>().join(", ")
    }

    /// The fields of the row `t`, named `f0`, `f1` …, and the length of its values in bytes, named `size`. A row above the limit has
    /// no values.
    pub(super) fn values(&self, fields: &[Field]) -> String {
        let (length, most) = (self.length(fields), self.most.row);
        let value = |field| {
            let kinds = [&self.bytea_columns, &self.own_columns];
            let value = shape::value(field, kinds, self.types.keys().map(String::as_str), OF_NO_TABLE);
            match &length {
                Some(length) => format!("CASE WHEN {} <= {most} THEN {value} END", length.values()),
                None => value,
            }
        };
        let values: String =
            fields.iter().enumerate().map(|(n, field)| format!(", {} AS f{n}", value(field))).collect();
        format!("{values}, ({})::bigint AS size", length.as_ref().map_or("0", Length::values))
    }

    /// The length of what has been made of a row: its JSON, where that can be longer than its values.
    fn size(&self, fields: &[Field], row: &str) -> String {
        let made: Vec<_> =
            (0..fields.len()).map(|n| format!("COALESCE(pg_catalog.octet_length({row}.f{n}), 0)::bigint")).collect();
        match self.length(fields).and_then(|length| length.suspicious()) {
            Some(least) => format!(
                "CASE WHEN {row}.size > {least} AND {row}.size <= {} THEN {} ELSE {row}.size END",
                self.most.row,
                made.join(" + ")
            ),
            None => format!("{row}.size"),
        }
    }

    /// The fields and the length of a row that [`Self::values`] has made, to be read; of one that is too long as JSON only the length.
    pub(super) fn read(&self, fields: &[Field], row: &str) -> String {
        let (size, most) = (self.size(fields, row), self.most.row);
        let fields = (0..fields.len()).map(|n| format!(", CASE WHEN {size} <= {most} THEN {row}.f{n} END"));
        fields.chain([format!(", {size}")]).collect()
    }

    /// Of the rows `due`, in their order, those whose values a claim reads: the one that passes its limit is the last.
    pub(super) fn within_budget(&self, fields: &[Field]) -> String {
        let keys: String = (0..self.config.key.len()).map(|n| format!(", r.k{n}")).collect();
        let (Most { row, claim }, size) = (self.most, self.size(fields, "r"));
        format!(
            "(SELECT r.*, pg_catalog.sum(CASE WHEN {size} <= {row} THEN {size} ELSE 0 END) \
             OVER (ORDER BY r.raw{keys} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM due AS r) AS d \
             WHERE COALESCE(d.before, 0) < {claim}"
        )
    }
}
