//! What was seen of one table. Pure.

use std::collections::HashMap;
use std::time::Duration;

use crate::position::Timestamp;
use crate::source::horizon::Horizon;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How often it was looked at.
    pub looks: usize,
    /// Rows that came below what was safe to read.
    pub late: i64,
    /// How far the newest row was ahead of the clock, at most.
    pub ahead: Duration,
    /// Rows that were stamped while it was looked at.
    pub grown: i64,
    /// By how much the clock stepped back, at most.
    pub stepped_back: Duration,
    /// At each look, how far the horizon was behind the clock; none when nobody could say.
    behind: Vec<Option<Duration>>,
    holds: HashMap<String, Hold>,
}

/// A writer, for as long as it was seen.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The server process; none for a prepared transaction.
    pub pid: Option<i32>,
    /// What its session calls itself.
    pub application: Option<String>,
    since: Timestamp,
    until: Timestamp,
}

impl Hold {
    /// How long it was open, as far as it was seen.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.until.since(self.since)
    }
}

impl Seen {
    /// Takes a look in.
    pub fn note(&mut self, horizon: &Horizon) {
        self.looks += 1;
        self.behind.push(horizon.at.is_finite().then(|| horizon.observed_at.since(horizon.at)));
        self.stepped_back = self.stepped_back.max(horizon.stepped_back.unwrap_or_default());
        for held in &horizon.held_by {
            let holder = &held.holder;
            let hold = self.holds.entry(holder.transaction.clone()).or_insert_with(|| Hold {
                pid: holder.pid,
                application: holder.application.clone(),
                // Where nothing tells when it began, it is as old as the first look at it, at least.
                since: holder.started.or(held.bound).unwrap_or(horizon.observed_at),
                until: horizon.observed_at,
            });
            hold.until = horizon.observed_at;
        }
    }

    /// How many writers were seen.
    #[must_use]
    pub fn writers(&self) -> usize {
        self.holds.len()
    }

    /// The median of the times that writers were open, and who was open longest.
    #[must_use]
    pub fn holds(&self) -> Option<(Duration, &Hold)> {
        let mut times: Vec<Duration> = self.holds.values().map(Hold::time).collect();
        times.sort_unstable();
        let longest = self.holds.values().max_by_key(|hold| hold.time())?;
        Some((times[times.len() / 2], longest))
    }

    /// How far the horizon was behind the clock: at the median and at most; none when it was unknown at some look.
    #[must_use]
    pub fn behind(&self) -> [Option<Duration>; 2] {
        let mut known: Vec<Duration> = self.behind.iter().flatten().copied().collect();
        known.sort_unstable();
        let median = known.get(known.len() / 2).copied();
        let all = known.len() == self.behind.len();
        [median, known.last().copied().filter(|_| all)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::horizon::{Held, Holder, Why};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_pg_micros(millis * 1_000)
    }

    fn horizon(now: i64, safe: Option<i64>, writers: &[(&str, Option<i64>)]) -> Horizon {
        let held = |(transaction, started): &(&str, Option<i64>)| Held {
            holder: Holder {
                transaction: (*transaction).to_owned(),
                pid: Some(7),
                application: None,
                started: started.map(at),
            },
            bound: started.map(at),
            why: Why::default(),
        };
        Horizon {
            at: safe.map_or(Timestamp::NEG_INFINITY, at),
            observed_at: at(now),
            held_by: writers.iter().map(held).collect(),
            passed_over: Vec::new(),
            held_since: at(now),
            rescan: false,
            stepped_back: None,
        }
    }

    #[test]
    fn a_writer_counts_once_with_the_time_it_was_seen_open() {
        let mut seen = Seen::default();
        seen.note(&horizon(1_000, Some(900), &[("a", Some(900))]));
        seen.note(&horizon(1_050, Some(900), &[("a", Some(900)), ("b", None)]));
        seen.note(&horizon(1_100, Some(1_040), &[("b", None)]));
        seen.note(&horizon(1_150, Some(1_145), &[("c", Some(1_150))]));
        assert_eq!((seen.looks, seen.writers()), (4, 3));
        let (median, longest) = seen.holds().expect("writers");
        assert_eq!((median, longest.time()), (Duration::from_millis(50), Duration::from_millis(150)));
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(seen.behind(), [millis(100), millis(150)]);
    }

    #[test]
    fn a_look_that_cannot_tell_leaves_the_most_unknown() {
        let mut seen = Seen::default();
        assert!(seen.holds().is_none());
        assert_eq!(seen.behind(), [None, None]);
        seen.note(&horizon(1_000, None, &[("a", None)]));
        seen.note(&horizon(1_050, Some(1_045), &[]));
        assert_eq!(seen.behind(), [Some(Duration::from_millis(5)), None]);
    }
}
