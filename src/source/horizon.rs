//! The horizon: the newest point of a table that is safe to read now.
//!
//! Pure; SQL only feeds it. A row's `created_at` is set before the row becomes visible, so a cursor that has passed T
//! would skip, for ever, a row with `created_at < T` that commits later. The horizon stays below every such row.
//!
//! **First-seen rule.** Scan k reads the clock, `T_k`, and then looks at who may write: the holders. A holder present in
//! scan k that was last absent in scan j began after scan j looked, so its clock reads come after `T_j`; they also come
//! after its transaction's start, where that can be read. The later of the two is its bound. A holder that was there in
//! the watcher's first scan and whose start cannot be read may have written anything: it holds everything back.
//!
//! `horizon_k = min(T_k, bounds) − latency window − one unit of the column's precision`
//!
//! **Proof**, for a clock that never steps back by more than the window. Let W write a row with
//! `created_at = c < horizon_k`. If W is a holder in scan k, c was read after W's bound ≥ `horizon_k`: contradiction. If
//! it is not, either W has ended, and a commit is made visible before locks are released, so every later snapshot sees
//! the row; or W begins after the scan looked, and then c > `T_k`. ∎
//!
//! A horizon therefore stays true for every later snapshot. The rows must be read with a snapshot taken after the
//! scan's answer is here.
//!
//! A clock seen to step back by more than the window ends the proof for whoever is writing at that moment: those
//! holders count as unknown until they are gone.

use std::collections::HashMap;
use std::time::Duration;

use super::Rule;
use crate::position::Timestamp;

/// Somebody who may be writing, at the moment of a scan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The virtual transaction id: the same from the first lock to the end, also when it is prepared.
    pub transaction: String,
    /// The server process; none for a prepared transaction.
    pub pid: Option<i32>,
    /// What the session calls itself, where that can be read.
    pub application: Option<String>,
    /// When its transaction began, where that can be read. Never skipped when unknown: unknown holds back.
    pub started: Option<Timestamp>,
}

/// One look at the writers of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    /// `T_k`: the database's clock, read before the look.
    pub at: Timestamp,
    /// How much time has passed since the answer of the scan before, at least, by a clock that never steps.
    pub elapsed: Duration,
    /// Who may be writing.
    pub holders: Vec<Holder>,
}

/// What is subtracted from the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Margin {
    /// Room for a clock that steps back.
    pub window: Duration,
    /// One unit of the column's precision: `timestamptz(3)` rounds up by as much as half of it.
    pub precision: Duration,
}

/// What a scan says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Rows with `created_at` below this are safe to read.
    pub at: Timestamp,
    /// `T_k` of the scan.
    pub observed_at: Timestamp,
    /// Who keeps it below `T_k`, oldest bound first.
    pub held_by: Vec<Held>,
    /// A holder has appeared since the last scan and nothing better than that scan bounds it: one more scan, soon,
    /// brings the horizon up.
    pub rescan: bool,
    /// By how much the clock has stepped back since the scan before, when that is more than the window.
    pub stepped_back: Option<Duration>,
}

/// A holder that keeps the horizon back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who.
    pub holder: Holder,
    /// The earliest clock reading it may have made; none when nothing is known.
    pub bound: Option<Timestamp>,
}

impl Held {
    /// Why it holds, in a word for metrics and `status`.
    #[must_use]
    pub fn reason(&self, rule: Rule) -> &'static str {
        match (self.holder.pid, self.bound) {
            (None, _) => "prepared_transaction",
            (Some(_), None) => "unknown_start",
            (Some(_), Some(_)) if rule == Rule::Transactions => "open_transaction",
            (Some(_), Some(_)) => "writer",
        }
    }
}

/// What a watcher remembers of its scans of one table. It dies with its connection: virtual transaction ids are used
/// again after a restart of the server.
#[derive(Debug, Default)]
pub struct History {
    last: Option<Timestamp>,
    bounds: HashMap<String, Bound>,
}

/// What is known of a holder's clock readings.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// They come after this instant; nothing is known yet when absent, and a start read later still helps.
    After(Option<Timestamp>),
    /// The clock stepped back while it may have been writing: neither absence nor start says anything any more.
    Unknowable,
}

impl History {
    /// Takes a scan in and says how far is safe now. Scans must be given in the order in which they were made.
    pub fn observe(&mut self, scan: Scan, margin: Margin) -> Horizon {
        let stepped_back =
            self.last.map(|last| last.plus(scan.elapsed).since(scan.at)).filter(|step| *step > margin.window);
        let previous = self.last;
        let known = std::mem::take(&mut self.bounds);
        let mut rescan = false;
        let mut held_by = Vec::with_capacity(scan.holders.len());
        for holder in scan.holders {
            // Absence and start are both true lower bounds, so the later one is, too; `Option` orders unknown first.
            let bound = match known.get(&holder.transaction) {
                _ if stepped_back.is_some() => Bound::Unknowable,
                Some(Bound::Unknowable) => Bound::Unknowable,
                Some(Bound::After(at)) => Bound::After((*at).max(holder.started)),
                None => {
                    rescan |= previous >= holder.started;
                    Bound::After(previous.max(holder.started))
                }
            };
            self.bounds.insert(holder.transaction.clone(), bound);
            let bound = match bound {
                Bound::After(at) => at,
                Bound::Unknowable => None,
            };
            held_by.push(Held { holder, bound });
        }
        self.last = Some(scan.at);
        held_by.sort_by_key(|held| held.bound);
        let bounds = held_by.iter().map(|held| held.bound.unwrap_or(Timestamp::NEG_INFINITY));
        let lowest = bounds.fold(scan.at, Timestamp::min);
        let at = lowest.minus(margin.window).minus(margin.precision);
        Horizon { at, observed_at: scan.at, held_by, rescan, stepped_back }
    }
}

#[cfg(test)]
#[path = "horizon_tests.rs"]
mod tests;
