//! Rows that came late, and which of them a slice has. Pure.
//!
//! Each has a letter, and was delivered by that. The slice has it as well if the audit has found it, too, or if a move back had it passed
//! like any other row, and does not otherwise. So these rows are left out of the table's sums, and taken in one by one, the oldest letter
//! first, until what differs can be told: what the slice has and the sums have not is either one of these rows, or gone.

use crate::audit::{Comparison, Sums, compare, element};

/// Compares what was passed with the sums of the table, in which the rows of these letters are not. With it comes how many of the letters'
/// rows were taken in for that.
pub(super) fn compared(delivered: &Sums, mut table: Sums, letters: &[&str]) -> (Comparison, usize) {
    for (taken, letter) in letters.iter().enumerate() {
        match compare(delivered, &table) {
            Comparison::TooMany => table.add(element(letter)),
            told => return (told, taken),
        }
    }
    (compare(delivered, &table), letters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums<'a>(ids: impl IntoIterator<Item = &'a String>) -> Sums {
        let mut sums = Sums::default();
        ids.into_iter().for_each(|id| sums.add(element(id)));
        sums
    }

    fn ids(prefix: &str, count: usize) -> Vec<String> {
        (0..count).map(|n| format!("{prefix}-{n}")).collect()
    }

    /// How the slice, which has the first `merged` of the letters' rows, differs, and how many of these were taken in.
    fn told(merged: usize, letters: usize, missing: usize, deleted: usize) -> (Comparison, usize, Vec<String>) {
        let (rows, late, deleted) = (ids("row", 100), ids("late", letters), ids("deleted", deleted));
        let delivered = sums(rows[missing..].iter().chain(&deleted).chain(&late[..merged]));
        let letters: Vec<&str> = late.iter().map(String::as_str).collect();
        let (comparison, taken) = compared(&delivered, sums(&rows), &letters);
        (comparison, taken, late)
    }

    #[test]
    fn late_rows_that_the_slice_has_are_told_from_those_that_it_has_not() {
        for (merged, letters) in [(0, 40), (1, 40), (9, 40), (12, 40), (30, 31), (40, 40), (25, 50)] {
            let (comparison, taken, late) = told(merged, letters, 0, 0);
            let Comparison::Differs(difference) = comparison else {
                assert_eq!((comparison, taken), (Comparison::Equal, merged), "{merged} of {letters}");
                continue;
            };
            assert_eq!((difference.missing(), difference.gone()), (0, merged - taken), "{merged} of {letters}");
            assert!(late[taken..merged].iter().all(|id| difference.is_gone(element(id))), "{merged} of {letters}");
        }
    }

    #[test]
    fn rows_that_are_missing_or_gone_are_told_among_late_ones() {
        let (comparison, taken, late) = told(20, 60, 2, 1);
        let Comparison::Differs(difference) = comparison else { panic!("{comparison:?}") };
        assert!(["row-0", "row-1"].iter().all(|id| difference.is_missing(element(id))), "{difference:?}");
        assert!(difference.is_gone(element("deleted-0")) && difference.missing() == 2);
        assert_eq!(difference.gone(), 1 + late[taken..20].len());
        assert_eq!(told(20, 60, 10, 0).0, Comparison::TooMany, "more than can be told");
    }
}
