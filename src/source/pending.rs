//! Due work: rows that are due and not yet sent, each on its own.
//!
//! Promise: a row is claimed in `outbox.claim` before it is sent, by one replica at a time, and no lock on the
//! application's row outlives the transaction of an instant that claims or marks it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::TableName;
use super::lane::Lanes;

mod bounded;
mod casts;
mod catalogue;
mod due;
mod judge;
mod key;
mod labels;
mod lanes;
mod marks;
mod names;
mod nullable;
mod redrive;
mod sql;

pub use bounded::Most;
pub use catalogue::{PendingTable, inspect};
pub use due::Due;
pub use judge::judge;
pub use key::Key;
pub use names::{Names, Naming, Renamed};
pub use sql::{CAP, Taking};

/// `[relay.source.pending]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pending {
    /// The table or view that is read.
    pub table: TableName,
    /// The columns that together name a row: 1 to 4.
    pub key: Vec<String>,
    /// The column that says when a row is due: `timestamptz`, `timestamp` or `date`.
    pub due: String,
    /// How long after that it is due.
    pub due_after: Duration,
    /// The column that says whether it was sent, a boolean or a timestamp; none keeps the marks in `outbox.sent`.
    pub sent: Option<String>,
    /// Columns and the constants that they must equal, as PostgreSQL's text.
    pub filter: BTreeMap<String, String>,
    /// The zone of a `timestamp` or a `date`.
    pub time_zone: Option<String>,
    /// The most rows that are claimed at once.
    pub limit: usize,
    /// The most rows that a replica sends at the same time, where the receiver answers one by one.
    pub in_flight: usize,
    /// Which rows are sent in order, one at a time; none where each is on its own.
    pub lanes: Option<Lanes>,
}
