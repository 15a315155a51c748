//! What operators have done with a relay's cursors, as far as it tells why a row was never sent. Pure.
//!
//! Promise: of the operations that concern a row, the newest one decides. What one passed over, and a later one led back to, was to
//! be sent; and what an operator did with one shard says nothing of another's rows. Where it is not known whether a row was passed over,
//! that is the answer: such a row is neither equal nor to be published.

use std::collections::{BTreeMap, HashMap};

use super::decide::{Known, Withheld};
use super::history::Standing;
use crate::position::{Position, Timestamp};
use crate::relay::Start;
use outcome::Outcome;
use steps::Step;

mod ended;
mod outcome;
mod steps;

pub use ended::{Ended, Handover, RecordEnd};
pub use steps::Row;

/// A row of `outbox.operation`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Its number.
    pub id: i64,
    /// When it was noted.
    pub at: Option<Timestamp>,
    /// What was done.
    pub verb: String,
    /// With which cursor, or with those of which relay.
    pub cursor: String,
    /// The relay's former name, or as JSON the names of its former cursors.
    pub former: Option<String>,
    /// Where the cursor stood; none is before every row.
    pub from: Option<Position>,
    /// Where it was to stand; of a change that was carried out, where it stood then; of a reshard, where the new cursors began.
    pub to: Option<Position>,
    /// Whether it is a change that was carried out and says where: replicas of older versions did not note that.
    pub is_placed: bool,
    /// Whether it accepts no more than another number of partitions of the topic.
    pub is_of_topic: bool,
    /// The number of the change that was ordered, or carried out; orders of older versions have none.
    pub number: Option<i64>,
    /// Whether that has moved the cursor.
    pub moved: Option<bool>,
}

/// A note that dead letters of a cursor were given up, or what stands for it: older versions noted no rows.
#[derive(Clone, Debug)]
pub struct GivenUp {
    operation: i64,
    generation: usize,
    shard: String,
}

/// What the operations say of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was not to be sent, for this reason.
    Passed(Known),
    /// It was to be sent.
    Due,
    /// Whether it was to be sent is not known, for this reason.
    Unclear(Withheld),
    /// Nothing: none of them concerns it.
    Nothing,
}

#[derive(Clone, Debug)]
struct Event {
    operation: i64,
    /// How many sets of cursors have followed the one that it was done with.
    generation: usize,
    shard: String,
    step: Step,
}

/// What operators have done with a relay's cursors.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The relay's names, the former ones too: records have the one of their time.
    pub names: Vec<String>,
    /// The newest first.
    events: Vec<Event>,
    /// By their numbers.
    given_up: BTreeMap<i64, GivenUp>,
    /// The shards of each set of cursors that another set has replaced, the newest first.
    former: Vec<Vec<String>>,
    /// The cursors of those sets, the newest first.
    ended: Vec<Ended>,
    /// Where each of those sets ended, the newest first.
    handovers: Vec<Handover>,
    /// When the relay began by its configuration; none where that is not known.
    began: Option<Timestamp>,
}

impl History {
    /// Of the relay of this name, from the operations with all relays, the newest first.
    #[must_use]
    pub fn of(relay: &str, operations: impl IntoIterator<Item = Operation>) -> Self {
        let mut history = Self { names: vec![relay.to_owned()], ..Self::default() };
        let mut name = relay.to_owned();
        // Of each shard, by the numbers of the changes.
        let mut outcomes: HashMap<String, BTreeMap<i64, Outcome>> = HashMap::new();
        for operation in operations {
            // Until then another relay had the name.
            if operation.verb == "cursor rename" && operation.former.as_deref() == Some(name.as_str()) {
                break;
            }
            let (of, shard) = parts(&operation.cursor);
            if of != name {
                continue;
            }
            let shard = shard.to_owned();
            match operation.verb.as_str() {
                // What came before was done with other cursors, which had other rows to send.
                "cursor remove" => break,
                "cursor rename" => {
                    let Some(former) = operation.former else { continue };
                    history.names.push(former.clone());
                    name = former;
                }
                "cursor reshard" => {
                    history.end(&operation);
                    outcomes.clear();
                }
                "change applied" => {
                    let number = operation.number.unwrap_or_default();
                    outcomes.entry(shard).or_default().insert(number, Outcome::of(operation));
                }
                "dead-letter discard" => {
                    let given_up = GivenUp { operation: operation.id, generation: history.former.len(), shard };
                    history.given_up.insert(operation.id, given_up);
                }
                _ => {
                    let outcome = outcomes.get_mut(&shard).and_then(|outcomes| operation.outcome(outcomes));
                    history.add(operation, shard, outcome);
                }
            }
        }
        history
    }

    fn add(&mut self, operation: Operation, shard: String, outcome: Option<Outcome>) {
        let Operation { id, verb, from, to, is_of_topic, .. } = operation;
        let moved = outcome.as_ref().is_some_and(|outcome| outcome.moved);
        let step = match verb.as_str() {
            "cursor create" => Some(Step::Began(to)),
            "position moved back" => Some(Step::WentBack(to)),
            "cursor seek" if moved => Some(Step::Moved { from, to }),
            "cursor skip" if moved => to.map(Step::Skipped),
            "cursor adopt" if !is_of_topic => outcome.and_then(Outcome::adopted),
            // Not carried out, or where the cursor had moved on meanwhile.
            _ => None,
        };
        let generation = self.former.len();
        self.events.extend(step.map(|step| Event { operation: id, generation, shard, step }));
    }

