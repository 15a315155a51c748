//! The rows that came late, asked for in the snapshot that a fetch reads with.
//!
//! They are asked for in parts, of so many transactions each, because all that was written while a sink was out, or a cursor
//! paused, may be more than a turn has time for. Promise: after each part it is known up to which snapshot late rows have been
//! found, and no part begins that would not end in time if the rows were spread as before. One that takes too long all the same
//! costs the connection; what the parts before it have found stands, and the next reading asks for fewer transactions.

use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use super::{FetchError, Request};
use crate::database::Loan;
use crate::late::{AGED, LateRow, MOST, Opened, Parts, Snapshot, Swept};
use crate::position::Position;

/// A part that took less than this part of the limit is followed by a larger one.
const QUICK: u32 = 16;
/// By how much it is larger.
const LARGER: u64 = 8;
/// How much smaller the next is after one that took too long.
const SMALLER: u64 = 64;
/// The most transactions that a reading asks for first.
const FIRST: u64 = 1 << 22;

/// Of whose rows at or below a position to find those that came late.
#[derive(Clone, Copy, Debug)]
pub struct SweepRequest<'a> {
    /// The cursor.
    pub cursor: &'a str,
    /// Up to where they have been found.
    pub swept: &'a Swept,
    /// In which parts to ask for the rest.
    pub parts: Parts,
}

/// The questions of [`crate::source::sweep`], prepared. The second is asked where the first found something.
pub(super) struct Sweep<'a> {
    is_any: Statement,
    rows: Statement,
    asked: SweepRequest<'a>,
    after: &'a Position,
    since: Snapshot,
}

impl<'a> Sweep<'a> {
    /// None where nothing can be late: before every row, or since no snapshot that these rows can be compared with.
    pub(super) async fn prepare(reader: &Loan, request: &Request<'a>) -> Result<Option<Self>, FetchError> {
        let known = request.sweep.filter(|asked| request.shape.sweep == Some(asked.swept.column));
        let Some((asked, after)) = known.zip(request.after) else { return Ok(None) };
        let Some(since) = Snapshot::parse(&asked.swept.snapshot) else { return Ok(None) };
        let [is_any, rows] = &request.texts.late;
        let (is_any, rows) = (reader.prepare_cached(is_any).await?, reader.prepare_cached(rows).await?);
        Ok(Some(Self { is_any, rows, asked, after, since }))
    }

    /// Whether the first part has one; none when that is not known in time.
    pub(super) async fn first(&self, reader: &Loan) -> Result<Option<bool>, FetchError> {
        let Parts { span, limit, .. } = self.asked.parts;
        self.finds(reader, &self.since, self.since.next().saturating_add(span), limit).await
    }

    /// Whether the first part asks for all that a snapshot sees.
    pub(super) fn is_asked(&self, snapshot: &str) -> bool {
        let bound = self.since.next().saturating_add(self.asked.parts.span);
        Snapshot::parse(snapshot).is_none_or(|now| now.next() <= bound)
    }

    /// What is known when the first part has taken too long.
    ///
    /// # Errors
    /// When it was of a single transaction.
    pub(super) fn too_long(&self) -> Result<Opened, FetchError> {
        let Parts { span, limit, .. } = self.asked.parts;
        if span <= 1 {
            return Err(FetchError::Late(limit));
        }
        Ok(self.part(&self.since, span / SMALLER))
    }

