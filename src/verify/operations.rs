//! What operators have done with a relay's cursors, as far as it tells why a row was never sent. Pure.
//!
//! Promise: of the operations that concern a row, the newest one decides. What one passed over, and a later one led back to, was to
//! be sent; and what an operator did with one shard says nothing of another's rows.

use std::collections::{BTreeMap, HashMap};

use super::decide::Known;
use super::history::Standing;
use crate::position::{Position, Timestamp};
use crate::relay::Start;
use crate::source::shape::IdType;

/// A row of `outbox.operation`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    /// Its number.
    pub id: i64,
    /// What was done.
    pub verb: String,
    /// With which cursor, or with those of which relay.
    pub cursor: String,
    /// The relay's former name, or as JSON the names of its former cursors.
    pub former: Option<String>,
    /// Where the cursor stood; none is before every row.
    pub from: Option<Position>,
    /// Where it was to stand.
    pub to: Option<Position>,
    /// The number of a change that was carried out.
    pub number: Option<i64>,
    /// Whether that has moved the cursor.
    pub moved: Option<bool>,
}

/// A row that the topic lacks.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its instant.
    pub at: Timestamp,
    /// The type of the table's ids.
    pub ids: IdType,
}

/// What the operations say of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// It was not to be sent, for this reason.
    Passed(Known),
    /// It was to be sent.
    Due,
    /// Nothing: none of them concerns it.
    Nothing,
}

/// What has become of a cursor's position.
#[derive(Clone, Debug)]
enum Step {
    /// An operator has moved it.
    Moved { from: Option<Position>, to: Option<Position> },
    /// An operator has moved it over this row alone.
    Skipped(Position),
    /// An operator has made the cursor there.
    Began(Option<Position>),
    /// The relay has moved it back.
    WentBack(Option<Position>),
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
    /// The same, each with the operation that gave it, the newest first: another relay may have had the name before.
    eras: Vec<(String, i64)>,
    /// The newest first.
    events: Vec<Event>,
    /// The shards of each set of cursors that another set has replaced, the newest first.
    former: Vec<Vec<String>>,
}

impl Row<'_> {
    /// Whether it comes after a place; none where only PostgreSQL can tell, which alone orders texts.
    fn is_after(&self, place: Option<&Position>) -> Option<bool> {
        let Some(Position { created_at, id }) = place else { return Some(true) };
        match id {
            _ if self.at != *created_at => Some(self.at > *created_at),
            None => Some(true),
            Some(id) if id == self.id => Some(false),
            Some(id) => self.ids.is_before(id, self.id),
        }
    }

    fn is_at(&self, place: &Position) -> bool {
        self.at == place.created_at && place.id.as_deref() == Some(self.id)
    }
}

impl Step {
    fn says(&self, row: Row<'_>) -> Said {
        let to = match self {
            Self::Moved { to, .. } | Self::Began(to) | Self::WentBack(to) => to.as_ref(),
            Self::Skipped(place) => Some(place),
        };
        if row.is_after(to) == Some(true) {
            return Said::Due;
        }
        match self {
            // Where the order of one instant's rows is not known, all of them count as passed over.
            Self::Moved { from, .. } if row.is_after(from.as_ref()) != Some(false) => Said::Passed(Known::Skipped),
            Self::Skipped(place) if row.is_at(place) => Said::Passed(Known::Skipped),
            Self::Began(_) => Said::Passed(Known::BeforeStart),
            _ => Said::Nothing,
        }
    }
}

impl History {
    /// Of the relay of this name, from the operations with all relays, the newest first.
    #[must_use]
    pub fn of(relay: &str, operations: impl IntoIterator<Item = Operation>) -> Self {
        let mut history = Self { names: vec![relay.to_owned()], ..Self::default() };
        let (mut name, mut began) = (relay.to_owned(), i64::MIN);
        // Which changes were carried out, and whether they have moved the cursor: of each shard, by their numbers.
        let mut applied: HashMap<String, BTreeMap<i64, bool>> = HashMap::new();
        for operation in operations {
            let (of, shard) = parts(&operation.cursor);
            if of != name {
                continue;
            }
            let shard = shard.to_owned();
            match operation.verb.as_str() {
                // What came before was done with other cursors, which had other rows to send.
                "cursor remove" => {
                    began = operation.id;
                    break;
                }
                "cursor rename" => {
                    let Some(former) = operation.former else { continue };
                    history.names.push(former.clone());
                    history.eras.push((std::mem::replace(&mut name, former), operation.id));
                }
                "cursor reshard" => {
                    let former = operation.former.unwrap_or_default();
                    let former: Vec<String> = serde_json::from_str(&former).unwrap_or_default();
                    history.former.push(former.iter().map(|cursor| parts(cursor).1.to_owned()).collect());
                    applied.clear();
                }
                "change applied" => {
                    let (number, moved) = (operation.number.unwrap_or_default(), operation.moved.unwrap_or_default());
                    applied.entry(shard).or_default().insert(number, moved);
                }
                _ => {
                    // A replica may note one change when the next one is written already: the highest number is this one's.
                    let change = applied.get_mut(&shard).filter(|_| operation.is_change());
                    let moved = change.and_then(|changes| changes.pop_last()).is_some_and(|(_, moved)| moved);
                    history.add(operation, shard, moved);
                }
            }
        }
        history.eras.push((name, began));
        history
    }

