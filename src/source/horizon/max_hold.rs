//! What `max_hold` does: the horizon waits no longer for one transaction, so that the others' rows go on.
//!
//! It ends the promise of [`super`] for the transactions that it names: rows of theirs may become visible below the horizon. So it is
//! done only where late rows are found by their transaction (see `src/source/sweep.rs`): whichever snapshot a turn reads with, such a
//! transaction is in progress in it, or begins later, and its rows are asked for by name.

use std::collections::HashMap;
use std::time::Duration;

use super::{Held, History, Horizon, Margin, Why, lowest};
use crate::position::Timestamp;

impl History {
    /// Stops waiting for the transactions of the last scan that have been open for longer than `longest`: the horizon rises to what the
    /// others allow, and they are named in [`Horizon::passed_over`]. A standby is waited for all the same. It counts from the
    /// begin that was read, else from the first scan that saw it: the bound may lie long before.
    pub(in crate::source) fn pass_over(&mut self, horizon: &mut Horizon, longest: Duration, margin: Margin) {
        let now = horizon.observed_at;
        // An instant from before a step cannot be compared with those since.
        let known = std::mem::take(&mut self.seen);
        let known = if horizon.stepped_back.is_some() { HashMap::new() } else { known };
        let (mut over, mut held_by) = (Vec::new(), Vec::new());
        for held in std::mem::take(&mut horizon.held_by) {
            let first = held.holder.names().filter_map(|name| known.get(&name)).min().copied().unwrap_or(now);
            self.seen.extend(held.holder.names().map(|name| (name, first)));
            let is_over = now.since(held.holder.started.unwrap_or(first)) > longest;
            if is_over && held.why == Why::Transaction { over.push(held) } else { held_by.push(held) }
        }
        let since = |held: &Held| held.bound.or_else(|| self.first_unknown(held)).unwrap_or(now);
        horizon.held_since = held_by.iter().map(since).fold(now, Timestamp::min);
        horizon.at = lowest(&held_by, now).minus(margin.window).minus(margin.precision);
        (horizon.passed_over, horizon.held_by) = (over, held_by);
    }

    /// The first scan that saw a holder of which no bound is known.
    fn first_unknown(&self, held: &Held) -> Option<Timestamp> {
        held.holder.names().filter_map(|name| self.unknown.get(&name)).min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Scan, ScanResult, Start, Writer};
    use super::*;

    const MARGIN: Margin = Margin { window: Duration::from_secs(1), precision: Duration::ZERO };
    const LONGEST: Duration = Duration::from_secs(60);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_pg_micros(seconds * 1_000_000)
    }

    /// A scan in which these transactions write, of processes of the same number.
    fn scan(history: &mut History, now: i64, elapsed: u64, writers: &[i32], starts: &[(i32, i64)]) -> Horizon {
        let writer = |pid: &i32| Writer { transaction: format!("{pid}/1"), pid: Some(*pid) };
        let start = |&(pid, began): &(i32, i64)| Start { pid, application: None, started: Some(at(began)) };
        let found = ScanResult::Writers {
            starts: starts.iter().map(start).collect(),
            writers: writers.iter().map(writer).collect(),
        };
        let scan = Scan { at: at(now), elapsed: Duration::from_secs(elapsed), found };
        let mut horizon = history.observe(scan, MARGIN);
        history.pass_over(&mut horizon, LONGEST, MARGIN);
        horizon
    }

    fn pids(held: &[Held]) -> Vec<i32> {
        held.iter().filter_map(|held| held.holder.pid).collect()
    }

    // Guarantee: late.max-hold
    #[test]
    fn one_that_holds_for_longer_is_passed_over_and_the_others_are_waited_for() {
        let mut history = History::default();
        scan(&mut history, 0, 0, &[], &[]);
        let held = scan(&mut history, 10, 10, &[1], &[]);
        assert_eq!((held.at, pids(&held.held_by), pids(&held.passed_over)), (at(-1), vec![1], vec![]));
        let held = scan(&mut history, 70, 60, &[1, 2], &[]);
        assert_eq!((held.at, pids(&held.passed_over)), (at(-1), vec![]), "not longer yet");
        let passed = scan(&mut history, 71, 1, &[1, 2], &[]);
        assert_eq!((pids(&passed.held_by), pids(&passed.passed_over)), (vec![2], vec![1]));
        assert_eq!((passed.at, passed.held_since), (at(9), at(10)), "up to what the second allows");
        let ended = scan(&mut history, 72, 1, &[], &[]);
        assert_eq!((ended.at, ended.passed_over, ended.held_since), (at(71), vec![], at(72)));
    }

    #[test]
    fn one_of_which_nothing_is_known_is_waited_for_from_the_first_scan_that_saw_it() {
        let mut history = History::default();
        assert_eq!(scan(&mut history, 100, 0, &[1], &[]).at, Timestamp::NEG_INFINITY);
        assert_eq!(scan(&mut history, 160, 60, &[1], &[]).at, Timestamp::NEG_INFINITY);
        let passed = scan(&mut history, 161, 1, &[1], &[]);
        assert_eq!((passed.at, pids(&passed.passed_over)), (at(160), vec![1]));
        // After a reconnect all that is known is when it began.
        let mut history = History::default();
        scan(&mut history, 161, 0, &[1], &[]);
        let passed = scan(&mut history, 162, 1, &[1], &[(1, 40)]);
        assert_eq!((passed.at, pids(&passed.passed_over)), (at(161), vec![1]));
    }

    #[test]
    fn one_that_came_after_a_long_time_without_a_scan_is_as_young_as_it_is() {
        let mut history = History::default();
        scan(&mut history, 0, 0, &[], &[]);
        let first = scan(&mut history, 500, 500, &[1], &[]);
        assert_eq!((first.at, pids(&first.held_by), pids(&first.passed_over)), (at(-1), vec![1], vec![]));
        let second = scan(&mut history, 501, 1, &[1], &[(1, 499)]);
        assert_eq!((second.at, pids(&second.passed_over)), (at(498), vec![]), "its begin was read");
    }

    #[test]
    fn after_a_step_of_the_clock_it_is_waited_for_as_if_it_had_just_come() {
        let mut history = History::default();
        scan(&mut history, 100, 0, &[], &[]);
        scan(&mut history, 110, 10, &[1], &[]);
        assert_eq!(pids(&scan(&mut history, 171, 61, &[1], &[]).passed_over), vec![1]);
        let stepped = scan(&mut history, 90, 1, &[1], &[]);
        assert!(stepped.stepped_back.is_some() && stepped.passed_over.is_empty(), "{stepped:?}");
        assert_eq!(pids(&scan(&mut history, 151, 61, &[1], &[]).passed_over), vec![1]);
    }

    #[test]
    fn a_standby_is_waited_for_however_long_it_takes() {
        let holder = super::super::Holder {
            transaction: "standby 7".to_owned(),
            pid: Some(7),
            application: None,
            started: None,
        };
        let standby = Held { holder, bound: Some(at(0)), why: Why::Standby };
        let mut horizon = Horizon {
            at: at(-1),
            observed_at: at(1_000),
            held_by: vec![standby.clone()],
            passed_over: Vec::new(),
            held_since: at(0),
            rescan: false,
            stepped_back: None,
        };
        History::default().pass_over(&mut horizon, LONGEST, MARGIN);
        assert_eq!((horizon.held_by, horizon.at, horizon.held_since), (vec![standby], at(-1), at(0)));
    }
}
