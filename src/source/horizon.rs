//! The horizon: the newest point of a table that is safe to read now.
//!
//! Pure; SQL only feeds it. A row's `created_at` is set before the row becomes visible, so a cursor that has passed T
//! would skip a row with `created_at < T` that commits later. The horizon stays below every such row:
//!
//! `horizon_k = min(T_k, bounds) − latency window − one unit of the column's precision`
//!
//! `T_k` is the clock of scan k, read before anything else of it. A bound is an instant before which a transaction, or a
//! session, cannot stamp a row that is still to become visible. What bounds them differs by rule:
//!
//! - **`writers`** (`created_at` is read from the clock after the table is locked): a transaction that holds a lock in
//!   scan k and held none in scan j stamps after `T_j`. It also stamps after a start that its process reported before the
//!   locks were read: that process ran this transaction then, or an earlier one. A prepared one has no process.
//! - **`transactions`** (`created_at` is `now()`, the instant at which the client's message came): see
//!   `src/source/horizon/sessions.rs`.
//!
//! **Proof**, for a clock that never steps back by more than the window. Let W write a row with
//! `created_at = c < horizon_k`. If the scan saw W, or its session in a message, c is not before the bound, and the bound
//! is not below `horizon_k`: contradiction. If it did not, either W has ended, and a commit becomes visible before locks
//! are released, so every later snapshot sees the row; or W begins after the scan read its session or lock, and then
//! `c ≥ T_k`. ∎
//!
//! Where a configuration has `max_hold`, transactions that hold for longer are left out, and named: see
//! `src/source/horizon/max_hold.rs`.
//!
//! A horizon therefore stays true for every later snapshot. The rows must be read with a snapshot taken after the
//! scan's result is here.
//!
//! A clock seen to step back by more than the window ends the proof for the transactions of that moment: what is only
//! remembered of them counts as unknown until they are gone.

use std::collections::HashMap;
use std::time::Duration;

use super::{Rule, TableName};
use crate::position::Timestamp;
use crate::visible::visible;

mod clock;
mod max_hold;
mod sessions;
mod standby;
mod writers;

use clock::Clock;
pub use sessions::{Activity, Running, Session};
pub(in crate::source) use standby::Confirmed;
pub use standby::{Standby, Wal};
pub use writers::{Start, Writer};

/// A transaction or session that may write rows below the clock, at the moment of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The virtual transaction id: the same from the first lock to the end, also when it is prepared. A session between
    /// two transactions of one message has none, and is named `pid N`.
    pub transaction: String,
    /// The server process; none for a prepared transaction.
    pub pid: Option<i32>,
    /// What the session calls itself, where that can be read.
    pub application: Option<String>,
    /// When its transaction began, where that can be read.
    pub started: Option<Timestamp>,
}

impl Holder {
    /// A session is one holder through all its transactions; a transaction goes on without one when it is prepared.
    fn names(&self) -> impl Iterator<Item = String> + use<> {
        [Some(self.transaction.clone()), self.pid.map(|pid| format!("pid {pid}"))].into_iter().flatten()
    }
}

/// One scan of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// `T_k`: the database's clock, read before what follows.
    pub at: Timestamp,
    /// How much time has passed since the result of the scan before, at least, by a clock that never steps.
    pub elapsed: Duration,
    /// What was read.
    pub found: ScanResult,
}

/// What a scan read, by rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScanResult {
    /// Rule `window`: nothing.
    Nothing,
    /// Rule `writers`.
    Writers {
        /// Starts of transactions, read between the locks of the scan before and the clock of this one.
        starts: Vec<Start>,
        /// The transactions with a lock on the table or its relatives, read after the clock.
        writers: Vec<Writer>,
    },
    /// Rule `transactions`.
    Sessions {
        /// The sessions that may write, read after the clock.
        sessions: Vec<Session>,
        /// Open and prepared transactions, read after the sessions.
        running: Vec<Running>,
    },
}

/// What is subtracted from the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Margin {
    /// Room for a clock that steps back.
    pub window: Duration,
    /// One unit of the column's precision: `timestamptz(3)` rounds up by as much as half of it.
    pub precision: Duration,
}

/// The result of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Rows with `created_at` below this are safe to read.
    pub at: Timestamp,
    /// `T_k` of the scan.
    pub observed_at: Timestamp,
    /// What keeps it below `T_k`, oldest bound first.
    pub held_by: Vec<Held>,
    /// Transactions that are not waited for any longer (`max_hold`): what they commit may lie below the horizon, and comes late.
    pub passed_over: Vec<Held>,
    /// Since when it is held, at least: the lowest bound, or the first scan with a holder of which no bound is known.
    pub held_since: Timestamp,
    /// A holder has appeared since the last scan and nothing better than that scan bounds it: one more scan, soon,
    /// brings the horizon up.
    pub rescan: bool,
    /// By how much the clock has stepped back since the scans before, when that is more than the window.
    pub stepped_back: Option<Duration>,
}

/// A holder that keeps the horizon back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who.
    pub holder: Holder,
    /// The earliest stamp that it may still make visible; none when nothing is known.
    pub bound: Option<Timestamp>,
    /// What is waited for.
    pub why: Why,
}

/// What a holder is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    /// The end of a transaction.
    #[default]
    Transaction,
    /// A standby that has not flushed the log as far as rows are safe to read.
    Standby,
    /// A standby that is not connected, or of which this role may not see how far it is.
    NoStandby,
}

