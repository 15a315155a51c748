//! Late rows: rows that become visible at or below a cursor's position. Pure.
//!
//! A cursor stores a position and a snapshot together, and what they say: every row at or below the position that is visible
//! in the snapshot has been dealt with. So the rows that came late are exactly those at or below the position whose
//! transaction is not visible in that snapshot, and is in a newer one.

use std::fmt;
use std::time::Duration;

use crate::position::Position;

/// At most so many late rows are taken at a time.
pub const MOST: usize = 10_000;

/// A snapshot is stored for its age alone when so many transactions have begun since: then the next look for late rows, and the
/// looks of idle relays, have no more of them to ask for.
pub const AGED: u64 = 8_192;

/// What a snapshot sees, as PostgreSQL writes it: all transactions before `next` but those that are `open`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    least: u64,
    next: u64,
    open: Vec<u64>,
}

impl Snapshot {
    /// Reads PostgreSQL's text of one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let mut bound = || parts.next()?.parse().ok();
        let (least, next) = (bound()?, bound()?);
        let open = parts.next()?.split(',').filter(|xid| !xid.is_empty());
        Some(Self { least, next, open: open.map(|xid| xid.parse().ok()).collect::<Option<_>>()? })
    }

    /// The first transaction that had not begun.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// What it sees of the transactions before `bound`, and nothing of those from there on.
    #[must_use]
    pub fn before(&self, bound: u64) -> Self {
        let next = self.next.min(bound);
        let open: Vec<u64> = self.open.iter().copied().filter(|xid| *xid < next).collect();
        Self { least: open.first().map_or(next, |first| self.least.min(*first)), next, open }
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open: Vec<String> = self.open.iter().map(u64::to_string).collect();
        write!(f, "{}:{}:{}", self.least, self.next, open.join(","))
    }
}

/// Up to where the late rows of a cursor have been found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The snapshot, as text.
    pub snapshot: String,
    /// The number of the column that tells the rows' transactions: one that was dropped and added again has another number,
    /// and its values tell nothing of rows that were there before.
    pub column: i16,
}

/// A row that was found late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateRow {
    /// Its place.
    pub position: Position,
    /// The transaction that wrote it.
    pub transaction: String,
}

/// In which parts late rows are looked for: each asks for so many transactions, and the next for more of them if it was quick.
/// Whatever was written since the stored snapshot, each reading ends in time, and says how far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The transactions of the first.
    pub span: u64,
    /// How many at most.
    pub most: usize,
    /// How long all of them may take.
    pub limit: Duration,
}

/// What a reading has seen before its first row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The snapshot up to which late rows are known, as text: that of the reading, or what that sees of earlier transactions.
    pub snapshot: String,
    /// The late rows that this snapshot sees, in order; with [`Self::more`] not all of them belong to it.
    pub late: Vec<LateRow>,
    /// There are more of them: the cursor keeps its position until all have been taken.
    pub more: bool,
    /// Later transactions have not been asked for yet: the cursor keeps its position until they have.
    pub part: bool,
    /// The stored snapshot was so old that this one is worth being stored for itself.
    pub aged: bool,
    /// How many transactions the next reading should ask for first.
    pub span: Option<u64>,
}

impl Opened {
    /// Whether late rows are known up to the reading's own snapshot. Until then the position must not move: rows that this
    /// reading sees above it, and an older snapshot does not, would be taken for late.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        !self.more && !self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sees(snapshot: &Snapshot, xid: u64) -> bool {
        xid < snapshot.least || (xid < snapshot.next && !snapshot.open.contains(&xid))
    }

    fn is_sound(snapshot: &Snapshot) -> bool {
        let Snapshot { least, next, open } = snapshot;
        Snapshot::parse(&snapshot.to_string()).as_ref() == Some(snapshot)
            && least <= next
            && open.is_sorted()
            && open.iter().all(|xid| (*least..*next).contains(xid))
    }

    // The least is the reader's own transaction in the first.
    const TEXTS: [&str; 6] = ["10:20:12,15,19", "10:20:10", "20:20:", "10:21:10,20", "3:12:", "5:25:5,11,12"];

    #[test]
    fn part_of_a_snapshot_sees_what_the_whole_sees_before_its_bound_and_nothing_else() {
        for text in TEXTS {
            let whole = Snapshot::parse(text).expect("a snapshot");
            assert_eq!(whole.to_string(), text);
            for bound in 1..30 {
                let part = whole.before(bound);
                assert!(is_sound(&part), "{part}");
                for xid in 0..30 {
                    assert_eq!(sees(&part, xid), xid < bound && sees(&whole, xid), "{xid} in {part} of {text}");
                }
            }
        }
    }
}