    /// Learns when the relay began by its configuration: what is older is not its to deliver.
    pub fn begin(&mut self, start: Start, standings: &[Option<Standing>]) {
        self.began = match start {
            Start::Beginning => None,
            Start::At(instant) => Some(instant),
            // Its cursors are younger than the relay.
            Start::Now if !self.former.is_empty() => None,
            Start::Now => standings.iter().flatten().map(|standing| standing.created_at).min(),
        };
    }

    /// The notes that dead letters were given up, by their numbers.
    #[must_use]
    pub fn discards(&self) -> Vec<i64> {
        self.given_up.keys().copied().collect()
    }

    /// The note of this number; none if it is one of another relay.
    #[must_use]
    pub fn given_up(&self, operation: i64) -> Option<&GivenUp> {
        self.given_up.get(&operation)
    }

    /// What they say of a row that is of this shard now. Of which former cursor it was is mostly not known: it was passed over if each
    /// of those that it may have been of says so.
    #[must_use]
    pub fn says(&self, row: Row<'_>, shard: &str) -> Said {
        let (mut passed, mut due, mut adopted, mut open) = (None, false, false, true);
        for generation in 0..=self.former.len() {
            let shards = self.shards(row, generation, shard);
            open = shards.is_empty();
            for shard in shards {
                let (said, accepted) = self.of_cursor(row, generation, shard);
                adopted |= accepted;
                match said {
                    Said::Passed(known) => passed = Some(known),
                    Said::Due => due = true,
                    // What was done before the cursor was made may concern the row.
                    Said::Unclear(_) | Said::Nothing => open = true,
                }
            }
            if !open {
                break;
            }
        }
        if open && self.began.is_some_and(|began| row.at < began) {
            passed = passed.or(Some(Known::BeforeStart));
            open = false;
        }
        match passed {
            Some(known) if !due && !open => Said::Passed(known),
            Some(_) => Said::Unclear(Withheld::FormerShard),
            None if adopted => Said::Unclear(Withheld::Adopted),
            None if due => Said::Due,
            None => Said::Nothing,
        }
    }

    /// The shards that a row may have been of in this set of cursors: the one that noted this very row, or else any.
    fn shards<'a>(&'a self, row: Row<'a>, generation: usize, now: &'a str) -> Vec<&'a str> {
        let Some(set) = generation.checked_sub(1).and_then(|former| self.former.get(former)) else { return vec![now] };
        let given_up = row.given_up.filter(|given_up| given_up.generation == generation);
        let skipped = self.events.iter().find(|event| event.generation == generation && event.step.skips(row));
        let skipped = skipped.map(|event| event.shard.as_str());
        let noted = given_up.map(|given_up| given_up.shard.as_str()).or(skipped);
        noted.map_or_else(|| set.iter().map(String::as_str).collect(), |shard| vec![shard])
    }

    /// What was done with one cursor says of a row, and whether the cursor may have accepted since then that the row is not sent.
    fn of_cursor(&self, row: Row<'_>, generation: usize, shard: &str) -> (Said, bool) {
        let since = row.given_up.map_or(i64::MIN, |given_up| given_up.operation);
        let newer = self.events.iter().take_while(|event| event.operation > since);
        let mut adopted = false;
        for event in newer.filter(|event| event.generation == generation && event.shard == shard) {
            adopted |= event.step.accepts(row);
            match event.step.says(row) {
                // Rows beyond the position are given up, too, and do not come again when it moves on.
                Said::Due if row.given_up.is_some() && !event.step.leads_back() => {}
                Said::Nothing => {}
                said => return (said, adopted),
            }
        }
        let given_up = row.given_up.filter(|given_up| given_up.generation == generation);
        (given_up.map_or(Said::Nothing, |_| Said::Passed(Known::Discarded)), adopted)
    }

    /// How often an operator has moved its cursor back over a row of this shard. If its shard is not known, which is so of former sets of
    /// cursors and of a row that is gone, it is the one that was moved back most often.
    #[must_use]
    pub fn moved_back(&self, at: Timestamp, shard: Option<&str>) -> u64 {
        let of_set = |generation: usize| {
            let mut moves: HashMap<&str, u64> = HashMap::new();
            let of_row = |event: &&Event| generation > 0 || shard.is_none_or(|shard| shard == event.shard);
            let events = self.events.iter().filter(|event| event.generation == generation && event.step.repeats(at));
            for event in events.filter(of_row) {
                *moves.entry(event.shard.as_str()).or_default() += 1;
            }
            moves.into_values().max().unwrap_or(0)
        };
        (0..=self.former.len()).map(of_set).sum()
    }
}

/// A cursor's name: its relay's, and what tells it from the other shards.
pub(super) fn parts(cursor: &str) -> (&str, &str) {
    cursor.split_at(cursor.find('#').unwrap_or(cursor.len()))
}

#[cfg(test)]
mod tests;
