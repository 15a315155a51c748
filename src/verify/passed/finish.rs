//! What follows for the whole from what was found.

use super::Work;
use crate::verify::decide::{Kind, Known};
use crate::verify::report::Report;
use crate::verify::retained::BUILT_IN;
use crate::verify::{Error, Problem};

impl Work<'_> {
    pub(super) async fn finished(mut self) -> Result<Report, Error> {
        if self.passed.unnamed > 0 {
            *self.report.counts.entry(Kind::NotInTable).or_default() += self.passed.unnamed;
        }
        self.require_compared()?;
        let Self { subject, session, range, compared, explained, unrecorded, pruned, passed, mut report, .. } = self;
        report
            .differences
            .sort_by(|one, other| (one.kind, one.created_at, &one.id).cmp(&(other.kind, other.created_at, &other.id)));
        report.table += report.pending;
        report.to_come.sort();
        let range = (range.since, range.until);
        let (letters, parked) = subject.cursors.dead_letters(session, range, &report.to_come).await?;
        let waiting = [(Known::DeadLetter, letters), (Known::Parked, parked)];
        let counted: u64 = waiting.iter().filter_map(|(known, _)| report.known.remove(known)).sum();
        let missing = report.counts.get(&Kind::NotDelivered).copied().unwrap_or(0);
        let left_out = letters + parked + explained.saturating_sub(counted) + missing;
        report.delivered = compared.saturating_sub(left_out);
        report.known.extend(waiting.into_iter().filter(|(_, rows)| *rows > 0));
        let to_come = report.note_to_come();
        report.notes.extend(to_come);
        if unrecorded > 0 {
            report.notes.push(format!(
                "no turn has recorded that it passed {unrecorded} of the rows that are not_delivered: the position was moved over them, \
                 or a replica of an older version has passed them"
            ));
        }
        if pruned > 0 {
            report.notes.push(format!(
                "{pruned} rows that were passed before the oldest row of {BUILT_IN} are not in it any more: retention removes them"
            ));
        }
        if passed.unnamed > 0 {
            report.notes.push(format!(
                "{} ids that are not in the table cannot be named: sums over them are recorded, and not the ids",
                passed.unnamed
            ));
        }
        if !report.complete {
            report
                .notes
                .push("there are more differences than can be looked at one by one: these are some of them".to_owned());
        }
        report.passed = Some(passed);
        Ok(report)
    }

    /// A range of which nothing is recorded is neither equal nor different.
    fn require_compared(&self) -> Result<(), Problem> {
        let Some(first) = self.passed.left_out.first().filter(|_| self.passed.slices == 0 && self.compared == 0) else {
            return Ok(());
        };
        let rows: u64 = self.passed.left_out.iter().map(|part| part.rows).sum();
        let what = format!(
            "{}: nothing could be compared: {rows} rows from {} on were passed, and {}",
            self.report.name, self.report.since, first.why
        );
        Err(Problem::new(what, first.fix.clone()))
    }
}
