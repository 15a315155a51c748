//! What a cursor has passed, slice by slice, at a size that does not depend on the number of rows. Pure.
//!
//! The proof of the horizon covers what was thought of. This is the second line behind it: an advance records which rows it has passed, in
//! its own transaction, and what the table has between the same two places is compared with that a minute, ten minutes and an hour
//! later. A row that the table has, and that was not passed, became visible behind the position.
//!
//! Promise: the rows of a slice are exactly those that turns have passed between its two places. A turn that cannot name all rows that it
//! passes, and whatever else moves the position, ends the slice before it, so that what is between is in none. The first such turn is
//! recorded as one: what is in no slice, and follows no such turn, was passed by none.

use std::collections::HashMap;
use std::time::Duration;

use crate::position::{Position, Timestamp};

mod sums;

pub use sums::{Comparison, Difference, Sums, compare, element};

/// After its first comparison, a minute after its end, a slice is compared again so long after its end.
pub const AGAIN: [Duration; 2] = [Duration::from_secs(600), LAST_COMPARISON];
/// So long after its end it is compared for the last time.
pub const LAST_COMPARISON: Duration = Duration::from_secs(3_600);
/// When a slice has ended so long ago, only its first comparison is made up for after a pause of all replicas. One that is due so long
/// after its end, or later, is compared no more. So long it stays, which `verify` counts on, unless it is kept for longer (`[audit]
/// keep`).
pub const MADE_UP_FOR: Duration = LAST_COMPARISON.saturating_mul(2);

/// A slice ends with the first advance after so long.
const LONGEST: Duration = Duration::from_secs(60);
/// Or with the advance that brings it to so many rows: only a few rows that differ can be named in each.
const MOST_ROWS: u64 = 5_000;
/// The form of an open slice as bytes.
const FORM: u8 = 1;

/// The rows that were passed between two places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// After this place.
    pub after: Position,
    /// Up to this one.
    pub up_to: Position,
    /// When its first row was passed, by the database's clock.
    pub begun: Timestamp,
    /// What was read of which table, as the hash of a text: anything else is not compared with it.
    pub reads: u64,
    /// Over the ids of its rows.
    pub sums: Sums,
}

/// What an advance writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The slice that goes on.
    pub open: Option<Slice>,
    /// Those that have ended.
    pub ended: Vec<Slice>,
    /// The first move after them that is not recorded.
    pub unrecorded: Option<Unrecorded>,
}

/// A move over rows that are not recorded, by a turn that found a slice: a replica with another `[audit]`, or under `at_most_once`, passes
/// rows between that and the next one. Where none did, what is in no slice was passed by no turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrecorded {
    /// After this place.
    pub after: Position,
    /// Up to this one.
    pub up_to: Position,
    /// What was read of which table, as in a slice.
    pub reads: u64,
    /// How many rows the turn has passed.
    pub rows: usize,
}

/// A move of the position.
#[derive(Clone, Copy, Debug)]
pub struct Move<'a> {
    /// Where it stands; none is before every row.
    pub from: Option<&'a Position>,
    /// Where it stands afterwards.
    pub to: &'a Position,
    /// What is read of which table, as in a slice.
    pub reads: u64,
    /// Over the ids of all rows that it passes; none when they are not known.
    pub passed: Option<&'a Sums>,
    /// How many rows it passes.
    pub rows: usize,
    /// The database's clock.
    pub now: Timestamp,
}