    fn add(&mut self, Operation { id, verb, from, to, .. }: Operation, shard: String, moved: bool) {
        let step = match verb.as_str() {
            "cursor create" => Some(Step::Began(to)),
            "position moved back" => Some(Step::WentBack(to)),
            "cursor seek" if moved => Some(Step::Moved { from, to }),
            "cursor skip" if moved => to.map(Step::Skipped),
            // Not carried out, or where the cursor had moved on meanwhile.
            _ => None,
        };
        let generation = self.former.len();
        self.events.extend(step.map(|step| Event { operation: id, generation, shard, step }));
    }

    /// What they say of a row that is of this shard now. Of which former cursor it was is not known: it was passed over if each of
    /// them has passed over its place.
    #[must_use]
    pub fn says(&self, row: Row<'_>, shard: &str) -> Said {
        let own = [shard.to_owned()];
        let sets = std::iter::once(&own[..]).chain(self.former.iter().map(Vec::as_slice));
        let mut reason = None;
        for (generation, set) in sets.enumerate() {
            let mut open = false;
            for shard in set {
                match self.of_cursor(row, generation, shard) {
                    Said::Passed(known) => reason = Some(known),
                    Said::Due => return Said::Due,
                    Said::Nothing => open = true,
                }
            }
            if !open {
                return reason.map_or(Said::Nothing, Said::Passed);
            }
        }
        Said::Nothing
    }

    fn of_cursor(&self, row: Row<'_>, generation: usize, shard: &str) -> Said {
        let events = self.events.iter().filter(|event| event.generation == generation && event.shard == shard);
        events.map(|event| event.step.says(row)).find(|said| *said != Said::Nothing).unwrap_or(Said::Nothing)
    }

    /// Whether a row of this shard was to be sent again after this operation.
    #[must_use]
    pub fn came_again(&self, row: Row<'_>, shard: &str, operation: i64) -> bool {
        let newer = self.events.iter().take_while(|event| event.operation > operation);
        let mut may_concern = newer.filter(|event| event.generation > 0 || event.shard == shard);
        may_concern.any(|event| event.step.says(row) == Said::Due)
    }

    /// Whether an operation with a relay of this name was one with this relay.
    #[must_use]
    pub fn is_own(&self, relay: &str, operation: i64) -> bool {
        let era = self.eras.iter().find(|(_, began)| operation > *began);
        era.is_some_and(|(name, _)| name == relay)
    }

    /// When the relay began by its configuration: what is older is not its to deliver. None where that is not known.
    #[must_use]
    pub fn began(&self, start: Start, standings: &[Option<Standing>]) -> Option<Timestamp> {
        match start {
            Start::Beginning => None,
            Start::At(instant) => Some(instant),
            // Its cursors are younger than the relay.
            Start::Now if !self.former.is_empty() => None,
            Start::Now => standings.iter().flatten().map(|standing| standing.created_at).min(),
        }
    }

    /// How often an operator has moved a cursor back over a row.
    #[must_use]
    pub fn moved_back(&self, at: Timestamp) -> u64 {
        let instant =
            |place: &Option<Position>| place.as_ref().map_or(Timestamp::NEG_INFINITY, |place| place.created_at);
        let over = |event: &&Event| match &event.step {
            Step::Moved { from, to } => instant(to) <= at && at <= instant(from),
            _ => false,
        };
        self.events.iter().filter(over).count() as u64
    }
}

impl Operation {
    /// Whether it has a number, and its outcome a note of its own.
    fn is_change(&self) -> bool {
        matches!(self.verb.as_str(), "cursor seek" | "cursor skip" | "cursor adopt")
    }
}

/// A cursor's name: its relay's, and what tells it from the other shards.
pub(super) fn parts(cursor: &str) -> (&str, &str) {
    cursor.split_at(cursor.find('#').unwrap_or(cursor.len()))
}

#[cfg(test)]
mod tests;
