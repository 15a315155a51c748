//! The column that orders, as an instant, and instants in the column's own type.
//!
//! A local time within hours of the ends of time may be no instant in its zone: PostgreSQL fails for it (`timestamp out of range`), and with it
//! every other row of the statement. Where rows are only found, counted or compared, such a local time counts as infinite.
//! Where a position is made of it ([`Shape::fetch_sql`]), the statement fails there, and the row is named: no position can be at it.

use super::{After, Shape};
use crate::database::{quote_ident, quote_literal};

/// The first local time of a zone that is an instant. Two days are in between, because PostgreSQL fails for the sum as well.
fn first(zone: &str) -> String {
    format!(
        "(GREATEST(timestamptz '4714-11-26 00:00:00+00 BC' AT TIME ZONE {zone}, timestamp '4714-11-26 00:00:00 BC') \
         - interval '2 days')"
    )
}

/// The last one.
fn last(zone: &str) -> String {
    format!(
        "(LEAST(timestamptz '294276-12-28 23:59:59.999999+00' AT TIME ZONE {zone}, timestamp '294276-12-28 23:59:59.999999') \
         + interval '3 days')"
    )
}

impl Shape {
    fn zone(&self) -> Option<String> {
        self.config.time_zone.as_deref().map(quote_literal)
    }

    /// The column that orders, as `timestamptz`.
    pub(in crate::source) fn instant(&self) -> String {
        let (column, exact) = (self.created_at(), self.exact_instant());
        let Some(zone) = self.zone() else { return exact };
        let (first, last) = (first(&zone), last(&zone));
        format!(
            "(CASE WHEN {column} < {first} THEN timestamptz '-infinity' WHEN {column} > {last} THEN timestamptz 'infinity' \
             ELSE {exact} END)"
        )
    }

    /// The same; PostgreSQL fails at a row that has none.
    pub(super) fn exact_instant(&self) -> String {
        let column = self.created_at();
        match self.zone() {
            Some(zone) => format!("({column} AT TIME ZONE {zone})"),
            None => column,
        }
    }

    fn created_at(&self) -> String {
        format!("t.{}", quote_ident(&self.config.created_at))
    }

    /// Parameter number `n`, an instant, in the column's own type: the index is used only then.
    pub(in crate::source) fn instant_parameter(&self, n: usize) -> String {
        self.instant_of(&format!("${n}"))
    }

    /// An instant in the column's own type.
    pub(in crate::source) fn instant_of(&self, instant: &str) -> String {
        match self.zone() {
            Some(zone) => format!("({instant}::timestamptz AT TIME ZONE {zone})"),
            None => format!("{instant}::timestamptz"),
        }
    }

    /// The condition for having the instant that is parameter number `n`, as [`Self::instant`] gives it.
    pub(super) fn has_instant(&self, n: usize) -> String {
        let (column, instant) = (self.created_at(), self.instant_parameter(n));
        let Some(zone) = self.zone() else { return format!("{column} = {instant}") };
        format!(
            "{column} >= {instant} AND {column} < CASE WHEN ${n}::timestamptz = timestamptz '-infinity' THEN {} \
             ELSE {instant} + interval '1 microsecond' END",
            first(&zone)
        )
    }

    /// The first row after a position, whose parts are `$1` and `$2`, that has no instant: its local time and id. None where each row
    /// has one.
    #[must_use]
    pub fn without_instant_sql(&self, after: After) -> Option<String> {
        let (column, [_, id]) = (self.created_at(), self.order());
        let first = first(&self.zone()?);
        let own = self.shard_terms().map_or_else(String::new, |[of, number]| format!(" AND {of} = {number}"));
        Some(format!(
            "SELECT {column}::text, {id}::text FROM {} AS t \
             WHERE {column} > timestamp '-infinity' AND {column} < {first}{own}{} ORDER BY {} LIMIT 1",
            self.config.table.quoted(),
            self.beyond(after, 1),
            self.sorted("")
        ))
    }
}
