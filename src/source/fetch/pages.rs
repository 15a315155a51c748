//! How many rows to ask for at a time: as many as the budget has room for, when something is known of their size.
//!
//! Where all rows are alike that is one page. Where a few are much larger than the others, room for the largest alone would make
//! a round trip for every few rows; so half of the room is filled by the mean size, then half of what is left, and so on.
//! Rows that turn out larger than that end the turn within a page, as they do when they come by surprise.

use super::{Budget, Sizes};

/// The first page is small while the rows' size is unknown.
const UNKNOWN: usize = 16;
/// The mean row of the last fetch counts as so many rows of this one: large rows among many small ones may come late.
const REMEMBERED: usize = 64;

/// See the module.
pub(super) struct Pages {
    budget: Budget,
    rows: usize,
    bytes: usize,
    expected: Sizes,
    largest: usize,
}

impl Pages {
    /// `expected` is how large rows were in the last fetch.
    pub(super) fn new(budget: Budget, expected: Sizes) -> Self {
        Self { budget, rows: 0, bytes: 0, expected, largest: 0 }
    }

    /// The rows of the next page; none when the budget is spent.
    pub(super) fn next(&self) -> Option<usize> {
        if self.spent() {
            return None;
        }
        let left = self.budget.rows - self.rows;
        let room = (self.budget.bytes - self.bytes).min(self.budget.page);
        let rows = match self.largest.max(self.expected.largest) {
            0 => UNKNOWN,
            largest => (room / largest + 1).max(room / (2 * self.mean())),
        };
        Some(left.min(rows))
    }

    /// The bytes of a row to come, on average; 1 at least.
    pub(super) fn mean(&self) -> usize {
        let (rows, bytes) = match self.expected.mean {
            0 => (self.rows, self.bytes),
            mean => (self.rows + REMEMBERED, self.bytes + REMEMBERED * mean),
        };
        (bytes / rows.max(1)).max(1)
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

    /// How large the rows are that have come.
    pub(super) fn sizes(&self) -> Sizes {
        Sizes { largest: self.largest, mean: self.bytes.div_ceil(self.rows.max(1)) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const UNIFORM: fn(usize) -> Sizes = |bytes| Sizes { largest: bytes, mean: bytes };

    fn pages(rows: usize, bytes: usize, expected: Sizes) -> Pages {
        Pages::new(Budget { rows, bytes, page: bytes, time: Duration::from_secs(1) }, expected)
    }

    /// Reads until the budget is spent; the round trips, and how many rows were asked for in vain.
    fn read(pages: &mut Pages, size: fn(usize) -> usize) -> (usize, usize) {
        let mut trips = 0;
        while let Some(page) = pages.next() {
            trips += 1;
            for got in 1..=page {
                pages.took(size(pages.rows()));
                if pages.spent() {
                    return (trips, page - got);
                }
            }
        }
        (trips, 0)
    }

    #[test]
    fn a_page_is_no_larger_than_may_wait_on_the_connection() {
        let budget = Budget { rows: 320_000, bytes: 128_000_000, page: 8_000_000, time: Duration::from_secs(1) };
        let mut pages = Pages::new(budget, UNIFORM(200));
        assert_eq!(pages.next(), Some(40_001));
        (0..310_000).for_each(|_| pages.took(200));
        assert_eq!(pages.next(), Some(10_000));
    }

    #[test]
    fn rows_of_unknown_size_are_tried_in_a_small_page_and_then_fill_the_budget() {
        let mut pages = pages(20_000, 8_000_000, Sizes::default());
        assert_eq!(pages.next(), Some(16));
        (0..16).for_each(|_| pages.took(1_000));
        assert_eq!(pages.next(), Some((8_000_000 - 16_000) / 1_000 + 1));
        (0..16).for_each(|_| pages.took(1_000_000));
        assert!(pages.spent() && pages.next().is_none());
    }

    #[test]
    fn rows_of_known_size_come_in_one_page_that_keeps_to_rows_and_bytes() {
        assert_eq!(pages(20_000, 8_000_000, UNIFORM(200)).next(), Some(20_000));
        assert_eq!(pages(20_000, 8_000_000, UNIFORM(1_000_000)).next(), Some(9));
        assert_eq!(pages(20_000, 8_000_000, UNIFORM(64_000_000)).next(), Some(1));
        assert_eq!(pages(1, 8_000_000, Sizes::default()).next(), Some(1));
    }

    #[test]
    fn rows_that_have_become_small_are_soon_not_asked_for_as_if_they_were_large() {
        let mut pages = pages(20_000, 8_000_000, UNIFORM(400_000));
        let (trips, in_vain) = read(&mut pages, |_| 200);
        assert_eq!((pages.rows(), in_vain, pages.sizes()), (20_000, 0, UNIFORM(200)));
        assert!(trips < 100, "{trips}");
    }

    /// The sizes of a thousand rows, one of them large; where it stands in the first thousand makes no difference.
    #[test]
    fn a_few_large_rows_among_small_ones_do_not_make_a_round_trip_for_every_few_rows() {
        let early: fn(usize) -> usize = |row| if row % 1_000 == 5 { 1_000_000 } else { 200 };
        let late: fn(usize) -> usize = |row| if row % 1_000 == 900 { 1_000_000 } else { 200 };
        for size in [early, late] {
            let mut pages = pages(20_000, 8_000_000, Sizes { largest: 1_000_000, mean: 1_200 });
            let (trips, in_vain) = read(&mut pages, size);
            assert!(trips <= 12 && in_vain * 1_200 < 1_000_000, "{trips} round trips, {in_vain} rows in vain");
            let sizes = pages.sizes();
            assert!(sizes.largest == 1_000_000 && (1_000..1_500).contains(&sizes.mean), "{sizes:?}");
        }
    }

    #[test]
    fn a_page_of_rows_without_bytes_ends() {
        let mut pages = pages(40, 10, Sizes::default());
        (0..16).for_each(|_| pages.took(0));
        assert_eq!(pages.next(), Some(11));
    }
}
