//! The rule `transactions`: sessions, for a `created_at` that is `now()`.
//!
//! `now()` is the instant at which the client's message came, in every transaction of that message. So a transaction that
//! the scan before did not see may stamp before that scan, and its own absence bounds nothing. What bounds it is what its
//! session reports: the start of the open transaction, which is the stamp itself, and the instant of the message that is
//! in progress. An idle session stamps after the message that it has yet to get.
//!
//! Sessions are read before transactions. So a transaction belongs to what its session reported, or to a later message, which came after
//! the scan's clock was read; the lower of the two is remembered for the time when it is prepared and has no session. A prepared transaction that was never
//! seen running was run by some session of the scan before: no bound is below the lowest of that scan.
//!
//! A session whose transaction has no reported start (a walsender's; one during which `track_activities` was turned on) says
//! nothing about the message that began it. Its transaction is bounded like one that no scan saw running.
//!
//! A session that is being opened has a transaction and no report. It writes nothing before its first message, unless a login
//! trigger does.
//!
//! A session that may not be read is bounded as under `writers`, by the last scan without its transaction. That is unsound
//! for messages of several transactions, and `check` reports such a table as unproven.

use std::collections::HashMap;

use super::writers::first_seen;
use super::{Held, History, KnownTransaction, Moment, StampBound, lowest};
use crate::position::Timestamp;

/// A session of the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The server process.
    pub pid: i32,
    /// What the session calls itself, where that can be read.
    pub application: Option<String>,
    /// What it does.
    pub activity: Activity,
}

/// What a session reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// What it does can be read; neither is present when it is idle.
    Reported {
        /// When its transaction began.
        transaction: Option<Timestamp>,
        /// When the message in progress came; of a session that is being opened, when it began.
        message: Option<Timestamp>,
    },
    /// It is in a transaction, and does not report when that began.
    Unreported,
    /// It reports nothing: `track_activities` is off.
    Silent,
    /// This role may not read it.
    Hidden,
}

/// An open or prepared transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The virtual transaction id.
    pub transaction: String,
    /// The server process; none for a prepared transaction.
    pub pid: Option<i32>,
    /// When its session began, where that can be read: not while it is being opened.
    pub session_began: Option<Timestamp>,
    /// The database has login triggers: their `now()` is the instant at which the session began.
    pub login_trigger: bool,
}

impl History {
    pub(super) fn sessions(&mut self, now: Moment, read: Vec<Session>, running: Vec<Running>) -> (Vec<Held>, bool) {
        let known = std::mem::take(&mut self.transactions);
        let mut sessions = self.bounded(now, read);
        let (mut held_by, mut prepared, mut rescan) = (Vec::new(), Vec::new(), false);
        for Running { transaction, pid, session_began, login_trigger } in running {
            let seen = known.contains_key(&transaction);
            let before = known.get(&transaction).filter(|_| !now.stepped).cloned();
            let session = pid.and_then(|pid| sessions.get_mut(&pid));
            let current = match (pid, session, session_began) {
                (None, ..) => {
                    let current = KnownTransaction { pid, ..before.unwrap_or_else(|| self.never_seen_running(now)) };
                    prepared.push(current.held(&transaction));
                    current
                }
                (_, Some(Bounded { bound: Reported::At(bound), session, transaction: name }), _)
                    if session.reports_start() =>
                {
                    // It holds by its session, below.
                    *name = Some(transaction.clone());
                    // One that the scan before did not see may be of a later message than the session reported. That came after this scan
                    // read the clock, and below the report where the clock has stepped back since.
                    let later = StampBound::After(Some(now.at));
                    session.known(if seen { *bound } else { bound.lower(later) })
                }
                // What an idle session runs now came with a later message, unless it ran before.
                (_, Some(Bounded { bound: Reported::Idle, session, .. }), _) if !seen => {
                    session.known(now.exactly(now.at))
                }
                // Its start is not reported: it came with the message in progress, or with any message before.
                (_, Some(Bounded { bound, session, transaction: name }), _) if !matches!(bound, Reported::Hidden) => {
                    *name = Some(transaction.clone());
                    rescan |= before.is_none();
                    let unseen = before.unwrap_or_else(|| self.never_seen_running(now)).bound;
                    let lower = match *bound {
                        Reported::At(bound) => bound.lower(unseen),
                        Reported::Idle | Reported::Unreported | Reported::Hidden => unseen,
                    };
                    *bound = Reported::At(lower);
                    session.known(lower)
                }
                // It is being opened, for as long as its client takes to prove who it is: its first message is still to come.
                (Some(_), None, None) if !login_trigger => KnownTransaction::at(pid, now.exactly(now.at)),
                // The session has begun since sessions were read: its first message came later than that, and after this scan read the
                // clock, which may have stepped back since the session began.
                (_, None, Some(began)) => {
                    held(&mut held_by, &transaction, KnownTransaction::at(pid, now.exactly(began.min(now.at))))
                }
                (_, session, _) => {
                    let mut current = before.unwrap_or_else(|| {
                        rescan = true;
                        let seen = first_seen(&transaction, pid, now.previous);
                        if now.stepped { KnownTransaction::at(pid, StampBound::Unknowable) } else { seen }
                    });
                    current.application = session.and_then(|hidden| hidden.session.application.clone());
                    held(&mut held_by, &transaction, current)
                }
            };
            self.transactions.insert(transaction, current);
        }
        held_by.extend(sessions.into_values().filter_map(Bounded::held));
        self.lowest = Some(lowest(&held_by, now.at)).filter(|at| at.is_finite());
        held_by.append(&mut prepared);
        (held_by, rescan)
    }

