//! A relay in the world: scans, reads what is safe, and advances; right, or with one fault.

use std::collections::BTreeSet;

use super::variant::{FirstRule, Variant};
use super::world::{Client, LEAVES, Transaction, World};
use super::*;

#[path = "readings.rs"]
mod readings;

use readings::reported;

/// How the relay works, in ticks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// When it connects.
    pub(super) start: i64,
    /// From one turn to the next.
    pub(super) every: i64,
    /// From one client to the next within one reading: none is made in an instant.
    pub(super) spread: i64,
    pub(super) window: i64,
}

/// A row as it is written.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// When its transaction's message came.
    message: i64,
    stamp: Timestamp,
    /// When the stamp was read.
    stamped: i64,
    visible: i64,
    leaf: usize,
}

/// What a scan has read of the clock, and when.
#[derive(Clone, Copy, Debug)]
struct Scanned {
    clock: (i64, Timestamp),
    /// It reported a step of the clock.
    stepped: bool,
}

/// What became of the rows.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) rows: usize,
    /// Passed without being read.
    pub(super) lost: usize,
    /// Held back although everything has ended.
    pub(super) stuck: usize,
    /// The relay found a partition whose rows it has passed.
    pub(super) halted: bool,
}

pub(super) struct Relay<'a> {
    world: &'a World,
    pace: Pace,
    rule: Rule,
    variant: Variant,
    rows: Vec<Row>,
    history: History,
    first: FirstRule,
    /// The tick of the result of the scan before.
    answered: Option<i64>,
    scanned: Vec<Scanned>,
    longest: i64,
    position: Option<(Timestamp, usize)>,
    /// When the scan read the clock that it advanced by, and to where.
    advances: Vec<(i64, Timestamp)>,
    known: Option<BTreeSet<usize>>,
    seen: BTreeSet<usize>,
}

impl<'a> Relay<'a> {
    pub(super) fn new(world: &'a World, pace: Pace, rule: Rule, variant: Variant) -> Self {
        let now = rule == Rule::Transactions || variant == Variant::NowUnderWriters;
        let of = |transaction: &Transaction| {
            let (visible, leaf, message) = (transaction.visible, transaction.leaf, transaction.message);
            let stamps = transaction.stamps.iter().enumerate().map(move |(n, stamp)| {
                let stamped = if now { message } else { *stamp };
                let own = variant == Variant::DefaultTakenForProof && n == 1;
                let stamp = world.clock(stamped).minus(Duration::from_micros(if own { 100 } else { 0 }));
                Row { message, stamp, stamped, visible, leaf }
            });
            stamps.collect::<Vec<_>>()
        };
        let rows = world.clients.iter().flat_map(|client| &client.transactions).flat_map(of).collect();
        Self {
            world,
            pace,
            rule,
            variant,
            rows,
            history: History::default(),
            first: FirstRule::default(),
            answered: None,
            scanned: Vec::new(),
            longest: 0,
            position: None,
            advances: Vec::new(),
            known: None,
            seen: BTreeSet::new(),
        }
    }

    /// Relays until everything has ended.
    pub(super) fn run(mut self) -> Outcome {
        let mut tick = self.pace.start;
        let mut halted = false;
        while tick < self.world.end() && !halted {
            let (horizon, scanned) = self.scan(tick);
            let snapshot = if self.variant == Variant::SnapshotBeforeScan { tick } else { scanned };
            halted = !self.read(horizon, tick, snapshot);
            // A turn waits for the table's lock, and the next scan for the turn.
            tick = self.world.granted(scanned) + 1 + self.pace.every;
        }
        let missing = (0..self.rows.len()).filter(|row| !halted && !self.seen.contains(row) && !self.is_excused(*row));
        let (lost, stuck): (Vec<usize>, Vec<usize>) =
            missing.partition(|row| Some((self.rows[*row].stamp, *row)) <= self.position);
        Outcome { rows: self.rows.len(), lost: lost.len(), stuck: stuck.len(), halted }
    }

