//! What an operator wants of a cursor: a move, or that it goes on with what it was refused for. Written to
//! `outbox.control` by a verb, carried out by the next turn that may, under the lock, in a transaction of its own in
//! which nothing is published; also while the cursor is paused or halted.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::ahead;
use super::audit_slices;
use super::dead_letter::{self, LateRows};
use super::lock::LockedCursor;
use super::order::UNHALT;
use super::position;
use crate::database::Error;
use crate::position::{Position, Timestamp};

const CARRY_OUT: &str = include_str!("sql/change_carry_out.sql");

const NOTE: &str = include_str!("sql/change_note.sql");

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorChange {
    /// Its number; carried out once.
    pub number: i64,
    /// Where to; `None` is before every row.
    pub to: Option<Position>,
    /// Only if the cursor stands here; whatever it stands at when absent.
    pub from: Option<Option<Position>>,
    /// What it shall belong to.
    pub adopt: Option<Adoption>,
}

/// What a cursor shall belong to from now on. Only a relay whose own facts are these takes them over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adoption {
    /// The number of the change that it is part of; an older one is over.
    pub number: i64,
    /// What the relay is configured for.
    pub identity: serde_json::Value,
    /// The table's oid.
    pub root: u32,
    /// The oids of the table and its descendants.
    pub relations: BTreeSet<u32>,
    /// How many partitions the topic has; none where that does not matter.
    pub partitions: Option<i32>,
}

/// What a relay finds for itself.
#[derive(Clone, Copy, Debug)]
pub struct RelayFacts<'a> {
    /// What it is configured for, as JSON.
    pub identity: &'a str,
    /// The table's oid.
    pub root: u32,
    /// The oids of the table and its descendants.
    pub relations: &'a BTreeSet<u32>,
}

impl Adoption {
    /// Halts that end with it.
    pub const CURES: [&str; 4] =
        ["identity_changed", "relation_replaced", "partition_attached", "partition_count_changed"];
}

impl CursorChange {
    /// Reads a change that is not carried out yet from what `outbox.control` says: number, to (two columns), from (three:
    /// whether there is one), adoption.
    pub(super) fn read(row: &Row, first: usize, applied: i64) -> Result<Option<Self>, Error> {
        let number: Option<i64> = row.try_get(first)?;
        let Some(number) = number.filter(|number| *number > applied) else { return Ok(None) };
        let conditional: Option<bool> = row.try_get(first + 3)?;
        let from = position(row.try_get(first + 4)?, row.try_get(first + 5)?);
        let adopt: Option<String> = row.try_get(first + 6)?;
        // One that this program cannot read is not for it, and nothing is half done.
        let Ok(adopt) = adopt.map(|text| serde_json::from_str::<Adoption>(&text)).transpose() else { return Ok(None) };
        Ok(Some(Self {
            number,
            to: position(row.try_get(first + 1)?, row.try_get(first + 2)?),
            from: conditional.unwrap_or(false).then_some(from),
            adopt: adopt.filter(|adoption| adoption.number == number),
        }))
    }

    /// Whether a relay with these facts may carry it out. A cursor that is foreign to it is moved only by whoever was told
    /// to take it over.
    #[must_use]
    pub fn fits(&self, foreign: bool, facts: RelayFacts<'_>) -> bool {
        match &self.adopt {
            None => !foreign,
            Some(adoption) => {
                serde_json::from_str::<serde_json::Value>(facts.identity).is_ok_and(|own| own == adoption.identity)
                    && adoption.root == facts.root
                    && adoption.relations == *facts.relations
            }
        }
    }

    /// Whether it passes the next message of a cursor that stands here.
    #[must_use]
    pub fn is_skip_at(&self, position: Option<&Position>) -> bool {
        self.adopt.is_none() && self.from.as_ref().is_some_and(|from| from.as_ref() == position)
    }

    /// Where the cursor stands after it.
    fn end(&self, position: Option<&Position>) -> Option<Position> {
        let met = self.from.as_ref().is_none_or(|from| from.as_ref() == position);
        if met { self.to.clone() } else { position.cloned() }
    }
}

/// What a move does about late rows.
#[derive(Clone, Copy, Debug)]
pub struct Sweeping<'a> {
    /// The number of the column by which they are found; none where they are not.
    pub column: Option<i16>,
    /// The snapshot up to which they were looked for before the move; without one, that of the move counts.
    pub snapshot: Option<&'a str>,
    /// Those that were seen.
    pub late: Option<&'a LateRows<'a>>,
}

