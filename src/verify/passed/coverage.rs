//! Which places of a cursor its slices cover, and which none does. Pure.
//!
//! Promise: every place of the bounds is in a slice or in a gap. Of ids that only PostgreSQL can compare, a place that may be uncovered
//! counts as such: who reads the gap finds no row there if it is not.

use std::collections::VecDeque;

use crate::cursor::audit_slices::RecordedSlice;
use crate::position::{Position, Timestamp};
use crate::source::range::Bounds;
use crate::source::shape::IdType;

/// A part of the places that a cursor has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// It is recorded.
    Recorded(&'a RecordedSlice),
    /// It is not.
    Unrecorded(Gap<'a>),
}

/// Places that no slice covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Gap<'a> {
    /// Between these.
    pub(super) bounds: Bounds,
    /// The slice that ends where it begins; none where it is the first.
    pub(super) before: Option<&'a RecordedSlice>,
}

impl Gap<'_> {
    /// Whether a slice has places of it, as far as their instants tell.
    pub(super) fn meets(&self, slice: &RecordedSlice) -> bool {
        slice.up_to.created_at >= self.bounds.after.created_at && slice.after.created_at <= self.bounds.up_to.created_at
    }

    /// Whether a record of its rows would still be there if there had been one: the slice before it ended after this instant, or has not
    /// ended. None where there is no such slice.
    pub(super) fn would_be_recorded(&self, since: Timestamp) -> Option<bool> {
        self.before.map(|slice| slice.ended_at.is_none_or(|at| at > since))
    }
}

/// The pieces of the bounds, in order, with the slices that reach beyond them.
pub(super) fn pieces<'a>(bounds: &Bounds, mut slices: Vec<&'a RecordedSlice>, ids: IdType) -> Vec<Piece<'a>> {
    slices.sort_by_key(|slice| (slice.after.created_at, slice.up_to.created_at));
    let (mut rest, mut pieces): (VecDeque<&RecordedSlice>, Vec<Piece<'_>>) = (slices.into(), Vec::new());
    let (mut covered, mut before) = (&bounds.after, None);
    while let Some(slice) = next(&mut rest, covered) {
        if is_after(&slice.after, covered, ids) {
            let bounds = Bounds { after: covered.clone(), up_to: slice.after.clone() };
            pieces.push(Piece::Unrecorded(Gap { bounds, before }));
        }
        let covers_more = is_after(&slice.up_to, covered, ids);
        // Rows that an unrecorded turn gave back, because they were not sent, are in the slice of the turn that passed them.
        if covers_more || !slice.is_unrecorded {
            pieces.push(Piece::Recorded(slice));
        }
        if covers_more {
            (covered, before) = (&slice.up_to, Some(slice));
        }
    }
    if is_after(&bounds.up_to, covered, ids) {
        let bounds = Bounds { after: covered.clone(), up_to: bounds.up_to.clone() };
        pieces.push(Piece::Unrecorded(Gap { bounds, before }));
    }
    pieces
}

/// The slice that begins where the others end, one with sums before one without, or else the one that begins first: of those of one
/// instant the order is not known.
fn next<'a>(rest: &mut VecDeque<&'a RecordedSlice>, covered: &Position) -> Option<&'a RecordedSlice> {
    let begins = |is_unrecorded: bool| {
        let mut possible = rest.iter().take_while(|slice| slice.after.created_at <= covered.created_at);
        possible.position(|slice| slice.after == *covered && slice.is_unrecorded == is_unrecorded)
    };
    let number = begins(false).or_else(|| begins(true)).unwrap_or(0);
    rest.remove(number)
}

