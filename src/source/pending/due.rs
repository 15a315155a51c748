//! What of a table of due work goes into SQL: when a row is due, whether it was sent, what names it.
//!
//! Pure. Every name goes through [`quote_ident`] and every constant through [`quote_literal`]. An instant is compared in the
//! due column's own type, so that an index on that column is used; where a zone is in between, the exact instant is compared
//! too, because a local time may exist twice or not at all.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Pending;
use super::bounded::Most;
use super::catalogue::PendingTable;
use super::labels::{self, Label};
use super::names::Naming;
use super::nullable;
use crate::database::{quote_ident, quote_literal};
use crate::source::cast::{self, Cast};

/// How far a zone's clock is set forward or back at once, and a little more: local times are compared with this slack.
const SHIFT: &str = "interval '3 hours'";

/// A table of due work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// What was configured.
    pub config: Pending,
    /// The table's oid.
    pub oid: u32,
    when: When,
    mark: Mark,
    /// Per key column: its type, as SQL.
    key_types: Vec<String>,
    /// Columns of type `bytea`: as a payload they are read as their bytes.
    pub(super) bytea_columns: BTreeSet<String>,
    /// Columns of the database's own types, whose text their output functions make.
    pub(super) own_columns: BTreeSet<String>,
    /// Casts of its columns' types whose functions no superuser owns.
    pub(super) casts: Vec<Cast>,
    /// Some column's type may get such a cast.
    pub(super) may_get_casts: bool,
    /// Columns of the key and of the mark that may be NULL.
    pub(super) nullable: BTreeSet<String>,
    /// The labels of `where`, by column.
    pub(super) labels: BTreeMap<String, Label>,
    /// The labels that rows are named by.
    pub naming: Naming,
    /// Its columns' types, for their length.
    pub(super) types: BTreeMap<String, String>,
    /// How much a claim reads.
    pub(super) most: Most,
    /// There is a text column `traceparent`: a trace context to pass on.
    pub traceparent: bool,
}

/// The type of the due column.
#[derive(Clone, Debug, PartialEq, Eq)]
enum When {
    Instant,
    /// In this zone.
    Timestamp(String),
    /// The midnight that begins it, in this zone.
    Date(String),
}

/// Where it stands that a row was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Mark {
    Boolean {
        column: String,
        nullable: bool,
    },
    Instant(String),
    /// In this zone.
    Timestamp(String, String),
    /// In `outbox.sent`.
    Elsewhere,
}

/// An instant of a column without a zone. Within two days of the ends of time its zone may lie beyond them, and PostgreSQL would fail for all
/// rows (`timestamp out of range`): such a row is due since ever, or never.
fn within(of: &str, due: &str, instant: &str) -> String {
    format!(
        "(CASE WHEN {due} < {of} '4714-11-26 BC' THEN timestamptz '-infinity' WHEN {due} > {of} '294276-12-29' \
         THEN timestamptz 'infinity' ELSE {instant} END)"
    )
}

impl Due {
    /// Of a table that was judged to be fit.
    #[must_use]
    pub fn new(table: &PendingTable, config: &Pending) -> Self {
        let base = |name: &String| table.column(name).map_or("", |column| column.base.as_str());
        let zone = config.time_zone.clone().unwrap_or_else(|| "UTC".to_owned());
        let when = match base(&config.due) {
            "date" => When::Date(zone.clone()),
            "timestamp without time zone" => When::Timestamp(zone.clone()),
            _ => When::Instant,
        };
        let mark = match &config.sent {
            None => Mark::Elsewhere,
            Some(column) => match base(column) {
                "timestamp with time zone" => Mark::Instant(column.clone()),
                "timestamp without time zone" => Mark::Timestamp(column.clone(), zone),
                _ => Mark::Boolean {
                    nullable: table.column(column).is_none_or(|column| !column.not_null),
                    column: column.clone(),
                },
            },
        };
        let type_of = |name: &String| table.column(name).map_or_else(|| "text".to_owned(), |c| c.type_name.clone());
        let of_type = |name: &'static str| table.columns.iter().filter(move |c| c.base == name).map(|c| c.name.clone());
        Self {
            key_types: config.key.iter().map(type_of).collect(),
            bytea_columns: of_type("bytea").collect(),
            own_columns: table.columns.iter().filter(|column| column.own).map(|column| column.name.clone()).collect(),
            casts: table.casts.clone(),
            nullable: nullable::of(&table.columns, config),
            labels: labels::of(&table.columns, config),
            naming: Naming::of(&table.columns, config),
            may_get_casts: table.columns.iter().any(|column| column.is_apart),
            traceparent: of_type("text").any(|name| name == "traceparent"),
            types: table.columns.iter().map(|column| (column.name.clone(), column.base.clone())).collect(),
            most: Most { row: usize::MAX >> 1, claim: usize::MAX >> 1 },
            config: config.clone(),
            oid: table.oid,
            when,
            mark,
        }
    }

