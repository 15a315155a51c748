//! Late rows: rows that become visible at or below a cursor's position. Pure.
//!
//! A cursor stores a position and a snapshot together, and what they say: every row at or below the position that is visible
//! in the snapshot has been dealt with. So the rows that came late are exactly those at or below the position whose
//! transaction is not visible in that snapshot, and is in a newer one.

use crate::position::Position;

/// At most so many late rows are taken at a time.
pub const MOST: usize = 10_000;

/// Up to where the late rows of a cursor have been found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The snapshot, as text.
    pub snapshot: String,
    /// The number of the column that tells the rows' transactions: one that was dropped and added again has another number,
    /// and its values tell nothing of rows that were there before.
    pub column: i16,
}

impl Swept {
    /// Orders snapshots of one server by what they see: an earlier one has lower bounds, and of two with the same bounds more
    /// transactions in progress.
    #[must_use]
    pub fn age(&self) -> (u64, u64, std::cmp::Reverse<usize>) {
        let mut parts = self.snapshot.split(':');
        let mut bound = || parts.next().and_then(|part| part.parse().ok()).unwrap_or_default();
        let (least, next) = (bound(), bound());
        let open = parts.next().map_or(0, |open| open.split(',').filter(|xid| !xid.is_empty()).count());
        (next, least, std::cmp::Reverse(open))
    }
}

/// A row that was found late.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateRow {
    /// Its place.
    pub position: Position,
    /// The transaction that wrote it.
    pub transaction: String,
}

/// What a reading has seen before its first row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The snapshot that all of it was read with, as text.
    pub snapshot: String,
    /// The late rows that this snapshot sees, in order.
    pub late: Vec<LateRow>,
    /// There are more of them: the cursor keeps its position and its snapshot until all have been taken.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_older_the_less_it_sees() {
        let age = |snapshot: &str| Swept { snapshot: snapshot.to_owned(), column: 1 }.age();
        let order = ["10:12:10,11", "10:20:10,11,15", "10:20:10,15", "15:20:15", "20:20:", "20:21:20"];
        assert!(order.map(age).is_sorted());
        assert!(age(order[0]) < age(order[1]) && age(order[1]) < age(order[2]));
    }
}
