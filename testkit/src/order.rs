//! The order of lanes: what was committed against what came. It knows nothing of who sent it. Pure.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// A message, when it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Came<'a> {
    /// What it must keep its order in.
    pub lane: &'a str,
    /// Of its row, in the order of the lane.
    pub number: i64,
    /// Whether it was accepted: its row is open no longer.
    pub accepted: bool,
}

/// A message that came while an earlier one of its lane was open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overtaking<'a> {
    /// The lane of both.
    pub lane: &'a str,
    /// Of the message that came.
    pub number: i64,
    /// The first that was open then.
    pub open: i64,
}

impl fmt::Display for Overtaking<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lane, number, open } = self;
        write!(f, "{number} of {lane} came while {open} was open")
    }
}

/// Each message that came while an earlier one of its lane was open, whether it was accepted itself or not. `committed` has the
/// number and the lane of each row, `came` the messages in the order in which they came; those of a lane without rows are passed
/// over.
#[must_use]
pub fn overtakings<'a>(
    committed: impl IntoIterator<Item = (i64, &'a str)>,
    came: impl IntoIterator<Item = Came<'a>>,
) -> Vec<Overtaking<'a>> {
    let mut open: HashMap<&str, BTreeSet<i64>> = HashMap::new();
    for (number, lane) in committed {
        open.entry(lane).or_default().insert(number);
    }
    let mut found = Vec::new();
    for Came { lane, number, accepted } in came {
        let Some(of_lane) = open.get_mut(lane) else { continue };
        if let Some(&first) = of_lane.range(..number).next() {
            found.push(Overtaking { lane, number, open: first });
        }
        if accepted {
            of_lane.remove(&number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 3 and 5 are of one lane, 2 and 4 of another. A negative number is one that was not accepted.
    fn found(numbers: &[i64]) -> Vec<(i64, i64)> {
        let lane = |number: i64| if number % 2 == 1 { "odd" } else { "even" };
        let came = numbers.iter().map(|n| Came { lane: lane(n.abs()), number: n.abs(), accepted: *n > 0 });
        overtakings((1..=5).map(|n| (n, lane(n))), came).iter().map(|one| (one.number, one.open)).collect()
    }

    #[test]
    fn message_that_comes_while_an_earlier_one_of_its_lane_is_open_is_found() {
        assert_eq!(found(&[3, 1, 5]), [(3, 1)]);
        assert_eq!(found(&[5, 3, 1]), [(5, 1), (3, 1)]);
        assert_eq!(found(&[-1, 3]), [(3, 1)]);
        assert_eq!(found(&[-3, 1, 3]), [(3, 1)], "refused itself, it has overtaken all the same");
        assert_eq!(found(&[1, -3, -5]), [(5, 3)]);
        assert_eq!(found(&[4]), [(4, 2)]);
    }

    #[test]
    fn order_repeats_and_other_lanes_are_no_overtaking() {
        for came in [&[1, 2, 3, 4, 5][..], &[2, 4, 1, 3, 5], &[1, 3, 1, 3, 5], &[-1, -1, 1, 3], &[1, 3, -1, 5]] {
            assert!(found(came).is_empty(), "{came:?}");
        }
        let stranger = Came { lane: "other", number: 9, accepted: true };
        assert!(overtakings([(1, "odd")], [stranger]).is_empty());
    }

    #[test]
    fn overtaking_says_what_came_and_what_was_open() {
        let one = Overtaking { lane: "k7", number: 3, open: 1 };
        assert_eq!(one.to_string(), "3 of k7 came while 1 was open");
    }
}
