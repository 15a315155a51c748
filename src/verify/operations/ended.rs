//! What operations have ended: sets of cursors, and the record of the rows that a cursor has passed. Pure.

use super::{GivenUp, History, Operation, parts};
use crate::position::Timestamp;

/// A cursor that a reshard has ended, by one of the names that its dead letters may have now.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The name.
    pub cursor: String,
    /// When it ended.
    pub at: Timestamp,
    /// What a letter of it says that was given up before: only what was done after the reshard may have led back to its row.
    pub given_up: GivenUp,
}

/// A reshard, which has ended one set of cursors and begun another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The new set's first rows are those of this instant: the former had sent all before it, and may have sent some behind it.
    pub before: Timestamp,
    /// When it was noted.
    pub at: Timestamp,
    /// Whether the former set was of several cursors, or that is not known.
    pub was_shared: bool,
}

impl Handover {
    /// What a reshard of so many cursors says; one of cursors that stood before every row had sent nothing.
    pub(super) fn of(reshard: &Operation, cursors: usize) -> Self {
        Self {
            before: reshard.to.as_ref().map_or(Timestamp::NEG_INFINITY, |place| place.created_at),
            at: reshard.at.unwrap_or(Timestamp::INFINITY),
            was_shared: cursors != 1,
        }
    }
}

/// An operation after which the record of passed rows begins again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordEnd {
    /// What it is, in words.
    pub what: &'static str,
    /// Rows of this instant and later ones are recorded.
    pub place: Timestamp,
}

impl History {
    /// Notes that a reshard has ended a set of cursors. Letters of a cursor that was there when the relay was renamed have followed it,
    /// those of a cursor that was not have not.
    pub(super) fn end(&mut self, reshard: &Operation) {
        let former = reshard.former.as_deref().unwrap_or_default();
        let former: Vec<String> = serde_json::from_str(former).unwrap_or_default();
        let shards: Vec<String> = former.iter().map(|cursor| parts(cursor).1.to_owned()).collect();
        self.former.push(shards.clone());
        self.handovers.push(Handover::of(reshard, shards.len()));
        let (operation, generation, at) = (reshard.id, self.former.len(), reshard.at.unwrap_or(Timestamp::INFINITY));
        for shard in shards {
            for name in &self.names {
                let given_up = GivenUp { operation, generation, shard: shard.clone() };
                self.ended.push(Ended { cursor: format!("{name}{shard}"), at, given_up });
            }
        }
    }

    /// The cursors that reshards have ended, those of the newest set first.
    #[must_use]
    pub fn ended(&self) -> &[Ended] {
        &self.ended
    }

    /// The reshards, the newest first.
    #[must_use]
    pub fn handovers(&self) -> &[Handover] {
        &self.handovers
    }

    /// The newest operation that has ended what was recorded of the cursor of this shard.
    #[must_use]
    pub fn record_end(&self, shard: &str) -> Option<RecordEnd> {
        let mut own = self.events.iter().filter(|event| event.generation == 0 && event.shard == shard);
        let newest = own.find_map(|event| event.step.ends_record());
        let newest = newest.map(|(what, place)| RecordEnd { what, place });
        let what = "a `cursor reshard`";
        newest.or_else(|| self.handovers.first().map(|last| RecordEnd { what, place: last.before }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Position;

    fn place(micros: i64) -> Option<Position> {
        Some(Position { created_at: Timestamp::from_pg_micros(micros), id: Some("1".to_owned()) })
    }

    fn done(id: i64, verb: &str, cursor: &str) -> Operation {
        let at = Some(Timestamp::from_pg_micros(id * 100));
        Operation { id, at, verb: verb.to_owned(), cursor: cursor.to_owned(), ..Operation::default() }
    }

    /// The two shards of `r` are exchanged for one cursor, which begins there.
    fn reshard(id: i64, to: i64) -> Operation {
        Operation { former: Some("[\"r#0\",\"r#1\"]".to_owned()), to: place(to), ..done(id, "cursor reshard", "r") }
    }

    /// A change that was carried out, the note of that first.
    fn changed(id: i64, verb: &str, (from, to): (i64, i64)) -> [Operation; 2] {
        let note = done(id + 1, "change applied", "r");
        let note = Operation { moved: Some(true), is_placed: true, to: place(to), ..note };
        [note, Operation { from: place(from), to: place(to), ..done(id, verb, "r") }]
    }

    fn ended(operations: impl IntoIterator<Item = Operation>) -> Option<(&'static str, i64)> {
        let end = History::of("r", operations).record_end("");
        end.map(|RecordEnd { what, place }| (what, place.pg_micros()))
    }

    // Guarantee: verify.left-out
    #[test]
    fn newest_operation_that_ended_the_record_is_named_with_its_place() {
        assert_eq!(ended([]), None);
        assert_eq!(ended(changed(1, "cursor seek", (10, 20))), None, "a move forward ends nothing");
        assert_eq!(ended(changed(1, "cursor seek", (20, 10))), Some(("a `cursor seek` back", 10)));
        assert_eq!(ended(changed(1, "cursor adopt", (20, 20))), Some(("a `cursor adopt`", 20)));
        let by_itself = Operation { to: place(5), ..done(1, "position moved back", "r") };
        assert_eq!(ended([by_itself]), Some(("a move back by the relay", 5)));
        assert_eq!(ended([reshard(1, 30)]), Some(("a `cursor reshard`", 30)));
        let newer = changed(2, "cursor seek", (50, 40)).into_iter().chain([reshard(1, 30)]);
        assert_eq!(ended(newer), Some(("a `cursor seek` back", 40)));
        let older = [reshard(3, 60)].into_iter().chain(changed(1, "cursor seek", (50, 40)));
        assert_eq!(ended(older), Some(("a `cursor reshard`", 60)), "what was done with former cursors is over");
    }

    #[test]
    fn handovers_are_known_with_their_places_the_newest_first() {
        let former = |id, former: &str, to| Operation { former: Some(former.to_owned()), ..reshard(id, to) };
        let history = History::of("r", [former(3, "[\"r\"]", 90), reshard(2, 60), former(1, "?", 30)]);
        let told: Vec<(i64, i64, bool)> = history
            .handovers()
            .iter()
            .map(|one| (one.before.pg_micros(), one.at.pg_micros(), one.was_shared))
            .collect();
        assert_eq!(told, [(90, 300, false), (60, 200, true), (30, 100, true)]);
        let nothing = Operation { to: None, ..reshard(1, 1) };
        assert_eq!(History::of("r", [nothing]).handovers()[0].before, Timestamp::NEG_INFINITY);
    }
}