impl Recorded {
    /// What follows from the slice that the cursor has, and a move.
    #[must_use]
    pub fn of(open: Option<Slice>, Move { from, to, reads, passed, rows, now }: Move<'_>) -> Self {
        let (was_recorded, mut ended) = (open.is_some(), Vec::new());
        let open = open.filter(|slice| {
            // The position was moved by something else since, or by a program that knows nothing of slices.
            let is_its_end = Some(&slice.up_to) == from && slice.reads == reads;
            let goes_on = is_its_end && (passed.is_some() || from == Some(to));
            if !goes_on && slice.sums.rows() > 0 {
                ended.push(slice.clone());
            }
            goes_on
        });
        let start = || from.cloned().unwrap_or(Position { created_at: Timestamp::NEG_INFINITY, id: None });
        let Some(passed) = passed else {
            let first = || Unrecorded { after: start(), up_to: to.clone(), reads, rows };
            let unrecorded = (was_recorded && from != Some(to)).then(first);
            return Self { open, ended, unrecorded };
        };
        let slice = open.unwrap_or_else(|| Slice::empty(start(), reads, now));
        let begun = if slice.sums.rows() == 0 { now } else { slice.begun };
        let mut slice = Slice { up_to: to.clone(), begun, ..slice };
        slice.sums.merge(passed);
        let is_over = slice.sums.rows() >= MOST_ROWS || now >= slice.begun.plus(LONGEST) && slice.sums.rows() > 0;
        if is_over {
            ended.push(slice);
            // Not none: the next turn is to know that the rows before it are recorded.
            slice = Slice::empty(to.clone(), reads, now);
        }
        Self { open: Some(slice), ended, unrecorded: None }
    }
}

/// The transactions whose rows are all that the table has and the slice had not: one, or two together. None when the difference is
/// another: parts of transactions, or rows that are gone.
///
/// What is told is certain but for a chance of 2^-61 for each sum that has to fit, and all twelve do.
#[must_use]
pub fn transactions<'a>(delivered: &Sums, table: &Sums, of: &'a HashMap<String, Sums>) -> Option<Vec<&'a str>> {
    let missing = table.without(delivered);
    let by_sums: HashMap<&Sums, &str> = of.iter().map(|(transaction, sums)| (sums, transaction.as_str())).collect();
    if let Some(one) = by_sums.get(&missing) {
        return Some(vec![*one]);
    }
    of.iter().find_map(|(one, sums)| {
        let other = by_sums.get(&missing.without(sums)).filter(|other| *other != one)?;
        Some(vec![one.as_str(), *other])
    })
}

impl Slice {
    /// One without rows, which begins at a place.
    #[must_use]
    pub fn empty(at: Position, reads: u64, now: Timestamp) -> Self {
        Self { after: at.clone(), up_to: at, begun: now, reads, sums: Sums::default() }
    }

    /// As the cursor's row has it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![FORM];
        bytes.extend(self.begun.pg_micros().to_be_bytes());
        bytes.extend(self.reads.to_be_bytes());
        for place in [&self.after, &self.up_to] {
            bytes.extend(place.created_at.pg_micros().to_be_bytes());
            let id = place.id.as_deref().unwrap_or_default();
            bytes.push(u8::from(place.id.is_some()));
            bytes.extend(u32::try_from(id.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend(id.as_bytes());
        }
        bytes.extend(self.sums.to_bytes());
        bytes
    }

    /// Reads that; none of what another version wrote.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (form, mut rest) = bytes.split_first()?;
        if *form != FORM {
            return None;
        }
        let (begun, reads) = (instant(&mut rest)?, take(&mut rest).map(u64::from_be_bytes)?);
        let (after, up_to) = (place(&mut rest)?, place(&mut rest)?);
        Some(Self { after, up_to, begun, reads, sums: Sums::from_bytes(rest)? })
    }
}

fn take<'a, const N: usize>(rest: &mut &'a [u8]) -> Option<[u8; N]> {
    let (taken, behind): (&'a [u8; N], _) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*taken)
}

fn instant(rest: &mut &[u8]) -> Option<Timestamp> {
    take(rest).map(i64::from_be_bytes).map(Timestamp::from_pg_micros)
}

fn place(rest: &mut &[u8]) -> Option<Position> {
    let created_at = instant(rest)?;
    let [named] = take(rest)?;
    let length = usize::try_from(u32::from_be_bytes(take(rest)?)).ok()?;
    let (id, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    let id = std::str::from_utf8(id).ok()?.to_owned();
    Some(Position { created_at, id: (named == 1).then_some(id) })
}

#[cfg(test)]
mod tests;
