//! The verdict: the rows of the table, against what came to the provider. It knows nothing of the relays but which of them have
//! lanes.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::IN_FLIGHT;
use crate::delivery::Verdict;

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
        let mut open: HashMap<&str, BTreeSet<i64>> = HashMap::new();
        for row in rows {
            open.entry(&row.phone).or_default().insert(row.id);
        }
        let (mut figures, mut accepted, mut numbers) = (Self::default(), HashSet::new(), HashSet::new());
        for arrival in arrivals {
            let Some(phone) = phones.get(&arrival.id).copied() else {
                figures.phantom += 1;
                continue;
            };
            let of_number = open.entry(phone).or_default();
            if of_number.range(..arrival.id).next().is_some() {
                figures.overtaking += 1;
                numbers.insert(phone);
            }
            if arrival.accepted {
                of_number.remove(&arrival.id);
                figures.repeated += usize::from(!accepted.insert(arrival.id));
                figures.unanswered += usize::from(!arrival.answered);
            }
        }
        Self { sent: accepted.len(), waiting: rows.len() - accepted.len(), numbers: numbers.len(), ..figures }
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
