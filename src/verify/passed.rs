//! Compares what a relay's cursors have passed with the table, whatever its sink: by the slices that their advances have recorded.
//!
//! Promise: an id that is named differs, and one that differs is named as far as the sums and the table tell it: each is looked at once
//! more by itself before it is reported. What nothing is recorded of is said, with its number of rows, and never counts as equal. Position
//! and slices of a cursor are read with one snapshot, then the table up to there. Nothing is written.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::history::Cursors;
use super::operations::History;
use super::report::{Passed, Report, UnclearSlice};
use super::topic::Watch;
use super::{Error, Range, retained};
use crate::audit::{Difference, element};
use crate::cursor::audit_slices::{self, RecordedSlice, Recording};
use crate::database::Session;
use crate::position::{Position, Timestamp};
use crate::source::range::{self, Bounds, Way};
use crate::source::shape::Shape;
use coverage::{Gap, Piece};
use slice::{Side, Verdict};

mod coverage;
mod finish;
mod gone;
mod judge;
mod letters;
mod reason;
mod slice;
mod uncovered;

const WAY: Way = Way { indexed: true, transactions: false };

/// A relay whose cursors record what they pass.
#[derive(Clone, Debug)]
pub struct Recordings {
    /// Its cursors.
    pub cursors: Cursors,
    /// The kind of its sink.
    pub sink: &'static str,
    /// The table, once for each cursor that reads a part of it.
    pub parts: Vec<Arc<Shape>>,
    /// How long slices are kept (`[audit] keep`); none: for two hours, in which comparisons are made up for.
    pub keep: Option<Duration>,
}

/// A row of the table that no slice has.
#[derive(Clone, Debug)]
struct Missing {
    id: String,
    at: Timestamp,
    /// The number of the part of the table that has it.
    part: usize,
    /// Whether a slice has the rows around it.
    is_within: bool,
}

/// Rows of a slice that the table does not have between its places any more.
#[derive(Clone, Debug, Default)]
struct Gone {
    /// Those that could be named.
    ids: Vec<String>,
    /// How many could not.
    unnamed: u64,
    /// By which an id is told to be one of them.
    difference: Option<Difference>,
}

impl Gone {
    /// Takes out an id that the table has after all; whether it was one of them.
    fn take_out(&mut self, id: &str) -> bool {
        let is_gone = self.difference.as_ref().is_some_and(|difference| difference.is_gone(element(id)));
        if is_gone {
            match self.ids.iter().position(|other| other == id) {
                Some(at) => {
                    self.ids.swap_remove(at);
                }
                None => self.unnamed = self.unnamed.saturating_sub(1),
            }
        }
        is_gone
    }
}

/// What a comparison works with, and what it has found so far.
struct Work<'a> {
    subject: &'a Recordings,
    session: &'a Session,
    watch: &'a Arc<Watch>,
    range: Range,
    history: History,
    /// The oldest row of the built-in outbox: retention has removed the rows before it.
    oldest: Timestamp,
    /// How many rows retention has removed of the slices.
    pruned: u64,
    /// How many rows of the range are in what was compared.
    compared: u64,
    /// How many of these no slice has, for a reason that is known.
    explained: u64,
    /// How many rows are called not delivered although no slice has the rows around them either.
    unrecorded: u64,
    missing: Vec<Missing>,
    gone: Vec<(usize, Gone)>,
    passed: Passed,
    report: Report,
}

impl Recordings {
    /// Compares the rows of a range with what the cursors have recorded.
    ///
    /// # Errors
    /// When one side cannot be read, or when nothing is recorded of any row of the range.
    pub async fn compare(&self, session: &Session, range: Range, watch: &Arc<Watch>) -> Result<Report, Error> {
        let mut recordings = Vec::new();
        for cursor in &self.cursors.names {
            recordings.push(audit_slices::recorded(session, cursor, (range.since, range.until)).await?);
        }
        // After the positions: it has all that has moved them.
        let mut history = self.cursors.history(session).await?;
        let standings = self.cursors.standings(session).await?;
        history.begin(self.cursors.start, &standings);
        let oldest = retained::oldest(session, &self.parts).await?;
        let mut work = Work {
            subject: self,
            session,
            watch,
            range,
            history,
            oldest,
            pruned: 0,
            compared: 0,
            explained: 0,
            unrecorded: 0,
            missing: Vec::new(),
            gone: Vec::new(),
            passed: Passed { sink: self.sink, ..Passed::default() },
            report: Report::empty(&self.cursors.relay, range),
        };
        work.report.notes.extend(self.cursors.note_without_cursor(&standings));
        for (part, (shape, recording)) in self.parts.iter().zip(&recordings).enumerate() {
            let position = recording.as_ref().and_then(|recording| recording.position.as_ref());
            work.pending(shape, position).await?;
            if let Some(recording) = recording {
                work.part((part, shape), recording).await?;
            }
        }
        work.judge().await?;
        work.finished().await
    }

