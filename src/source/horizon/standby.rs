//! What standbys have confirmed: with `durability = "standby"` a row is read only when its commit is on the disk of so many of them,
//! so that nothing is published that a failover to one of them undoes.
//!
//! **Proof.** A scan's horizon says that every transaction that writes a row below it has ended, or will never make it visible. PostgreSQL
//! inserts a commit's record into the log before the commit becomes visible and its locks are released. So a position of the log that is read
//! after the scan lies behind the commits of all rows below the scan's horizon, and once a standby has flushed the log up to there, it
//! has them. ∎ The horizon of an earlier scan stays true, so the newest one whose position is confirmed is used.

use std::collections::VecDeque;

use super::{Held, Holder, Horizon, Why};
use crate::position::Timestamp;

/// So many unconfirmed scans are remembered one by one; beyond that the newest two become one.
const REMEMBERED: usize = 10_000;

/// What a scan read of the log, after everything else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wal {
    /// The position at which the next record begins.
    pub inserted: u64,
    /// The size of a page of the log.
    pub page: u64,
    /// The size of a segment of the log.
    pub segment: u64,
    /// The standbys that stream from this server.
    pub standbys: Vec<Standby>,
}

/// A standby that streams from this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standby {
    /// The process that serves it.
    pub pid: i32,
    /// What it calls itself.
    pub application: Option<String>,
    /// Up to where it has flushed the log; none where that cannot be read, or is not known yet.
    pub flushed: Option<u64>,
}

impl Wal {
    /// The end of the last record. At the begin of a page the next record begins behind the page's header, which is not flushed before
    /// there is a record: no standby would ever confirm that.
    fn end(&self) -> u64 {
        const SHORT_HEADER: u64 = 24;
        const LONG_HEADER: u64 = 40;
        let first = self.segment > 0 && self.inserted % self.segment < self.page;
        let header = if first { LONG_HEADER } else { SHORT_HEADER };
        if self.page > 0 && self.inserted % self.page == header { self.inserted - header } else { self.inserted }
    }

    /// Up to where at least so many standbys have flushed.
    fn confirmed(&self, standbys: usize) -> Option<u64> {
        let mut flushed: Vec<u64> = self.standbys.iter().filter_map(|standby| standby.flushed).collect();
        flushed.sort_unstable_by(|one, other| other.cmp(one));
        flushed.get(standbys.checked_sub(1)?).copied()
    }
}

/// What is remembered of earlier scans.
#[derive(Debug, Default)]
pub(in crate::source) struct Confirmed {
    /// Up to where the log must be flushed for which horizon, oldest first.
    waiting: VecDeque<(u64, Timestamp)>,
    /// The newest horizon that was confirmed.
    at: Option<Timestamp>,
    /// The first scan since nothing has been confirmed at all.
    unconfirmed_since: Option<Timestamp>,
}

impl Confirmed {
    /// Lowers a horizon to what so many standbys have confirmed, and names those that it waits for.
    pub(in crate::source) fn hold(&mut self, horizon: &mut Horizon, wal: &Wal, standbys: usize) {
        if horizon.stepped_back.is_some() {
            // What was true of rows below them is not true of rows that are stamped since.
            *self = Self::default();
        }
        if self.waiting.len() >= REMEMBERED
            && let Some((_, at)) = self.waiting.pop_back()
        {
            self.waiting.push_back((wal.end(), at.max(horizon.at)));
        } else {
            self.waiting.push_back((wal.end(), horizon.at));
        }
        let confirmed = wal.confirmed(standbys).unwrap_or(0);
        while let Some((end, at)) = self.waiting.front().copied().filter(|(end, _)| *end <= confirmed) {
            debug_assert!(end <= wal.end());
            self.at = Some(self.at.map_or(at, |before| before.max(at)));
            self.waiting.pop_front();
        }
        let at = self.at.map_or(Timestamp::NEG_INFINITY, |at| at.min(horizon.at));
        if at < horizon.at {
            let unconfirmed = self.at.map(|_| at);
            horizon.held_by.splice(0..0, awaited(wal, standbys, unconfirmed));
            let since = *self.unconfirmed_since.get_or_insert(horizon.observed_at);
            horizon.held_since = horizon.held_since.min(self.at.unwrap_or(since));
            horizon.at = at;
        }
        if self.at.is_some() {
            self.unconfirmed_since = None;
        }
    }
}

/// The slowest of the standbys that have to confirm; one without a name where too few are connected.
fn awaited(wal: &Wal, standbys: usize, since: Option<Timestamp>) -> Option<Held> {
    let mut connected: Vec<&Standby> = wal.standbys.iter().collect();
    connected.sort_by_key(|standby| std::cmp::Reverse(standby.flushed));
    let slowest = standbys.checked_sub(1).and_then(|place| connected.get(place));
    let holder = Holder {
        transaction: slowest.map_or_else(|| "standby".to_owned(), |standby| format!("standby {}", standby.pid)),
        pid: slowest.map(|standby| standby.pid),
        application: slowest.and_then(|standby| standby.application.clone()),
        started: None,
    };
    let why = if slowest.is_some() { Why::Standby } else { Why::NoStandby };
    Some(Held { holder, bound: since, why })
}