/// Whether a place comes after another one, or may.
fn is_after(place: &Position, other: &Position, ids: IdType) -> bool {
    if place.created_at != other.created_at {
        return place.created_at > other.created_at;
    }
    match (&place.id, &other.id) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(id), Some(other)) => id != other && ids.is_before(id, other) != Some(true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(instant: i64, id: Option<i64>) -> Position {
        Position { created_at: Timestamp::from_pg_micros(instant), id: id.map(|id| id.to_string()) }
    }

    fn slice(after: Position, up_to: Position, ended_at: Option<i64>) -> RecordedSlice {
        let ended_at = ended_at.map(Timestamp::from_pg_micros);
        RecordedSlice { reads: 1, after, up_to, sums: None, is_unrecorded: false, ended_at }
    }

    /// The pieces in words: a slice by the instants it lies between, a gap in brackets.
    fn told(bounds: &Bounds, slices: &[RecordedSlice], ids: IdType) -> Vec<String> {
        let place = |place: &Position| {
            let id = place.id.as_ref().map_or_else(String::new, |id| format!("/{id}"));
            format!("{}{id}", place.created_at.pg_micros())
        };
        let piece = |piece: &Piece<'_>| match piece {
            Piece::Recorded(slice) => format!("{}-{}", place(&slice.after), place(&slice.up_to)),
            Piece::Unrecorded(gap) => format!("[{}-{}]", place(&gap.bounds.after), place(&gap.bounds.up_to)),
        };
        pieces(bounds, slices.iter().collect(), ids).iter().map(piece).collect()
    }

    #[test]
    fn slices_that_follow_each_other_leave_no_gap() {
        let bounds = Bounds { after: at(5, None), up_to: at(30, Some(3)) };
        let slices = [
            slice(at(3, Some(1)), at(10, Some(7)), Some(11)),
            slice(at(10, Some(7)), at(20, Some(2)), Some(21)),
            slice(at(20, Some(2)), at(30, Some(3)), None),
        ];
        assert_eq!(told(&bounds, &slices, IdType::BigInt), ["3/1-10/7", "10/7-20/2", "20/2-30/3"]);
    }

    #[test]
    fn places_before_between_and_after_slices_are_gaps() {
        let bounds = Bounds { after: at(5, None), up_to: at(40, Some(3)) };
        let slices =
            [slice(at(20, Some(2)), at(30, Some(3)), Some(31)), slice(at(8, Some(1)), at(10, Some(7)), Some(11))];
        let expected = ["[5-8/1]", "8/1-10/7", "[10/7-20/2]", "20/2-30/3", "[30/3-40/3]"];
        assert_eq!(told(&bounds, &slices, IdType::BigInt), expected);
        assert_eq!(told(&bounds, &[], IdType::BigInt), ["[5-40/3]"]);
    }

    #[test]
    fn slices_of_one_instant_are_put_in_order_by_their_places() {
        let bounds = Bounds { after: at(5, None), up_to: at(5, Some(90)) };
        let slices = [
            slice(at(5, Some(60)), at(5, Some(90)), None),
            slice(at(5, None), at(5, Some(30)), Some(6)),
            slice(at(5, Some(30)), at(5, Some(60)), Some(7)),
        ];
        for ids in [IdType::BigInt, IdType::Text] {
            assert_eq!(told(&bounds, &slices, ids), ["5-5/30", "5/30-5/60", "5/60-5/90"]);
        }
    }

    #[test]
    fn slice_within_another_covers_nothing_more() {
        let bounds = Bounds { after: at(1, None), up_to: at(30, None) };
        let slices = [slice(at(1, None), at(20, None), Some(21)), slice(at(3, Some(1)), at(9, Some(2)), Some(10))];
        assert_eq!(told(&bounds, &slices, IdType::BigInt), ["1-20", "3/1-9/2", "[20-30]"]);
    }

    #[test]
    fn rows_that_an_unrecorded_turn_gave_back_are_in_the_slice_of_the_turn_that_passed_them() {
        let unrecorded = RecordedSlice { is_unrecorded: true, ..slice(at(1, None), at(5, Some(1)), Some(6)) };
        let bounds = Bounds { after: at(1, None), up_to: at(20, None) };
        let passed = slice(at(1, None), at(20, None), Some(21));
        assert_eq!(told(&bounds, &[unrecorded.clone(), passed], IdType::BigInt), ["1-20"]);
        let later = slice(at(5, Some(1)), at(20, None), Some(21));
        assert_eq!(told(&bounds, &[unrecorded, later], IdType::BigInt), ["1-5/1", "5/1-20"], "it has passed them");
    }

    #[test]
    fn record_that_may_be_deleted_by_now_is_told_from_one_that_never_was() {
        let bounds = Bounds { after: at(1, None), up_to: at(30, None) };
        let slices = [slice(at(1, None), at(10, None), Some(100)), slice(at(20, None), at(30, None), None)];
        let gap = |slices: &[RecordedSlice], since: i64| {
            let found = pieces(&bounds, slices.iter().collect(), IdType::BigInt);
            let gap = found.into_iter().find_map(|piece| match piece {
                Piece::Unrecorded(gap) => Some(gap.would_be_recorded(Timestamp::from_pg_micros(since))),
                Piece::Recorded(_) => None,
            });
            gap.expect("a gap")
        };
        assert_eq!([gap(&slices, 99), gap(&slices, 100)], [Some(true), Some(false)]);
        assert_eq!(gap(&slices[1..], 99), None, "there is no slice before it");
        let open = [slice(at(1, None), at(10, None), None)];
        assert_eq!(gap(&open, 1_000), Some(true));
    }
}
