//! The verdict: the rows of the table, against what came to the provider. It knows nothing of the relays but which of them have
//! lanes.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::IN_FLIGHT;
use crate::delivery::Verdict;
use crate::order::{self, Came};

/// A message, by its number in the order of the table, and whom it goes to.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: i64,
    pub(super) phone: String,
}

/// A message that came to the provider.
#[derive(Clone, Debug)]
pub(super) struct Arrival {
    pub(super) id: i64,
    pub(super) accepted: bool,
    /// The sender may know it: the answer was in good time.
    pub(super) answered: bool,
}

/// What the provider has of one relay.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    /// Different messages that were accepted.
    pub(super) sent: usize,
    /// Those that were not.
    pub(super) waiting: usize,
    /// Acceptances behind the first of their message.
    pub(super) repeated: usize,
    /// Acceptances that the sender may not know of.
    pub(super) unanswered: usize,
    /// What came and is no row of the table.
    pub(super) phantom: usize,
    /// Messages that came while an earlier one to their number had not been accepted.
    pub(super) overtaking: usize,
    /// Numbers to which that happened.
    pub(super) numbers: usize,
}

/// Of the three relays in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    pub(super) relays: [Figures; 3],
    pub(super) kills: usize,
}

impl Figures {
    /// `arrivals`: in the order in which they came.
    pub(super) fn of(rows: &[Row], arrivals: &[Arrival]) -> Self {
        let phones: HashMap<i64, &str> = rows.iter().map(|row| (row.id, row.phone.as_str())).collect();
        let known: Vec<(&Arrival, &str)> =
            arrivals.iter().filter_map(|arrival| Some((arrival, *phones.get(&arrival.id)?))).collect();
        let came = known.iter().map(|(arrival, lane)| Came { lane, number: arrival.id, accepted: arrival.accepted });
        let overtakings = order::overtakings(rows.iter().map(|row| (row.id, row.phone.as_str())), came);
        let numbers: HashSet<&str> = overtakings.iter().map(|one| one.lane).collect();
        let taken: Vec<&Arrival> = known.iter().map(|(arrival, _)| *arrival).filter(|one| one.accepted).collect();
        let accepted: HashSet<i64> = taken.iter().map(|arrival| arrival.id).collect();
        Self {
            sent: accepted.len(),
            waiting: rows.len() - accepted.len(),
            repeated: taken.len() - accepted.len(),
            unanswered: taken.iter().filter(|arrival| !arrival.answered).count(),
            phantom: arrivals.len() - known.len(),
            overtaking: overtakings.len(),
            numbers: numbers.len(),
        }
    }
}

impl Findings {
    /// How many messages of a relay may have come again: what killed replicas had on their way, and what was not answered in time.
    fn explained(&self, figures: &Figures) -> usize {
        self.kills * IN_FLIGHT + figures.unanswered
    }

    /// What is promised, in words, and whether it is so.
    pub(super) fn promises(&self) -> [(&'static str, bool); 4] {
        let [_, lanes, requests] = &self.relays;
        let all = |is_so: &dyn Fn(&Figures) -> bool| self.relays.iter().all(is_so);
        [
            ("each message arrives, and none is made up", all(&|one| one.waiting + one.phantom == 0)),
            ("lanes: each number gets its messages in order, one at a time", lanes.overtaking == 0),
            ("requests: so it does, by requests", requests.overtaking == 0),
            (
                "nothing comes twice but by a kill, or without an answer in time",
                all(&|one| one.repeated <= self.explained(one)),
            ),
        ]
    }

    /// Undecided where the rows that are sent each on their own came in order, too: then nothing had to be kept.
    pub(super) fn verdict(&self) -> Verdict {
        if self.promises().iter().any(|(_, is_so)| !is_so) {
            return Verdict::Fail;
        }
        if self.relays[0].overtaking == 0 { Verdict::Undecided } else { Verdict::Pass }
    }
}

#[cfg(test)]
mod tests;
