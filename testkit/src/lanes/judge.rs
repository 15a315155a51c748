//! The verdict: the rows of the table, against what the provider has accepted. It knows nothing of the relays but their policies, and
//! how many dead letters and parked rows are listed.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::Serialize;

use super::IN_FLIGHT;
use crate::delivery::Verdict;

/// A row, in the order of the table.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) number: String,
}

/// What the provider has of one relay, and what is listed for it, at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Figures {
    /// Different rows that were accepted.
    pub(super) sent: usize,
    /// Rows that were neither accepted nor became a dead letter.
    pub(super) waiting: usize,
    /// Of these, rows of numbers that the provider does not refuse.
    pub(super) waiting_others: usize,
    pub(super) dead_letters: usize,
    /// Rows that wait in `outbox.parked`, the dead letter's own included.
    pub(super) parked: usize,
    /// Acceptances behind the first of their row.
    pub(super) repeated: usize,
    /// Accepted, and no row of the table.
    pub(super) phantom: usize,
    /// Numbers of which a row was first accepted after a later one.
    pub(super) out_of_order: Vec<String>,
}

/// Of the three relays in their order, at both times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// The number that is refused.
    pub(super) refused: String,
    /// How many rows it had, while it was.
    pub(super) refused_rows: usize,
    /// Before the provider takes the number again, when nothing moves any more.
    pub(super) meanwhile: [Figures; 3],
    /// When everything has settled.
    pub(super) end: [Figures; 3],
    pub(super) kills: usize,
}

impl Figures {
    /// `accepted`: the ids, in the order of their acceptance.
    pub(super) fn of(rows: &[Row], accepted: &[String], refused: &str, (dead_letters, parked): (usize, usize)) -> Self {
        let ranks: HashMap<&str, usize> = rows.iter().enumerate().map(|(rank, row)| (row.id.as_str(), rank)).collect();
        let (mut seen, mut highest) = (HashSet::new(), HashMap::<&str, usize>::new());
        let (mut phantom, mut out_of_order) = (0, BTreeSet::new());
        for id in accepted {
            let Some(&rank) = ranks.get(id.as_str()) else {
                phantom += 1;
                continue;
            };
            if !seen.insert(rank) {
                continue;
            }
            let number = rows[rank].number.as_str();
            let last = highest.entry(number).or_insert(rank);
            if rank < *last {
                out_of_order.insert(number.to_owned());
            }
            *last = rank.max(*last);
        }
        let waiting_others =
            (0..rows.len()).filter(|rank| !seen.contains(rank) && rows[*rank].number != refused).count();
        Self {
            sent: seen.len(),
            waiting: (rows.len() - seen.len()).saturating_sub(dead_letters),
            waiting_others,
            dead_letters,
            parked,
            repeated: accepted.len() - phantom - seen.len(),
            phantom,
            out_of_order: out_of_order.into_iter().collect(),
        }
    }
}

impl Findings {
    /// How many messages kills may have repeated at one relay: what it had on its way, or the messages that an operator had it send again.
    pub(super) fn explained(&self) -> usize {
        self.kills * IN_FLIGHT.max(self.refused_rows)
    }

    /// What is promised, in words, and whether it is so.
    pub(super) fn promises(&self) -> [(&'static str, bool); 7] {
        let [halt, dead_letter, park_key] = &self.meanwhile;
        let in_order = |figures: &Figures| figures.out_of_order.is_empty();
        let all = |is_so: &dyn Fn(&Figures) -> bool| self.end.iter().all(is_so);
        let [halted, passed, parked] = &self.end;
        [
            (
                "halt: it writes no dead letter, and other numbers wait too",
                halt.dead_letters == 0 && halt.waiting_others > 0,
            ),
            (
                "dead_letter: all other numbers get theirs, each refused message is a dead letter",
                dead_letter.waiting == 0 && dead_letter.dead_letters == self.refused_rows,
            ),
            (
                "park_key: all other numbers get theirs, the first refused message is the dead letter, those behind it wait",
                park_key.waiting_others == 0 && park_key.dead_letters == 1 && park_key.parked == self.refused_rows,
            ),
            (
                "nothing is lost or made up, nothing waits at the end",
                all(&|end| end.waiting + end.dead_letters + end.parked + end.phantom == 0),
            ),
            ("nothing comes twice but by a kill", all(&|end| end.repeated <= self.explained())),
            ("halt and park_key: each number gets its messages in order", in_order(halted) && in_order(parked)),
            (
                "dead_letter: each other number gets its messages in order",
                passed.out_of_order.iter().all(|number| *number == self.refused),
            ),
        ]
    }

    /// Undecided where the number had no two messages, or later ones did not pass the refused ones where they may.
    pub(super) fn verdict(&self) -> Verdict {
        if self.promises().iter().any(|(_, is_so)| !is_so) {
            return Verdict::Fail;
        }
        if self.refused_rows < 2 || self.end[1].out_of_order.is_empty() { Verdict::Undecided } else { Verdict::Pass }
    }
}

#[cfg(test)]
mod tests;