impl Held {
    /// Why it holds, in a word for metrics and `status`.
    #[must_use]
    pub fn reason(&self, rule: Rule) -> &'static str {
        match (self.why, self.holder.pid, self.bound) {
            (Why::Standby, _, _) => "standby",
            (Why::NoStandby, _, _) => "no_standby",
            (Why::Transaction, None, _) => "prepared_transaction",
            (Why::Transaction, Some(_), None) => "unknown_start",
            (Why::Transaction, Some(_), Some(_)) if rule == Rule::Transactions => "open_transaction",
            (Why::Transaction, Some(_), Some(_)) => "writer",
        }
    }

    /// What is waited for, for people: a sentence without its full stop. A standby's process writes nothing in the table.
    #[must_use]
    pub fn sentence(&self, rule: Rule, table: &TableName) -> String {
        let writes = if rule == Rule::Transactions { "may be writing" } else { "is writing" };
        match (self.why, self.holder.pid) {
            (Why::Standby, pid) => {
                let name = self.holder.application.as_deref().filter(|name| !name.is_empty());
                let name = name.map_or_else(|| "without a name".to_owned(), visible);
                let process = pid.map_or_else(String::new, |pid| format!(" (pid {pid})"));
                format!("standby {name}{process} has not yet written the commits of {table} to its disk")
            }
            (Why::NoStandby, _) => {
                "too few standbys are connected, or this role may not see how far they are".to_owned()
            }
            (Why::Transaction, Some(pid)) => format!("pid {pid} {writes} {table}"),
            (Why::Transaction, None) => format!("a prepared transaction {writes} {table}"),
        }
    }
}

/// What is known of a holder's stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StampBound {
    /// None is before this instant; nothing is known yet when absent, and a start read later still helps.
    After(Option<Timestamp>),
    /// The clock stepped back while it may have been writing: what was read before means nothing any more.
    Unknowable,
}

impl StampBound {
    fn instant(self) -> Option<Timestamp> {
        match self {
            Self::After(at) => at,
            Self::Unknowable => None,
        }
    }
}

/// What is remembered of a transaction from scan to scan.
#[derive(Clone, Debug)]
struct KnownTransaction {
    pid: Option<i32>,
    bound: StampBound,
    started: Option<Timestamp>,
    application: Option<String>,
}

/// What a watcher remembers of its scans of one table. It dies with its connection: virtual transaction ids are used
/// again after a restart of the server.
#[derive(Debug, Default)]
pub struct History {
    clock: Clock,
    transactions: HashMap<String, KnownTransaction>,
    /// Sessions whose activity is not reported, by process.
    silent: HashMap<i32, StampBound>,
    /// The lowest bound of the last scan that a transaction can have which was not in its locks.
    lowest: Option<Timestamp>,
    /// The first scan that saw a holder of which no bound is known, by transaction and by process.
    unknown: HashMap<String, Timestamp>,
    /// The first scan that saw each holder, where `max_hold` ends the wait for it.
    seen: HashMap<String, Timestamp>,
}

/// What a scan has to be read against.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Timestamp,
    previous: Option<Timestamp>,
    stepped: bool,
}

impl History {
    /// Takes a scan in and returns how far is safe now. Scans must be given in the order in which they were made.
    pub fn observe(&mut self, scan: Scan, margin: Margin) -> Horizon {
        let previous = self.clock.last();
        let stepped_back = self.clock.observe(scan.at, scan.elapsed, margin.window);
        let now = Moment { at: scan.at, previous, stepped: stepped_back.is_some() };
        let (mut held_by, rescan) = match scan.found {
            ScanResult::Nothing => (Vec::new(), false),
            ScanResult::Writers { starts, writers } => self.writers(now, &starts, writers),
            ScanResult::Sessions { sessions, running } => self.sessions(now, sessions, running),
        };
        held_by.sort_by_key(|held| held.bound);
        let at = lowest(&held_by, scan.at).minus(margin.window).minus(margin.precision);
        let held_since = self.held_since(now, &held_by);
        Horizon { at, observed_at: scan.at, held_by, passed_over: Vec::new(), held_since, rescan, stepped_back }
    }

    /// A holder without a bound has been there since the first scan that saw it, at least, whatever it has been before.
    fn held_since(&mut self, now: Moment, held_by: &[Held]) -> Timestamp {
        // An instant from before a step cannot be compared with those since.
        let known = std::mem::take(&mut self.unknown);
        let known = if now.stepped { HashMap::new() } else { known };
        let mut since = now.at;
        for held in held_by {
            since = since.min(held.bound.unwrap_or_else(|| {
                let first = held.holder.names().filter_map(|name| known.get(&name)).min().copied().unwrap_or(now.at);
                self.unknown.extend(held.holder.names().map(|name| (name, first)));
                first
            }));
        }
        since
    }
}

fn lowest<'a>(held_by: impl IntoIterator<Item = &'a Held>, clock: Timestamp) -> Timestamp {
    let bounds = held_by.into_iter().map(|held| held.bound.unwrap_or(Timestamp::NEG_INFINITY));
    bounds.fold(clock, Timestamp::min)
}

#[cfg(test)]
#[path = "horizon_tests.rs"]
mod tests;