    /// Whether the mark stands in the table itself.
    #[must_use]
    pub fn marks_rows(&self) -> bool {
        self.mark != Mark::Elsewhere
    }

    pub(super) fn table(&self) -> String {
        self.config.table.quoted()
    }

    pub(super) fn due(&self, alias: &str) -> String {
        format!("{alias}.{}", quote_ident(&self.config.due))
    }

    fn after(&self) -> String {
        format!("interval '{} microseconds'", self.config.due_after.as_micros())
    }

    /// When the row is due, as `timestamptz`.
    pub(super) fn instant(&self, alias: &str) -> String {
        let due = self.due(alias);
        let instant = match &self.when {
            When::Instant => due,
            When::Timestamp(zone) => within("timestamp", &due, &format!("{due} AT TIME ZONE {}", quote_literal(zone))),
            When::Date(zone) => within("date", &due, &format!("{due}::timestamp AT TIME ZONE {}", quote_literal(zone))),
        };
        if self.config.due_after == Duration::ZERO { instant } else { format!("({instant} + {})", self.after()) }
    }

    /// The row is due at `now`: an instant, as SQL.
    pub(super) fn is_due(&self, now: &str) -> String {
        let due = self.due("t");
        let base =
            if self.config.due_after == Duration::ZERO { now.to_owned() } else { format!("{now} - {}", self.after()) };
        match &self.when {
            When::Instant => format!("{due} <= {base}"),
            // In this order, whatever the planner thinks: an instant near the end of time cannot be put off any more.
            When::Timestamp(zone) => format!(
                "{due} <= (({base}) AT TIME ZONE {0}) + {SHIFT} \
                 AND CASE WHEN {due} <= (({base}) AT TIME ZONE {0}) + {SHIFT} THEN {1} <= {now} ELSE false END",
                quote_literal(zone),
                self.instant("t")
            ),
            When::Date(zone) => format!(
                "{due} <= ((({base}) AT TIME ZONE {0}) + {SHIFT})::date \
                 AND CASE WHEN {due} <= ((({base}) AT TIME ZONE {0}) + {SHIFT})::date THEN {1} <= {now} ELSE false END",
                quote_literal(zone),
                self.instant("t")
            ),
        }
    }

    /// The row is not marked as sent; `relay` is the relay's name, as SQL.
    pub(super) fn unsent(&self, alias: &str, relay: &str) -> String {
        match &self.mark {
            Mark::Boolean { column, nullable: false } => format!("NOT {alias}.{}", quote_ident(column)),
            Mark::Boolean { column, nullable: true } => format!("{alias}.{} IS NOT TRUE", quote_ident(column)),
            Mark::Instant(column) | Mark::Timestamp(column, _) => format!("{alias}.{} IS NULL", quote_ident(column)),
            // A scalar subquery is asked row by row in the order of the due index; a join might be made in another order.
            Mark::Elsewhere => format!(
                "COALESCE((SELECT s.due_at >= {} FROM outbox.sent AS s WHERE s.relay = {relay} AND s.key = {}), false) = false",
                self.instant(alias),
                self.key(alias)
            ),
        }
    }