    /// A scan and, when it asks for one, a second. Returns the horizon and the tick of the result.
    fn scan(&mut self, tick: i64) -> (Timestamp, i64) {
        let (horizon, mut done, rescan) = self.look(tick, false);
        let horizon = if rescan && self.rule == Rule::Writers {
            let (again, later, _) = self.look(done + 1, true);
            done = later;
            again
        } else {
            horizon
        };
        (horizon, done)
    }

    /// The tick at which each client is read, and the last.
    fn ticks(&self, from: i64) -> (Vec<i64>, i64) {
        let ticks: Vec<i64> = (0..self.world.clients.len() as i64).map(|n| from + 1 + self.pace.spread * n).collect();
        let last = ticks.last().copied().unwrap_or(from + 1);
        (ticks, last)
    }

    fn look(&mut self, asked: i64, again: bool) -> (Timestamp, i64, bool) {
        let (first, end) = self.ticks(asked);
        let with_starts = self.rule == Rule::Writers && again || self.rule == Rule::Transactions;
        let (clock, second, done) = match (self.rule, with_starts) {
            // Starts, clock, locks.
            (Rule::Writers, true) => (end + 1, self.ticks(end + 1).0, self.ticks(end + 1).1),
            // Clock, locks.
            (Rule::Writers, false) => (asked, first.clone(), end),
            // Clock, sessions, transactions.
            _ => (asked, self.ticks(end).0, self.ticks(end).1),
        };
        let (activity, locks) = match self.variant {
            Variant::TransactionsBeforeSessions => (&second, &first),
            Variant::StartsAfterLocks => (&second, &first),
            _ => (&first, &second),
        };
        let clock = if self.variant == Variant::ClockAfterScan { done } else { clock };
        let at = self.world.clock(clock);
        let elapsed = Duration::from_micros(
            self.answered.map_or(0, |answered| (clock.min(asked) - answered).max(0)).unsigned_abs(),
        );
        let (horizon, rescan, stepped) = if self.variant.by_first_rule() {
            (self.by_first_rule(at, elapsed, activity, locks, with_starts), true, false)
        } else {
            self.by_history(at, elapsed, activity, locks, with_starts)
        };
        self.answered = Some(done);
        self.longest = self.longest.max(done - asked);
        self.scanned.push(Scanned { clock: (clock, at), stepped });
        (horizon, done, rescan)
    }

    fn by_first_rule(
        &mut self,
        at: Timestamp,
        elapsed: Duration,
        activity: &[i64],
        locks: &[i64],
        with_starts: bool,
    ) -> Timestamp {
        let started = |pid: usize| match self.variant {
            Variant::NewestScanAsBound => Some(at),
            Variant::StartsAfterLocks if with_starts => reported(self.world, &self.world.clients[pid], activity[pid]).0,
            _ => None,
        };
        let holders = self.transactions(locks, |transaction| transaction.lock);
        let holders = holders.into_iter().map(|(name, client, _)| (name, started(client))).collect();
        self.first.observe(at, elapsed, holders, Duration::from_micros(self.pace.window.unsigned_abs()))
    }

    fn by_history(
        &mut self,
        at: Timestamp,
        elapsed: Duration,
        activity: &[i64],
        locks: &[i64],
        with_starts: bool,
    ) -> (Timestamp, bool, bool) {
        let found = match self.rule {
            _ if self.variant == Variant::WindowOnly => ScanResult::Nothing,
            Rule::Writers => self.writers(activity, locks, with_starts),
            Rule::Transactions | Rule::Window => self.sessions(activity, locks),
        };
        let scan = Scan { at, elapsed, found };
        let window = Duration::from_micros(self.pace.window.unsigned_abs());
        let margin = Margin { window, precision: Duration::ZERO };
        let mut horizon = self.history.observe(scan.clone(), margin);
        let stepped = horizon.stepped_back.is_some();
        if self.variant == Variant::StepForgotten && stepped {
            self.history = History::default();
            horizon = self.history.observe(scan, margin);
        }
        (horizon.at, horizon.rescan, stepped)
    }

