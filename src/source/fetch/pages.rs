//! How many rows to ask for at a time: as many as the budget has room for, when something is known of their size.
//!
//! Where all rows are alike that is one page. Where a few are much larger than the others, room for the largest alone would make
//! a round trip for every few rows; so half of the room is filled by the mean size, then half of what is left, and so on.
//! Rows that turn out larger than that end the turn within a page, as they do when they come by surprise.

use super::Budget;

/// The first page is small while the rows' size is unknown.
const UNKNOWN: usize = 16;

/// See the module.
pub(super) struct Pages {
    budget: Budget,
    rows: usize,
    bytes: usize,
    /// The largest row that was to be expected, and that has come.
    expected: usize,
    largest: usize,
}

impl Pages {
    /// `row_bytes` is the size of the largest row to be expected; 0 when nothing is known.
    pub(super) fn new(budget: Budget, row_bytes: usize) -> Self {
        Self { budget, rows: 0, bytes: 0, expected: row_bytes, largest: 0 }
    }

    /// The rows of the next page; none when the budget is spent.
    pub(super) fn next(&self) -> Option<usize> {
        if self.spent() {
            return None;
        }
        let left = self.budget.rows - self.rows;
        let room = (self.budget.bytes - self.bytes).min(self.budget.page);
        // What has come says more than what was expected, as soon as it is more than a row or two.
        let rows = if self.rows < UNKNOWN {
            match self.largest.max(self.expected) {
                0 => UNKNOWN,
                largest => room / largest + 1,
            }
        } else {
            (room / self.largest + 1).max(room / (2 * self.mean()))
        };
        Some(left.min(rows))
    }

    /// The bytes of the rows that have come, on average; 1 at least.
    pub(super) fn mean(&self) -> usize {
        (self.bytes / self.rows.max(1)).max(1)
    }

    /// A row of so many bytes has come.
    pub(super) fn took(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
        // Also a row without values takes its place.
        self.largest = self.largest.max(bytes).max(1);
    }

    /// Whether no further row may be taken.
    pub(super) fn spent(&self) -> bool {
        self.rows >= self.budget.rows || self.bytes >= self.budget.bytes
    }

    /// How many rows have come.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The bytes of the largest row that has come.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn pages(rows: usize, bytes: usize, row_bytes: usize) -> Pages {
        Pages::new(Budget { rows, bytes, page: bytes, time: Duration::from_secs(1) }, row_bytes)
    }

    #[test]
    fn a_page_is_no_larger_than_may_wait_on_the_connection() {
        let budget = Budget { rows: 320_000, bytes: 128_000_000, page: 8_000_000, time: Duration::from_secs(1) };
        let mut pages = Pages::new(budget, 200);
        assert_eq!(pages.next(), Some(40_001));
        (0..310_000).for_each(|_| pages.took(200));
        assert_eq!(pages.next(), Some(10_000));
    }

    #[test]
    fn rows_of_unknown_size_are_tried_in_a_small_page_and_then_fill_the_budget() {
        let mut pages = pages(20_000, 8_000_000, 0);
        assert_eq!(pages.next(), Some(16));
        (0..16).for_each(|_| pages.took(1_000));
        assert_eq!(pages.next(), Some((8_000_000 - 16_000) / 1_000 + 1));
        (0..16).for_each(|_| pages.took(1_000_000));
        assert!(pages.spent() && pages.next().is_none());
    }

    #[test]
    fn rows_of_known_size_come_in_one_page_that_keeps_to_rows_and_bytes() {
        assert_eq!(pages(20_000, 8_000_000, 200).next(), Some(20_000));
        assert_eq!(pages(20_000, 8_000_000, 1_000_000).next(), Some(9));
        assert_eq!(pages(20_000, 8_000_000, 64_000_000).next(), Some(1));
        assert_eq!(pages(1, 8_000_000, 0).next(), Some(1));
    }

    #[test]
    fn rows_that_have_become_small_are_not_asked_for_as_if_they_were_large() {
        let mut pages = pages(20_000, 8_000_000, 400_000);
        assert_eq!(pages.next(), Some(21));
        (0..21).for_each(|_| pages.took(200));
        assert_eq!((pages.next(), pages.largest()), (Some(19_979), 200));
    }

    #[test]
    fn a_few_large_rows_among_small_ones_do_not_make_a_round_trip_for_every_few_rows() {
        let mut pages = pages(20_000, 8_000_000, 1_000_000);
        let mut trips = 0;
        while let Some(page) = pages.next() {
            trips += 1;
            for _ in 0..page {
                pages.took(if pages.rows() % 1_000 == 5 { 1_000_000 } else { 200 });
                if pages.spent() {
                    break;
                }
            }
        }
        assert_eq!((pages.rows(), trips), (6_006, 10));
    }

    #[test]
    fn a_page_of_rows_without_bytes_ends() {
        let mut pages = pages(40, 10, 0);
        (0..16).for_each(|_| pages.took(0));
        assert_eq!(pages.next(), Some(11));
    }
}
