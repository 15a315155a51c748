//! Places that no slice covers.
//!
//! Promise: their rows are named as not delivered only where a record of them would still be there if a turn had passed them, and nothing
//! else explains them. Of others it is said how many they are, and why they were not compared.

use std::sync::Arc;
use std::time::Duration;

use super::coverage::Gap;
use super::{Missing, Recordings, WAY, Work};
use crate::cursor::audit_slices::{self, RecordedSlice};
use crate::position::Timestamp;
use crate::source::range::{self, Bounds, PlacedRow};
use crate::source::shape::Shape;
use crate::verify::Error;
use crate::verify::operations::{Row, Said, parts};
use crate::verify::report::LeftOut;

/// Slices are compared for the last time so long after their end, and stay until then, if they are not kept for longer.
const COMPARED: Duration = Duration::from_secs(3_600);
/// So many rows are looked at by themselves, at most.
const MOST: usize = 100_000;

impl Work<'_> {
    /// Places that no slice has: either none was recorded there, and the rows were never passed by a turn, or that is not known.
    pub(super) async fn gap(
        &mut self,
        (part, shape): (usize, &Arc<Shape>),
        gap: &Gap<'_>,
        others: &[&RecordedSlice],
        now: Timestamp,
    ) -> Result<(), Error> {
        let (subject, cursor) = (self.subject, self.subject.cursor(part));
        let oldest = now.minus(subject.keep.unwrap_or(COMPARED));
        let is_other = others.iter().any(|slice| gap.meets(slice));
        let is_unrecorded = match gap.would_be_recorded(oldest) {
            Some(would_be) => would_be,
            None => {
                let last = audit_slices::last_before(self.session, cursor, gap.bounds.after.created_at).await?;
                last.is_some_and(|at| at > oldest)
            }
        };
        if is_unrecorded && !is_other {
            return self.unrecorded((part, shape), &gap.bounds).await;
        }
        let (_, shard) = parts(cursor);
        let (wanted, history, known) = (self.range, &self.history, &mut self.report.known);
        let (mut rows, mut unexplained) = (0, 0);
        let see = |row: PlacedRow<'_>| {
            if !wanted.has(row.created_at) {
                return;
            }
            rows += 1;
            let found = Row { id: row.id, at: row.created_at, ids: shape.id_type, given_up: None };
            match history.says(found, shard) {
                Said::Passed(why) => *known.entry(why).or_default() += 1,
                Said::Due | Said::Unclear(_) | Said::Nothing => unexplained += 1,
            }
        };
        range::each(self.session, shape, &gap.bounds, WAY, see).await?;
        self.report.table += rows;
        if unexplained > 0 {
            let (cursor, Bounds { after, up_to }) = (cursor.to_owned(), gap.bounds.clone());
            let why = subject.why(is_other, up_to.created_at < oldest);
            self.passed.left_out.push(LeftOut { cursor, after, up_to, rows: unexplained, why });
        }
        Ok(())
    }

    /// Rows that the cursor has passed, and of which no turn has recorded that.
    async fn unrecorded(&mut self, (part, shape): (usize, &Arc<Shape>), bounds: &Bounds) -> Result<(), Error> {
        let (wanted, before, mut rows) = (self.range, self.missing.len(), 0);
        let missing = &mut self.missing;
        let see = |row: PlacedRow<'_>| {
            if wanted.has(row.created_at) {
                rows += 1;
                if missing.len() < MOST {
                    let id = row.id.to_owned();
                    missing.push(Missing { id, at: row.created_at, part, is_within: false });
                }
            }
        };
        range::each(self.session, shape, bounds, WAY, see).await?;
        self.report.complete &= rows == self.missing.len() - before;
        self.saw(rows as u64);
        Ok(())
    }
}

impl Recordings {
    /// Why nothing is recorded of some rows.
    fn why(&self, is_other: bool, is_old: bool) -> String {
        match self.keep {
            _ if is_other => "what was recorded then is of another table, order, filter or number of shards".to_owned(),
            Some(_) if is_old => "what was recorded then is older than [audit] keep, and deleted".to_owned(),
            None if is_old => {
                "what was recorded then is deleted an hour later, because [audit] keep is not set".to_owned()
            }
            Some(_) | None => {
                "nothing is recorded of then: by an older version or with another [audit], or a move back or an adoption has ended it"
                    .to_owned()
            }
        }
    }
}