impl LockedCursor {
    /// Carries a change out and commits, which frees the lock; says where the cursor stands now. A move that no condition
    /// binds also accepts the database's clock as it is, `clock`.
    ///
    /// # Errors
    /// The database's; whether the commit took place is then unknown, and the next holder reads what is true.
    pub async fn carry_out(
        self,
        change: &CursorChange,
        clock: Timestamp,
        sweeping: Sweeping<'_>,
        by: &str,
    ) -> Result<Option<Position>, Error> {
        let end = change.end(self.position.as_ref());
        let created_at = end.as_ref().map(|position| position.created_at);
        let id = end.as_ref().and_then(|position| position.id.as_deref());
        let clock = change.from.is_none().then_some(clock);
        let adopt = change.adopt.as_ref();
        let identity = adopt.map(|adoption| adoption.identity.to_string());
        let relations: Option<Vec<u32>> =
            adopt.map(|adoption| std::iter::once(adoption.root).chain(adoption.relations.iter().copied()).collect());
        let partitions = adopt.and_then(|adoption| adoption.partitions);
        let moved = end != self.position;
        let snapshot = sweeping.snapshot;
        // What it knows of late rows holds for the same relations only.
        let same = adopt.is_none_or(|adoption| self.has_known(adoption));
        let keeps = snapshot.is_none() && same && self.swept.is_some() && self.is_behind(end.as_ref());
        // Rows that are passed by being adopted, of a partition that was attached, and rows that come again are not late.
        let again = adopt.is_some() || self.goes_back(change, end.as_ref());
        let parameters: [&(dyn ToSql + Sync); 12] = [
            &self.name,
            &created_at,
            &id,
            &clock,
            &change.number,
            &identity,
            &relations,
            &partitions,
            &sweeping.column,
            &snapshot,
            &keeps,
            &again,
        ];
        self.connection.batch_execute("SET LOCAL synchronous_commit TO on").await?;
        if let Some(late) = sweeping.late {
            dead_letter::note_late(&self.connection, &self.name, late, by).await?;
        }
        if self.connection.execute(CARRY_OUT, &parameters).await? != 1 {
            return Err(Error::Vanished(self.name));
        }
        if self.has_ahead && !self.goes_back(change, end.as_ref()) {
            ahead::keep(&self.connection, &self.name, (self.seek_applied, change.number)).await?;
        }
        if again {
            audit_slices::forget(&self.connection, &self.name).await?;
        }
        if adopt.is_some() {
            // A replica that had not seen the new catalog yet may have halted again since the change was written.
            self.connection.execute(UNHALT, &[&self.name, &None::<&str>, &Adoption::CURES.as_slice()]).await?;
        }
        self.connection.execute(NOTE, &[&by, &self.name, &change.number, &moved, &created_at, &id]).await?;
        self.connection.batch_execute("COMMIT").await?;
        self.connection.give_back();
        Ok(end)
    }

    /// Whether rows are to be sent again. Of two places of one instant only a move that was bound to the first is known to go forward.
    fn goes_back(&self, change: &CursorChange, end: Option<&Position>) -> bool {
        match (self.position.as_ref(), end) {
            (None, None) => change.from.is_none() && change.adopt.is_none(),
            (None, Some(_)) => false,
            (Some(_), None) => true,
            (Some(from), Some(to)) if from.created_at == to.created_at => from != to && change.from.is_none(),
            (Some(from), Some(to)) => to.created_at < from.created_at,
        }
    }

    /// Whether it has read all these relations before.
    fn has_known(&self, adoption: &Adoption) -> bool {
        let known = self.relations.as_ref();
        known.is_some_and(|(root, others)| *root == adoption.root && adoption.relations.is_subset(others))
    }

    /// Whether this place lies before its position, or at it: what was known of late rows below holds there, too.
    fn is_behind(&self, end: Option<&Position>) -> bool {
        let Some(end) = end else { return true };
        self.position.as_ref().is_some_and(|position| end.created_at < position.created_at || end == position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Option<Position> {
        Some(Position { created_at: Timestamp::from_pg_micros(micros), id: Some("a".to_owned()) })
    }

    fn change(from: Option<Option<Position>>) -> CursorChange {
        CursorChange { number: 1, to: at(5), from, adopt: None }
    }

    #[test]
    fn a_conditional_move_takes_place_only_where_the_cursor_was_seen() {
        assert_eq!(change(None).end(at(1).as_ref()), at(5));
        assert_eq!(change(Some(at(1))).end(at(1).as_ref()), at(5));
        assert_eq!(change(Some(at(1))).end(at(2).as_ref()), at(2), "it has moved on meanwhile");
        assert_eq!(change(Some(None)).end(None), at(5));
        assert_eq!(change(Some(None)).end(at(1).as_ref()), at(1));
    }

    // Guarantee: commands.adopt-facts
    #[test]
    fn a_foreign_cursor_is_moved_by_nobody_and_adopted_by_exactly_the_facts_that_were_shown() {
        let own = BTreeSet::from([7, 8]);
        let facts = |identity, root, relations| RelayFacts { identity, root, relations };
        let mine = facts("{\"table\": \"t\", \"sink\": \"kafka\"}", 7, &own);
        assert!(change(None).fits(false, mine) && !change(None).fits(true, mine));
        let identity = serde_json::json!({ "sink": "kafka", "table": "t" });
        let adopt = Adoption { number: 1, identity, root: 7, relations: own.clone(), partitions: None };
        let adopting = CursorChange { adopt: Some(adopt), ..change(Some(None)) };
        assert!(adopting.fits(true, mine) && adopting.fits(false, mine));
        assert!(change(Some(None)).is_skip_at(None) && !change(Some(None)).is_skip_at(at(1).as_ref()));
        assert!(!adopting.is_skip_at(None), "what it knows of late rows is not replaced");
        let other = BTreeSet::from([7]);
        for facts in [
            facts("{\"table\": \"u\", \"sink\": \"kafka\"}", 7, &own),
            facts(mine.identity, 9, &own),
            facts(mine.identity, 7, &other),
            facts("not JSON", 7, &own),
        ] {
            assert!(!adopting.fits(true, facts), "{facts:?}");
        }
    }
}
