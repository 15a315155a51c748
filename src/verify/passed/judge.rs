//! Each id that differs by itself: the database is asked about it once more, and it is decided what it is.

use std::collections::HashSet;

use super::{Gone, Missing, Work};
use crate::database::Session;
use crate::position::Timestamp;
use crate::verify::Error;
use crate::verify::decide::{Kind, Withheld};
use crate::verify::history::{self, IDS};
use crate::verify::operations::{Row, Said, parts};
use crate::verify::report::Difference;
use crate::verify::rows_now;

impl Work<'_> {
    pub(super) async fn judge(&mut self) -> Result<(), Error> {
        let missing = std::mem::take(&mut self.missing);
        for some in missing.chunks(IDS) {
            self.missing(some).await?;
        }
        let gone = std::mem::take(&mut self.gone);
        self.passed.unnamed = gone.iter().map(|(_, gone)| gone.unnamed).sum();
        let named: Vec<(usize, String)> =
            gone.into_iter().flat_map(|(part, gone)| gone.ids.into_iter().map(move |id| (part, id))).collect();
        for some in named.chunks(IDS) {
            self.gone(some).await?;
        }
        Ok(())
    }

    /// Rows that the table has and no slice.
    async fn missing(&mut self, some: &[Missing]) -> Result<(), Error> {
        let ids: Vec<&str> = some.iter().map(|row| row.id.as_str()).collect();
        let cursors = &self.subject.cursors;
        let Some(shape) = self.subject.parts.first() else { return Ok(()) };
        let now = rows_now::of_ids(self.session, shape, &ids).await?;
        // After the table: what was delivered meanwhile is known. What is still to come late becomes an open letter, and that a redriven
        // one: in this order each row is found as one of them.
        let rows: Vec<(usize, &str)> = some.iter().map(|row| (row.part, row.id.as_str())).collect();
        let mut known = cursors.to_come(self.session, &self.subject.parts, &rows).await?;
        known.extend(cursors.known(self.session, &ids).await?);
        let redriven = redriven(self.session, &cursors.names, &ids).await?;
        let given_up = history::given_up(self.session, &self.history, &ids).await?;
        for row in some {
            let key = (row.id.clone(), row.at);
            let is_there = now.get(&row.id).is_some_and(|rows| rows.iter().any(|found| found.created_at == row.at));
            if !is_there || redriven.contains(&key) || is_moved(&mut self.gone, &row.id) {
                continue;
            }
            let cursor = cursors.names.get(row.part).map_or("", String::as_str);
            let (_, shard) = parts(cursor);
            let found = Row { id: &row.id, at: row.at, ids: shape.id_type, given_up: given_up.get(&key).copied() };
            let said = known.get(&key).map_or_else(|| self.history.says(found, shard), |known| Said::Passed(*known));
            let withheld: Option<Withheld> = match said {
                Said::Passed(known) => {
                    self.report.explain(known, &row.id, row.at);
                    self.explained += 1;
                    continue;
                }
                Said::Unclear(why) => Some(why),
                Said::Due | Said::Nothing => None,
            };
            self.unrecorded += u64::from(!row.is_within);
            let (kind, created_at, cursor) = (Kind::NotDelivered, Some(row.at), Some(cursor.to_owned()));
            *self.report.counts.entry(kind).or_default() += 1;
            self.report.differences.push(Difference {
                id: row.id.clone(),
                created_at,
                kind,
                record: None,
                cursor,
                transaction: None,
                withheld,
            });
        }
        Ok(())
    }

    /// Ids that were passed, and that the table does not have where they were.
    async fn gone(&mut self, some: &[(usize, String)]) -> Result<(), Error> {
        let Some(shape) = self.subject.parts.first() else { return Ok(()) };
        let ids: Vec<&str> = some.iter().map(|(_, id)| id.as_str()).collect();
        let now = rows_now::of_ids(self.session, shape, &ids).await?;
        // One that is elsewhere has another `created_at` by now: it was delivered, and is there.
        for (part, id) in some.iter().filter(|(_, id)| !now.contains_key(id)) {
            let (kind, cursor) = (Kind::NotInTable, self.subject.cursors.names.get(*part).cloned());
            *self.report.counts.entry(kind).or_default() += 1;
            let id = id.clone();
            self.report.differences.push(Difference {
                id,
                created_at: None,
                kind,
                record: None,
                cursor,
                transaction: None,
                withheld: None,
            });
        }
        Ok(())
    }
}

/// Whether a row was passed at another place, where it is no more: its `created_at` or its shard has changed since.
fn is_moved(gone: &mut [(usize, Gone)], id: &str) -> bool {
    gone.iter_mut().any(|(_, gone)| gone.take_out(id))
}

/// Those of these ids whose letters the sink has accepted.
async fn redriven(session: &Session, cursors: &[String], ids: &[&str]) -> Result<HashSet<(String, Timestamp)>, Error> {
    let rows = session.query(include_str!("../sql/redriven.sql"), &[&cursors, &ids]).await?;
    let row = |row: &tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
    Ok(rows.iter().map(row).collect::<Result<_, tokio_postgres::Error>>()?)
}
