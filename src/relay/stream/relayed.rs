//! What a turn has read and published, in order, and how far it was acknowledged.

use std::time::Duration;

use crate::audit::Sums;
use crate::batch::Batch;
use crate::cursor::ahead::Beyond;
use crate::late::Opened;
use crate::position::{Position, Timestamp};
use crate::relay::engine::unreadable;
use crate::relay::stream::turn_buffer::TurnBuffer;
use crate::relay::stream::withheld::Withheld;
use crate::sink::{Failure, Published};
use crate::source::fetch::{Fetched, Unreadable};

/// What happened between fetch and advance.
pub(in crate::relay) struct Relayed {
    pub(in crate::relay) kept: TurnBuffer,
    pub(in crate::relay) published: Published,
    pub(in crate::relay) fetched: Fetched,
    /// Rows of parked keys among them, which are passed and not published.
    pub(in crate::relay) withheld: Withheld,
    /// What the reading saw before its first row; none when it failed before.
    pub(in crate::relay) opened: Option<Opened>,
    /// The only row that was kept cannot be read: nothing of it is there but its place.
    pub(in crate::relay) unread: bool,
    /// What stands acknowledged beyond the prefix; none where nothing is remembered there.
    pub(in crate::relay) beyond: Option<Beyond>,
    /// The prefix ends at a lane that waits, and the others go on: how long until the next attempt of one.
    pub(in crate::relay) lane_waits: Option<Duration>,
    /// The row that publishing stopped at, where it is not the first that was not acknowledged.
    pub(in crate::relay) at: Option<usize>,
    /// How many of the rows that count as acknowledged may not have been accepted (`at_most_once`).
    pub(in crate::relay) unknown: usize,
}

impl Relayed {
    fn empty() -> Self {
        Self {
            kept: TurnBuffer::default(),
            published: Published { acknowledged: 0, stopped: None, suspects: 1 },
            fetched: Fetched::default(),
            withheld: Withheld::default(),
            opened: None,
            unread: false,
            beyond: None,
            lane_waits: None,
            at: None,
            unknown: 0,
        }
    }

    pub(in crate::relay) fn nothing(failure: Failure) -> Self {
        let published = Published { acknowledged: 0, stopped: Some(failure), suspects: 1 };
        Self { published, ..Self::empty() }
    }

    /// Rows that were read, and how publishing them ended.
    pub(in crate::relay) fn new(kept: TurnBuffer, published: Published, fetched: Fetched, withheld: Withheld) -> Self {
        Self { kept, published, fetched, withheld, ..Self::empty() }
    }

    /// How many rows this turn has had acknowledged, wherever they stand.
    pub(in crate::relay) fn sent(&self) -> usize {
        let passed = self.published.acknowledged + self.beyond.as_ref().map_or(0, |beyond| beyond.rows.len());
        passed.saturating_sub(self.unknown)
    }

    /// Nothing was read but one row of a parked key, or there is no room for it.
    pub(in crate::relay) fn withheld(withheld: Withheld, published: Published) -> Self {
        let fetched = Fetched { rows: withheld.rows(), more: true, ..Fetched::default() };
        Self { published, fetched, withheld, ..Self::empty() }
    }

    /// Nothing was read but rows that came late.
    pub(in crate::relay) fn late(opened: Option<Opened>) -> Self {
        let published = Published { acknowledged: 0, stopped: None, suspects: 1 };
        let fetched = Fetched { more: true, ..Fetched::default() };
        Self { published, fetched, opened, ..Self::empty() }
    }

    /// Whether there may be more late rows than were looked for.
    pub(in crate::relay) fn looks_on(&self) -> bool {
        self.opened.as_ref().is_some_and(|opened| !opened.is_whole())
    }

    /// Whether the reading came to its end and found no row.
    pub(in crate::relay) fn read_nothing(&self) -> bool {
        self.fetched.rows == 0 && !self.fetched.more && self.fetched.snapshot.is_some()
    }

    /// The first row after the position cannot be read: it is treated as refused, by its place, without its values.
    pub(in crate::relay) fn unreadable(row: &Unreadable) -> Self {
        let place = match row {
            Unreadable::Malformed { position, .. }
            | Unreadable::Value { position, .. }
            | Unreadable::Large { position, .. }
            | Unreadable::Slow { position, .. } => Some(position),
            Unreadable::Id { .. } | Unreadable::NoInstant { .. } => None,
        };
        let named = place.and_then(|position| Some((position.created_at, position.id.as_deref()?)));
        let kept = named.map(|(created_at, id)| {
            let mut batch = Batch::new(0);
            batch.push(created_at, id, []);
            batch
        });
        let failure = unreadable::failure(row);
        let fetched = Fetched { more: true, ..Fetched::default() };
        Self { kept: kept.into_iter().collect(), fetched, unread: true, ..Self::nothing(failure) }
    }

    /// The batch and the row in it of message number `n`, unless it has been released.
    pub(in crate::relay) fn locate(&self, n: usize) -> Option<(&Batch, usize)> {
        self.kept.locate(n)
    }

    /// The position of the last of `n` messages, or of the last withheld row that is passed with them; all that are acknowledged
    /// are among them.
    pub(in crate::relay) fn end(&self, n: usize) -> Option<Position> {
        self.withheld.end(n).or_else(|| self.kept.end(n))
    }

    /// Sums over the ids of the first `n` messages and of all rows that are passed with them; none where not all of them are known.
    pub(in crate::relay) fn sums(&self, n: usize) -> Option<Sums> {
        let mut sums = self.kept.sums(n).filter(|_| n <= self.kept.rows())?;
        match self.withheld.sums(n) {
            Some(more) => sums.merge(&more),
            None if self.withheld.passed(n) > 0 => return None,
            None => {}
        }
        Some(sums)
    }

    pub(in crate::relay) fn message_id(&self, n: usize) -> Option<String> {
        let (batch, row) = self.locate(n)?;
        Some(batch.message(row).id.to_owned())
    }

    pub(in crate::relay) fn instants(&self, n: usize) -> Vec<Timestamp> {
        self.kept.instants(n)
    }
}
