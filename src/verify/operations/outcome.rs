//! What a change that an operator ordered has come to, by the note that a replica made when it carried it out. Pure.

use std::collections::BTreeMap;

use super::Operation;
use super::steps::Step;
use crate::position::{Position, Timestamp};

/// What was noted of a change when it was carried out.
#[derive(Clone, Debug)]
pub(super) struct Outcome {
    pub(super) moved: bool,
    at: Option<Timestamp>,
    /// Where the cursor stood then, if that was noted.
    place: Option<Option<Position>>,
}

impl Outcome {
    pub(super) fn of(note: Operation) -> Self {
        let place = note.is_placed.then_some(note.to);
        Self { moved: note.moved.unwrap_or_default(), at: note.at, place }
    }

    /// What it says of a cursor that took over something else.
    pub(super) fn adopted(self) -> Option<Step> {
        match self.place {
            Some(place) => Some(Step::Adopted(place)),
            None => self.at.map(Step::AdoptedAt),
        }
    }
}

impl Operation {
    /// What a change has come to, by the outcomes of its cursor that were noted after it.
    pub(super) fn outcome(&self, outcomes: &mut BTreeMap<i64, Outcome>) -> Option<Outcome> {
        if !matches!(self.verb.as_str(), "cursor seek" | "cursor skip" | "cursor adopt") {
            return None;
        }
        match self.number {
            Some(number) => outcomes.remove(&number),
            // A replica may note one change when the next one is written already: the highest number is this one's.
            None => outcomes.pop_last().map(|(_, outcome)| outcome),
        }
    }
}