    /// Reads what is below the horizon and advances; false when it must halt.
    fn read(&mut self, horizon: Timestamp, scanned: i64, asked: i64) -> bool {
        let locked = self.world.granted(asked);
        let snapshot = if self.variant == Variant::SnapshotBeforeTableLock { asked } else { locked };
        let world = self.world;
        let family = LEAVES.into_iter().filter(|leaf| world.reads(*leaf, snapshot));
        let visible = |row: &Row| row.visible <= snapshot && world.reads(row.leaf, snapshot);
        for leaf in family {
            let passed =
                |(n, row): (usize, &Row)| row.leaf == leaf && visible(row) && Some((row.stamp, n)) <= self.position;
            let returned = self.known.as_ref().is_some_and(|known| !known.contains(&leaf));
            if returned && self.rows.iter().enumerate().any(passed) {
                return false;
            }
        }
        // A rewrite that the lock waited for, and the snapshot did not, leaves an empty leaf.
        let empty = |row: &Row| {
            world.changes.iter().any(|change| match *change {
                world::Change::Rewritten { leaf, to, .. } => row.leaf == leaf && snapshot < to && to <= locked,
                _ => false,
            })
        };
        let read: Vec<usize> = (0..self.rows.len())
            .filter(|n| {
                let row = &self.rows[*n];
                visible(row) && !empty(row) && row.stamp < horizon && Some((row.stamp, *n)) > self.position
            })
            .collect();
        let Some(last) = read.iter().map(|n| (self.rows[*n].stamp, *n)).max() else { return true };
        self.position = Some(last);
        self.advances.push((self.scanned.last().expect("a scan").clock.0, last.0));
        self.seen.extend(read);
        self.known = Some(match self.variant {
            Variant::CatalogTakenForRead => LEAVES.into_iter().filter(|leaf| world.reads(*leaf, scanned)).collect(),
            Variant::PendingTakenForRead => LEAVES.into_iter().filter(|leaf| world.lists(*leaf, snapshot)).collect(),
            _ => LEAVES.into_iter().filter(|leaf| world.reads(*leaf, snapshot)).collect(),
        });
        true
    }

    /// A step of the clock has put the row below the position before the scan after it read the clock: no rule can save it. Nor is a
    /// step seen that is longer than the window by no more than the time that two scans take, or
    /// that came before the first scan, to a transaction that was open.
    fn is_excused(&self, row: usize) -> bool {
        let row = self.rows[row];
        if self.world.steps.is_empty() || self.variant == Variant::DefaultTakenForProof {
            return false;
        }
        let (message, start) = (row.message, self.pace.start);
        let unseen = self.world.steps.iter().any(|(when, _)| message < *when && *when <= start);
        let passed = self.advances.iter().find(|(_, position)| row.stamp <= *position);
        let passed = passed.is_some_and(|(clock, _)| *clock <= row.stamped);
        // The highest reading since the last step that was reported.
        let before = self.scanned.iter().take_while(|scan| scan.clock.0 <= row.stamped);
        let highest = before.fold(
            None,
            |high: Option<Timestamp>, scan| {
                if scan.stepped { Some(scan.clock.1) } else { high.max(Some(scan.clock.1)) }
            },
        );
        let hidden = |from: Timestamp| {
            let deficit = from.since(row.stamp).as_micros() as i64;
            deficit > self.pace.window && deficit <= self.pace.window + 2 * self.longest
        };
        let reported = self.scanned.iter().find(|scan| scan.clock.0 > row.stamped).is_some_and(|scan| scan.stepped);
        unseen || passed || !reported && highest.is_some_and(hidden) || hidden(self.world.clock(message))
    }
}
