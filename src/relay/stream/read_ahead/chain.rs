//! What one turn leaves to the next: rows that are read ahead, and where the cursor stands.

use std::sync::Arc;

use super::{Ahead, ReadPlan};
use crate::cursor::{LockedCursor, RowPlace};
use crate::late::Swept;
use crate::position::Position;
use crate::relay::engine::Engine;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::learned::Learned;
use crate::source::watcher::Sighting;

/// What one turn leaves to the next.
#[derive(Debug, Default)]
pub(in crate::relay) struct Chain {
    /// Rows that are being read for the next turn.
    pub(in crate::relay) ahead: Option<Ahead>,
    /// The last turn took all it could.
    pub(in crate::relay) backlog: bool,
    /// The right to use connections; kept from turn to turn only while rows are read ahead.
    pub(in crate::relay) permits: Vec<tokio::sync::OwnedSemaphorePermit>,
    /// Where the last turn left the cursor.
    pub(in crate::relay) stands_at: Option<Position>,
    /// Up to where late rows were found then.
    pub(in crate::relay) swept: Option<Swept>,
    /// Where it left the cursor's row.
    pub(in crate::relay) place: Option<RowPlace>,
}

impl Chain {
    /// The rows after the cursor's position: what was read ahead, if it is that, or a reading that begins now.
    pub(in crate::relay) fn reading(
        &mut self,
        engine: &Arc<Engine>,
        ready: &Arc<PreparedStream>,
        learned: Learned,
        cursor: &LockedCursor,
        safe: &Sighting,
        most: usize,
    ) -> Ahead {
        let ahead = self.ahead.take().filter(|ahead| ahead.fits(cursor, ready, most));
        ahead.unwrap_or_else(|| {
            let (after, swept, known) = (cursor.position.clone(), cursor.swept.clone(), cursor.relations.clone());
            Ahead::start(engine, ready, ReadPlan { after, swept, known, most, sighting: Some(safe.clone()), learned })
        })
    }
}
