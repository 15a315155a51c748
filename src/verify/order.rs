//! Records that come after one of a later row of their lane. Pure.
//!
//! Blocks that come again after a kill are below what came before them, too: whether such a record is its row's first is known
//! when the records of its id are looked at by themselves.

use std::collections::HashMap;

use super::sketch::Key;
use crate::position::Timestamp;

/// So many records are remembered at most, and so many lanes.
const MOST: usize = 200_000;

/// Records whose order is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Those of a partition, by its number among all that are read.
    Partition(u32),
    /// Those of a key in it, by a hash of the key; those without one together.
    Key(u32, Option<u64>),
}

/// A row's place, as far as it can be compared without PostgreSQL: ids that are texts have an order of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    at: Timestamp,
    tie: Option<u128>,
}

impl Place {
    /// Of a row; `ordered` says that ids are numbers or UUIDs.
    #[must_use]
    pub fn new(at: Timestamp, id: &str, ordered: bool) -> Self {
        Self { at, tie: ordered.then(|| number(id)).flatten() }
    }

    fn is_below(self, other: Self) -> bool {
        match (self.tie, other.tie) {
            (Some(_), Some(_)) => self < other,
            _ => self.at < other.at,
        }
    }
}

/// An integer, or a UUID in hexadecimal digits, as a number that is ordered alike.
fn number(id: &str) -> Option<u128> {
    if let Ok(number) = id.parse::<i64>() {
        return u128::try_from(i128::from(number) - i128::from(i64::MIN)).ok();
    }
    u128::from_str_radix(&id.replace('-', ""), 16).ok()
}

/// A record below the greatest of its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Below {
    /// Its id.
    pub key: Key,
    /// Its partition.
    pub partition: u32,
    /// Its offset.
    pub offset: i64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Order {
    greatest: HashMap<Lane, Place>,
    /// What was below.
    pub below: Vec<Below>,
    /// Records that were not judged, because there were too many lanes or too many below.
    pub unjudged: u64,
}

impl Order {
    /// The next record of a lane; whether it was below the greatest and is remembered as such.
    pub fn see(&mut self, lane: Lane, place: Place, record: Below) -> bool {
        let has_room = self.greatest.len() < MOST;
        match self.greatest.get_mut(&lane) {
            Some(greatest) if place.is_below(*greatest) => {
                if self.below.len() < MOST {
                    self.below.push(record);
                    return true;
                }
                self.unjudged += 1;
            }
            Some(greatest) => *greatest = place,
            None if has_room => {
                self.greatest.insert(lane, place);
            }
            None => self.unjudged += 1,
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(records: &[(u32, i64, &str)], ordered: bool) -> Vec<i64> {
        let mut order = Order::default();
        for (offset, (partition, at, id)) in records.iter().enumerate() {
            let lane = Lane::Partition(*partition);
            let offset = i64::try_from(offset).expect("few");
            let place = Place::new(Timestamp::from_pg_micros(*at), id, ordered);
            order.see(lane, place, Below { key: Key::of(1), partition: *partition, offset });
        }
        order.below.iter().map(|below| below.offset).collect()
    }

    // Guarantee: verify.order
    #[test]
    fn records_below_the_greatest_of_their_lane_are_found() {
        assert_eq!(below(&[(0, 1, "1"), (0, 2, "2"), (0, 2, "10"), (1, 1, "3")], true), [0_i64; 0]);
        assert_eq!(below(&[(0, 1, "1"), (0, 3, "3"), (0, 2, "2"), (0, 4, "4")], true), [2]);
        assert_eq!(below(&[(0, 1, "9"), (0, 1, "-10")], true), [1]);
        assert_eq!(below(&[(0, 1, "b"), (0, 1, "a")], false), [0_i64; 0], "only PostgreSQL orders texts");
        let ids = ["0b000000-0000-0000-0000-000000000000", "0a000000-0000-0000-0000-000000000000"];
        assert_eq!(below(&[(0, 1, ids[0]), (0, 1, ids[1])], true), [1]);
    }
}