    /// What is late, by what the first part has found and, where that is not all, by the parts that follow. With it, whether
    /// the last of them has taken too long.
    pub(super) async fn opened(
        &self,
        reader: &Loan,
        snapshot: &str,
        is_late: bool,
        begun: Instant,
    ) -> Result<(Opened, bool), FetchError> {
        let Parts { mut span, most, limit } = self.asked.parts;
        // What PostgreSQL does not write is no older than anything.
        let now = Snapshot::parse(snapshot).unwrap_or_else(|| self.since.clone());
        let aged = now.next() >= self.since.next().saturating_add(AGED);
        let (mut since, mut is_late, mut asked) = (self.since.clone(), is_late, begun);
        for part in 1.. {
            let bound = since.next().saturating_add(span);
            let whole = now.next() <= bound;
            let until = if whole { snapshot.to_owned() } else { now.before(bound).to_string() };
            let opened = Opened { snapshot: until, aged, ..self.part(&since, span) };
            if is_late {
                let (late, more) = self.rows(reader, &since, bound).await?;
                let snapshot = if more { since.to_string() } else { opened.snapshot };
                return Ok((Opened { snapshot, late, more, part: !whole, ..opened }, false));
            }
            if whole {
                return Ok((Opened { part: false, ..opened }, false));
            }
            if part >= most || begun.elapsed() >= limit / 2 {
                return Ok((opened, false));
            }
            since = now.before(bound);
            span = next(span, asked.elapsed(), limit);
            asked = Instant::now();
            let left = limit.saturating_sub(begun.elapsed());
            match self.finds(reader, &since, since.next().saturating_add(span), left).await? {
                Some(found) => is_late = found,
                None => return Ok((Opened { aged, ..self.part(&since, span / SMALLER) }, true)),
            }
        }
        unreachable!("the parts end")
    }

    /// What is known after some parts.
    fn part(&self, since: &Snapshot, span: u64) -> Opened {
        Opened { snapshot: since.to_string(), part: true, span: Some(span.clamp(1, FIRST)), ..Opened::default() }
    }

    /// Whether there is one of the transactions since then and before `bound`; none when that is not known in time.
    async fn finds(
        &self,
        reader: &Loan,
        since: &Snapshot,
        bound: u64,
        limit: Duration,
    ) -> Result<Option<bool>, FetchError> {
        let asking = self.ask(reader, &self.is_any, since, bound);
        let Ok(rows) = tokio::time::timeout(limit, asking).await else { return Ok(None) };
        // The server's own limit may come first where this process waits for a processor.
        if rows.as_ref().is_err_and(|error| error.code() == Some(&SqlState::QUERY_CANCELED)) {
            return Ok(None);
        }
        let found = rows?.first().map(|row| row.try_get(0)).transpose()?;
        Ok(Some(found.unwrap_or(false)))
    }

    /// All of them, or so many that there are more.
    async fn rows(&self, reader: &Loan, since: &Snapshot, bound: u64) -> Result<(Vec<LateRow>, bool), FetchError> {
        let rows = self.ask(reader, &self.rows, since, bound).await?;
        let late = |row: &Row| {
            let position = Position { created_at: row.try_get(0)?, id: Some(row.try_get(1)?) };
            Ok(LateRow { position, transaction: row.try_get(2)? })
        };
        let late = rows.iter().take(MOST).map(late).collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
        Ok((late, rows.len() > MOST))
    }

    async fn ask(
        &self,
        reader: &Loan,
        statement: &Statement,
        since: &Snapshot,
        bound: u64,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        let (since, bound) = (since.to_string(), bound.to_string());
        let Position { created_at, id } = self.after;
        let parameters: [&(dyn ToSql + Sync); 5] = [&self.asked.cursor, &since, created_at, id, &bound];
        reader.query(statement, &parameters).await
    }
}

/// Of how many transactions the part after one is that took so long.
fn next(span: u64, took: Duration, limit: Duration) -> u64 {
    if took < limit / QUICK {
        span.saturating_mul(LARGER)
    } else if took > limit / 2 {
        (span / LARGER).max(1)
    } else {
        span
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_parts_grow_and_slow_ones_shrink() {
        let limit = Duration::from_millis(1_600);
        assert_eq!(next(1_024, Duration::from_millis(99), limit), 8_192);
        assert_eq!(next(1_024, Duration::from_millis(100), limit), 1_024);
        assert_eq!(next(1_024, Duration::from_millis(801), limit), 128);
        assert_eq!(next(1, Duration::from_secs(3), limit), 1);
    }
}
