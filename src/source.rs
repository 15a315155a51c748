//! Which rows are safe to read, and in what order.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::database::quote_ident;

pub mod action_query;
mod away;
pub mod cast;
pub mod certainty;
pub mod enums;
pub mod family;
pub mod fetch;
mod filter;
pub mod finding;
pub mod guard;
pub mod horizon;
pub mod judge;
pub mod lane;
mod length;
pub mod order;
pub mod pending;
pub mod range;
pub mod requests;
pub mod schedule;
pub mod shape;
pub mod shard;
pub mod span;
pub mod sweep;
pub mod table;
pub mod watcher;

/// `[relay.source]` of the configuration: which rows, and in what order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Config {
    /// Every row, in the order of its creation.
    Stream(Stream),
    /// Rows that are due and not yet sent.
    Pending(Pending),
    /// Requests of the ledger.
    Requests(Requests),
    /// Actions of schedules.
    Schedule(Schedules),
}

impl Config {
    /// The table or view that is read.
    #[must_use]
    pub const fn table(&self) -> &TableName {
        match self {
            Self::Stream(stream) => &stream.table,
            Self::Pending(pending) => &pending.table,
            Self::Requests(requests) => &requests.table,
            Self::Schedule(schedules) => &schedules.table,
        }
    }
}

/// `[relay.source.stream]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// The table to read.
    pub table: TableName,
    /// The column that identifies a row and breaks ties of `created_at`.
    pub id: String,
    /// The column that orders the rows.
    pub created_at: String,
    /// Which writers hold the horizon back.
    pub horizon: RuleChoice,
    /// The zone of a `timestamp` column, of fixed offset.
    pub time_zone: Option<String>,
    /// Room for a clock that steps back; when absent, 5 ms under the rule `writers` and 100 ms under `transactions`.
    pub latency_window: Option<Duration>,
    /// On how many standbys a row's commit must be before it is read; 0 asks for none.
    pub standbys: u8,
    /// How long one transaction may hold the horizon back; without it, until its end.
    pub max_hold: Option<Duration>,
    /// What columns of a row must be for it to be delivered.
    pub filter: BTreeMap<String, Condition>,
}

pub use filter::Condition;

pub use pending::Pending;
pub use requests::Requests;
pub use schedule::Schedules;

/// A table by schema and name, unquoted.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName {
    /// The schema, as in the catalog.
    pub schema: String,
    /// The table, as in the catalog.
    pub name: String,
}

/// `horizon` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuleChoice {
    /// From the column's default.
    Auto,
    /// The table's writers.
    Writers,
    /// Every open transaction.
    Transactions,
    /// The latency window alone: loses rows.
    Window,
}

/// Which writers hold the horizon back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The table's writers.
    Writers,
    /// Every open transaction of the database.
    Transactions,
    /// Nobody: the latency window alone. Loses rows.
    Window,
}

impl Rule {
    /// The word used in the configuration and in `status`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Writers => "writers",
            Self::Transactions => "transactions",
            Self::Window => "window",
        }
    }
}

impl TableName {
    /// As SQL: `"schema"."name"`.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("{}.{}", quote_ident(&self.schema), quote_ident(&self.name))
    }
}

impl std::fmt::Display for TableName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.schema, self.name)
    }
}
