//! What a comparison rests on: how far the cursors have come, what the topic still has, and which rows are in the range.

use std::sync::Arc;
use std::time::Duration;

use super::{CLOCKS, Window, Work};
use crate::database::Session;
use crate::position::{Position, Timestamp};
use crate::source::range::Bounds;
use crate::verify::candidates::Keys;
use crate::verify::history::Standing;
use crate::verify::retained::{REMOVED, Retained};
use crate::verify::topic::{self, Watch};
use crate::verify::{Error, Range, Subject};

impl Subject {
    /// Learns what the comparison rests on; gives what must be said of it, too.
    pub(super) async fn work<'a>(
        &'a self,
        session: &'a Session,
        mut range: Range,
        watch: &'a Arc<Watch>,
    ) -> Result<(Work<'a>, Vec<String>), Error> {
        let mut notes = Vec::new();
        let (history, standings) = match &self.cursors {
            Some(cursors) => {
                // Before the table: a row that is passed later is not due yet.
                let (mut history, standings) = (cursors.history(session).await?, cursors.standings(session).await?);
                history.begin(cursors.start, &standings);
                notes.extend(cursors.note_without_cursor(&standings));
                (history, standings)
            }
            None => Default::default(),
        };
        let spans = topic::survey(&self.cluster, &self.topics, range.since.minus(CLOCKS)).await?;
        let retained = self.retained(&spans, range.since, watch).await?;
        if let Retained::After(at) = &retained
            && self.rows_up_to(session, range.since, *at).await? >= REMOVED.unsigned_abs()
        {
            notes.push(format!("the topic has nothing from before {at}: the range begins there"));
            range.since = at.plus(Duration::from_micros(1));
        }
        let mut reading = self.reading.clone();
        if let (Some((_, names)), Some(_)) = (&mut reading.relay, &self.cursors) {
            names.clone_from(&history.names);
        }
        let bounds = self.bounds(range, &standings);
        let passed = bounds.iter().flatten().map(|bounds| bounds.up_to.created_at).max();
        let none = if self.cursors.is_some() { Timestamp::NEG_INFINITY } else { Timestamp::INFINITY };
        let newest = passed.filter(|_| self.cursors.is_some()).unwrap_or(none);
        let window = Window { range, newest, oldest: self.oldest(session).await? };
        let keys = Keys::default();
        Ok((Work { subject: self, session, watch, keys, bounds, window, reading, history, standings, retained }, notes))
    }

    /// The rows of each part that are in the range and passed; none of a part that has none.
    fn bounds(&self, range: Range, standings: &[Option<Standing>]) -> Vec<Option<Bounds>> {
        let end = Position { created_at: range.until, id: None };
        let after = Position { created_at: range.since, id: None };
        let bounds = |number: usize| {
            let up_to = match (&self.cursors, standings.get(number)) {
                (None, _) => end.clone(),
                (Some(_), Some(Some(Standing { position: Some(position), .. }))) => {
                    if position.created_at < end.created_at { position.clone() } else { end.clone() }
                }
                (Some(_), _) => return None,
            };
            (up_to.created_at >= after.created_at).then(|| Bounds { after: after.clone(), up_to })
        };
        (0..self.parts.len()).map(bounds).collect()
    }
}