    /// What the condition of a partial index of unsent rows holds, as PostgreSQL writes it; none when the mark is elsewhere.
    #[must_use]
    pub fn unmarked_predicate(&self) -> Option<String> {
        let plain = |name: &str| {
            let simple = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && name.chars().next().is_some_and(|c| !c.is_ascii_digit());
            if simple { name.to_owned() } else { quote_ident(name) }
        };
        match &self.mark {
            Mark::Boolean { column, nullable: false } => Some(format!("NOT {}", plain(column))),
            Mark::Boolean { column, nullable: true } => Some(format!("{} IS NOT TRUE", plain(column))),
            Mark::Instant(column) | Mark::Timestamp(column, _) => Some(format!("{} IS NULL", plain(column))),
            Mark::Elsewhere => None,
        }
    }

    /// What marks a row as sent, or as not: an assignment; none when the mark is elsewhere.
    pub(super) fn assignment(&self, sent: bool) -> Option<String> {
        let (column, value) = match (&self.mark, sent) {
            (Mark::Elsewhere, _) => return None,
            (Mark::Boolean { column, .. }, true) => (column, "true".to_owned()),
            (Mark::Boolean { column, .. }, false) => (column, "false".to_owned()),
            (Mark::Instant(column) | Mark::Timestamp(column, _), false) => (column, "NULL".to_owned()),
            (Mark::Instant(column), true) => (column, "pg_catalog.clock_timestamp()".to_owned()),
            (Mark::Timestamp(column, zone), true) => {
                (column, format!("(pg_catalog.clock_timestamp() AT TIME ZONE {})", quote_literal(zone)))
            }
        };
        Some(format!("{} = {value}", quote_ident(column)))
    }

    /// The row's key as `text[]`.
    pub(super) fn key(&self, alias: &str) -> String {
        let parts: Vec<_> = self.config.key.iter().map(|column| self.text(alias, column)).collect();
        format!("ARRAY[{}]", parts.join(", "))
    }

    /// A column's text.
    pub(super) fn text(&self, alias: &str, column: &str) -> String {
        cast::text(&format!("{alias}.{}", quote_ident(column)), self.own_columns.contains(column))
    }

    /// The rows of two aliases are one: `left` has the columns themselves, `right` has them as `k0`, `k1` ….
    pub(super) fn same(&self, left: &str, right: &str) -> String {
        let pairs = self.config.key.iter().enumerate();
        let pairs: Vec<_> = pairs.map(|(n, column)| format!("{left}.{} = {right}.k{n}", quote_ident(column))).collect();
        pairs.join(" AND ")
    }

    /// The row of `left` is named by texts: what `text` gives for column number `n`.
    pub(super) fn named(&self, left: &str, text: impl Fn(usize) -> String) -> String {
        let columns = self.config.key.iter().zip(&self.key_types).enumerate();
        let pairs: Vec<_> = columns
            .map(|(n, (column, kind))| format!("{left}.{} = {}::{kind}", quote_ident(column), text(n)))
            .collect();
        pairs.join(" AND ")
    }

    /// The key's columns as `k0`, `k1` ….
    pub(super) fn key_columns(&self, alias: &str) -> String {
        let columns = self.config.key.iter().enumerate();
        let columns: Vec<_> = columns.map(|(n, column)| format!("{alias}.{} AS k{n}", quote_ident(column))).collect();
        columns.join(", ")
    }

    /// `ORDER BY` of a claim: by due time, then key.
    pub(super) fn order(&self) -> String {
        let keys: Vec<_> = self.config.key.iter().map(|column| format!("t.{}", quote_ident(column))).collect();
        format!("{}, {}", self.due("t"), keys.join(", "))
    }

    /// The index that a look walks over: of rows that are still to be sent, in the order in which they are due.
    #[must_use]
    pub fn index_sql(&self) -> String {
        let keys: Vec<_> = self.config.key.iter().map(|column| quote_ident(column)).collect();
        let mut condition = match &self.mark {
            Mark::Elsewhere => Vec::new(),
            _ => vec![self.unsent("t", "").replacen("t.", "", 1)],
        };
        let constants = self.config.filter.iter();
        condition
            .extend(constants.map(|(column, value)| format!("{} = {}", quote_ident(column), quote_literal(value))));
        let filter = if condition.is_empty() { String::new() } else { format!(" WHERE {}", condition.join(" AND ")) };
        format!(
            "CREATE INDEX CONCURRENTLY ON {} ({}, {}){filter};",
            self.table(),
            quote_ident(&self.config.due),
            keys.join(", ")
        )
    }
}
