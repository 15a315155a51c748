//! Occurrences in the order of their instants.
//!
//! Local times that a gap of the clocks moves may pass others: 02:30, taken as 03:30, comes after 03:15. Two that fall on
//! one instant are one occurrence.

use std::collections::BTreeMap;

use chrono::NaiveDateTime;
use chrono_tz::Tz;

use super::calendar::Locals;
use super::clock::Ticks;
use super::problem::Problem;
use super::zone::{self, Fate};
use crate::position::Timestamp;

/// One occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// When.
    pub at: Timestamp,
    /// What the clocks did to the local time of the rule.
    pub wall: Wall,
}

/// What the clocks did to a local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wall {
    /// They show it once, or the rule counts in UTC.
    Plain,
    /// They skip this local time, and the occurrence is later by the length of the gap.
    Skipped(NaiveDateTime),
    /// They show it twice, and the occurrence is the first.
    FirstOfTwo,
}

/// Occurrences from an instant on, each after the one before.
pub(super) enum Walk<'a> {
    Calendar(Box<Merge<'a>>),
    Clock(Ticks<'a>),
}

impl Iterator for Walk<'_> {
    type Item = Result<(i64, Wall), Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Calendar(merge) => merge.next().map(Ok),
            Self::Clock(ticks) => ticks.next().map(|tick| tick.map(|at| (at, Wall::Plain))),
        }
    }
}

/// Local times as instants, those of gaps in their place.
pub(super) struct Merge<'a> {
    locals: Locals<'a>,
    zone: Tz,
    from: i64,
    /// What a gap moved, until what comes before it has passed.
    moved: BTreeMap<i64, Wall>,
    /// The next one that no gap moved.
    seen: Option<(i64, Wall)>,
    last: Option<i64>,
}

impl<'a> Merge<'a> {
    /// Local times that begin early enough for `from`: see [`first_local`].
    pub(super) fn new(locals: Locals<'a>, zone: Tz, from: i64) -> Self {
        Self { locals, zone, from, moved: BTreeMap::new(), seen: None, last: None }
    }

    /// Reads on to the next local time that no gap moves.
    fn fill(&mut self) {
        while self.seen.is_none() {
            let Some(local) = self.locals.next() else { return };
            match zone::instant(self.zone, local) {
                (at, Fate::Skipped) => {
                    self.moved.insert(at, Wall::Skipped(local));
                }
                (at, Fate::Once) => self.seen = Some((at, Wall::Plain)),
                (at, Fate::FirstOfTwo) => self.seen = Some((at, Wall::FirstOfTwo)),
            }
        }
    }

    fn any(&mut self) -> Option<(i64, Wall)> {
        self.fill();
        match (self.moved.first_key_value().map(|(at, _)| *at), self.seen) {
            (Some(moved), Some((at, _))) if moved <= at => self.moved.pop_first(),
            (Some(_), None) => self.moved.pop_first(),
            _ => self.seen.take(),
        }
    }
}

impl Iterator for Merge<'_> {
    type Item = (i64, Wall);

    fn next(&mut self) -> Option<(i64, Wall)> {
        loop {
            let (at, wall) = self.any()?;
            if at >= self.from && self.last.is_none_or(|last| at > last) {
                self.last = Some(at);
                return Some((at, wall));
            }
        }
    }
}

/// The local time to begin with so that nothing from an instant on is missed: what a gap moved lies before it.
pub(super) fn first_local(zone: Tz, from: i64) -> NaiveDateTime {
    let earlier = from - zone::LONGEST_GAP;
    let jumped = zone::offset(zone, from) > zone::offset(zone, earlier);
    zone::local(zone, if jumped { earlier } else { from })
}