    fn bounded(&mut self, now: Moment, read: Vec<Session>) -> HashMap<i32, Bounded> {
        let silent = std::mem::take(&mut self.silent);
        let bounded = read.into_iter().map(|session| {
            let bound = match session.activity {
                Activity::Hidden => Reported::Hidden,
                Activity::Unreported => Reported::Unreported,
                // Stamps themselves, which no step of the clock makes wrong.
                Activity::Reported { transaction, message } => match (transaction, message) {
                    (None, None) => Reported::Idle,
                    (Some(at), None) | (None, Some(at)) => Reported::At(StampBound::After(Some(at))),
                    (Some(began), Some(came)) => Reported::At(StampBound::After(Some(began.min(came)))),
                },
                // It runs, perhaps, what some session ran in the scan before.
                Activity::Silent if now.stepped => Reported::At(StampBound::Unknowable),
                Activity::Silent => {
                    Reported::At(silent.get(&session.pid).copied().unwrap_or(StampBound::After(self.lowest)))
                }
            };
            if let (Activity::Silent, Reported::At(bound)) = (session.activity, bound) {
                self.silent.insert(session.pid, bound);
            }
            (session.pid, Bounded { session, bound, transaction: None })
        });
        bounded.collect()
    }

    /// A prepared transaction that no scan saw running: a session of the scan before ran it, or one that began later.
    fn never_seen_running(&self, now: Moment) -> KnownTransaction {
        KnownTransaction::at(None, if now.stepped { StampBound::Unknowable } else { StampBound::After(self.lowest) })
    }
}

/// What a session's report bounds.
#[derive(Clone, Copy, Debug)]
enum Reported {
    Idle,
    Unreported,
    At(StampBound),
    Hidden,
}

#[derive(Debug)]
struct Bounded {
    session: Session,
    bound: Reported,
    /// The transaction that it ran when transactions were read.
    transaction: Option<String>,
}

impl Bounded {
    fn held(self) -> Option<Held> {
        let Reported::At(bound) = self.bound else { return None };
        let name = self.transaction.unwrap_or_else(|| format!("pid {}", self.session.pid));
        Some(self.session.known(bound).held(&name))
    }
}

impl StampBound {
    /// The one that holds back more; unknown sorts first.
    fn lower(self, other: Self) -> Self {
        match (self, other) {
            (Self::After(one), Self::After(other)) => Self::After(one.min(other)),
            (Self::Unknowable, _) | (_, Self::Unknowable) => Self::Unknowable,
        }
    }
}

impl Session {
    fn reports_start(&self) -> bool {
        matches!(self.activity, Activity::Reported { transaction: Some(_), .. })
    }

    fn known(&self, bound: StampBound) -> KnownTransaction {
        let started = match self.activity {
            Activity::Reported { transaction, .. } => transaction,
            Activity::Unreported | Activity::Silent | Activity::Hidden => None,
        };
        KnownTransaction { pid: Some(self.pid), bound, started, application: self.application.clone() }
    }
}

impl KnownTransaction {
    fn at(pid: Option<i32>, bound: StampBound) -> Self {
        Self { pid, bound, started: None, application: None }
    }
}

impl Moment {
    /// An instant that is not a stamp, but was read before one: a step of the clock ends that.
    fn exactly(self, at: Timestamp) -> StampBound {
        if self.stepped { StampBound::Unknowable } else { StampBound::After(Some(at)) }
    }
}

fn held(held_by: &mut Vec<Held>, transaction: &str, current: KnownTransaction) -> KnownTransaction {
    held_by.push(current.held(transaction));
    current
}
