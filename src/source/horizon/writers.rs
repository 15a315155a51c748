//! The rule `writers`: transactions that hold a lock on the table, for a `created_at` that is read from the clock.

use super::{Held, History, Holder, KnownTransaction, Moment, StampBound, Why};
use crate::position::Timestamp;

/// A transaction with a lock on the table or its relatives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// The virtual transaction id.
    pub transaction: String,
    /// The server process; none for a prepared transaction.
    pub pid: Option<i32>,
}

/// What the activity of a session was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The server process.
    pub pid: i32,
    /// What the session calls itself, where that can be read.
    pub application: Option<String>,
    /// When the transaction that it ran then began, where that can be read.
    pub started: Option<Timestamp>,
}

impl History {
    pub(super) fn writers(&mut self, now: Moment, starts: &[Start], writers: Vec<Writer>) -> (Vec<Held>, bool) {
        let mut known = std::mem::take(&mut self.transactions);
        // They were read before the clock.
        for start in starts.iter().filter_map(|start| start.started).filter(|started| *started > now.at) {
            self.clock.distrust(start);
        }
        let mut rescan = false;
        let mut held_by = Vec::with_capacity(writers.len());
        for Writer { transaction, pid } in writers {
            let before = known.remove(&transaction);
            let ran = before.as_ref().is_some_and(|before| before.pid == pid);
            let mut current = before.unwrap_or_else(|| {
                rescan = true;
                first_seen(&transaction, pid, now.previous)
            });
            // The process that runs it after activity was read ran it, or an earlier one, when that was read. A prepared
            // transaction has no process.
            if let Some(start) = starts.iter().find(|start| Some(start.pid) == pid) {
                current.application.clone_from(&start.application);
                current.started = start.started.filter(|_| ran);
                let trusted = start.started.filter(|started| self.clock.trusts(*started));
                if let StampBound::After(at) = &mut current.bound {
                    // Absence and start are both true lower bounds, so the later one is, too; unknown sorts first.
                    *at = (*at).max(trusted);
                }
            }
            if now.stepped {
                current.bound = StampBound::Unknowable;
            }
            current.pid = pid;
            held_by.push(current.held(&transaction));
            self.transactions.insert(transaction, current);
        }
        (held_by, rescan)
    }
}

/// A transaction that the scan before did not see began to write after that scan.
pub(super) fn first_seen(transaction: &str, pid: Option<i32>, previous: Option<Timestamp>) -> KnownTransaction {
    // Before PostgreSQL 14.1 a transaction gets this name when it is prepared, and had another one when it was last seen.
    let renamed = transaction.starts_with("-1/");
    let bound = StampBound::After(previous.filter(|_| !renamed));
    KnownTransaction { pid, bound, started: None, application: None }
}

impl KnownTransaction {
    pub(super) fn held(&self, transaction: &str) -> Held {
        let holder = Holder {
            transaction: transaction.to_owned(),
            pid: self.pid,
            application: self.application.clone(),
            started: self.started,
        };
        Held { holder, bound: self.bound.instant(), why: Why::Transaction }
    }
}