    /// The name of a part's cursor.
    fn cursor(&self, part: usize) -> &str {
        self.cursors.names.get(part).map_or("", String::as_str)
    }
}

impl Work<'_> {
    /// Counts the rows of the range that are not passed yet.
    async fn pending(&mut self, shape: &Shape, position: Option<&Position>) -> Result<(), Error> {
        let since = Position { created_at: self.range.since, id: None };
        let after = position.filter(|position| position.created_at >= since.created_at).cloned().unwrap_or(since);
        let up_to = Position { created_at: self.range.until, id: None };
        if after.created_at < up_to.created_at {
            self.report.pending += range::count(self.session, shape, &Bounds { after, up_to }, i64::MAX).await?;
        }
        Ok(())
    }

    /// Compares what a cursor has passed of the range.
    async fn part(&mut self, (part, shape): (usize, &Arc<Shape>), recording: &Recording) -> Result<(), Error> {
        let Some(position) = &recording.position else { return Ok(()) };
        let end = Position { created_at: self.range.until, id: None };
        let up_to = if position.created_at < end.created_at { position.clone() } else { end };
        let after = Position { created_at: self.range.since, id: None };
        if up_to.created_at < after.created_at {
            return Ok(());
        }
        let reads = element(&shape.reads());
        let (own, others): (Vec<&RecordedSlice>, Vec<&RecordedSlice>) =
            recording.slices.iter().partition(|slice| slice.reads == reads);
        for piece in coverage::pieces(&Bounds { after, up_to }, own, shape.id_type) {
            match piece {
                Piece::Recorded(slice) if slice.is_unrecorded => {
                    let bounds = Bounds { after: slice.after.clone(), up_to: slice.up_to.clone() };
                    let gap = Gap { bounds, before: Some(slice) };
                    self.gap((part, shape), &gap, &others, recording.now).await?;
                }
                Piece::Recorded(slice) => self.slice((part, shape), slice).await?,
                Piece::Unrecorded(gap) => self.gap((part, shape), &gap, &others, recording.now).await?,
            }
        }
        Ok(())
    }

    fn saw(&mut self, rows: u64) {
        (self.compared, self.report.table) = (self.compared + rows, self.report.table + rows);
        self.watch.seen.fetch_add(rows, Ordering::Relaxed);
    }

    async fn slice(&mut self, (part, shape): (usize, &Arc<Shape>), slice: &RecordedSlice) -> Result<(), Error> {
        let bounds = Bounds { after: slice.after.clone(), up_to: slice.up_to.clone() };
        let Some(delivered) = &slice.sums else { return self.interrupted(shape, &bounds).await };
        let (cursor, wanted) = (self.subject.cursor(part), self.range);
        let side = Side { cursor, bounds: &bounds, delivered };
        let (rows, verdict) = slice::compare(self.session, shape, side, wanted).await?;
        self.passed.slices += 1;
        self.saw(rows);
        // Retention removes rows that were delivered.
        let is_pruned = slice.after.created_at < self.oldest;
        match verdict {
            Verdict::Equal => {}
            Verdict::Differs { missing, gone } => {
                for row in missing.into_iter().filter(|row| wanted.has(row.position.created_at)) {
                    let id = row.position.id.unwrap_or_default();
                    self.missing.push(Missing { id, at: row.position.created_at, part, is_within: true });
                }
                let rows = gone.unnamed + gone.ids.len() as u64;
                if is_pruned {
                    self.pruned += rows;
                } else if rows > 0 {
                    self.gone.push((part, gone));
                }
            }
            Verdict::Unclear { table, passed } if is_pruned && table < passed => self.pruned += passed - table,
            Verdict::Unclear { table, passed } => {
                let (cursor, Bounds { after, up_to }) = (cursor.to_owned(), bounds);
                self.passed.unclear.push(UnclearSlice { cursor, after, up_to, table, passed });
            }
        }
        Ok(())
    }

    /// What an interrupted turn had passed when its replica ended: between which places is recorded, and not which rows.
    async fn interrupted(&mut self, shape: &Shape, bounds: &Bounds) -> Result<(), Error> {
        let (mut rows, wanted) = (0, self.range);
        range::each(self.session, shape, bounds, WAY, |row| rows += u64::from(wanted.has(row.created_at))).await?;
        self.saw(rows);
        if rows > 0 {
            self.report.notes.push(format!(
                "{rows} rows between {} and {} count as delivered by the record of a turn that was interrupted: it says how far the turn \
                 had come, and names no rows",
                bounds.after, bounds.up_to
            ));
        }
        Ok(())
    }
}
