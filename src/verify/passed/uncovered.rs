//! Places that no slice covers.
//!
//! Promise: their rows are named as not delivered only where a record of them would still be there if a turn had passed them, and nothing
//! else explains them. Of others it is said how many they are, and why they were not compared.

use std::sync::Arc;

use super::coverage::Gap;
use super::reason::Reason;
use super::{Missing, WAY, Work};
use crate::audit::MADE_UP_FOR;
use crate::cursor::audit_slices::{self, RecordedSlice};
use crate::position::Timestamp;
use crate::source::range::{self, Bounds, PlacedRow};
use crate::source::shape::Shape;
use crate::verify::Error;
use crate::verify::operations::{Row, Said, parts};
use crate::verify::report::LeftOut;

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
        let oldest = now.minus(subject.keep.unwrap_or(MADE_UP_FOR));
        let is_other = others.iter().any(|slice| gap.meets(slice));
        let (would_be_recorded, is_unrecorded) = match gap.before {
            Some(slice) => (gap.would_be_recorded(oldest).unwrap_or(false), slice.is_unrecorded),
            None => {
                let last = audit_slices::last_before(self.session, cursor, gap.bounds.after.created_at).await?;
                last.map_or((false, false), |(at, is_unrecorded)| (at > oldest, is_unrecorded))
            }
        };
        if would_be_recorded && !is_unrecorded && !is_other {
            return self.unrecorded((part, shape), &gap.bounds).await;
        }
        let (_, shard) = parts(cursor);
        let ended = self.history.record_end(shard).filter(|end| gap.bounds.after.created_at < end.place);
        let reason = match ended {
            _ if is_other => Reason::Other,
            _ if would_be_recorded => Reason::Unrecorded,
            _ if gap.bounds.up_to.created_at < oldest => Reason::Old(subject.keep),
            Some(end) => Reason::Ended(end),
            None => Reason::Unknown,
        };
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
            self.leave_out(cursor, &gap.bounds, unexplained, reason);
        }
        Ok(())
    }

    /// Counts rows that cannot be compared, with those before them if the reason is the same.
    fn leave_out(&mut self, cursor: &str, bounds: &Bounds, rows: u64, reason: Reason) {
        let (why, fix) = (reason.why(), reason.fix());
        let Bounds { after, up_to } = bounds.clone();
        match self.passed.left_out.last_mut() {
            Some(last) if last.cursor == cursor && last.up_to == after && last.why == why => {
                (last.up_to, last.rows) = (up_to, last.rows + rows);
            }
            _ => self.passed.left_out.push(LeftOut { cursor: cursor.to_owned(), after, up_to, rows, why, fix }),
        }
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
