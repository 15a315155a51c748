//! `check --observe`: looks at the tables for a while, and says what lag is achievable and what stands in its way.
//!
//! Writers are seen by the same scans that a relay makes. A row that comes below what a scan called safe would have been
//! lost by a relay: its `created_at` was not set when it was inserted. Such rows are looked for among the newest ones only.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use crate::database::{Error, Session, Sessions};
use crate::position::{Position, Timestamp};
use crate::relay::Config;
use crate::relay::setup::prepare;
use crate::source::finding::{Finding, Level};
use crate::source::shape::Shape;
use crate::source::span::{below, between, newest};
use crate::source::watcher::{Sighting, Watcher};

mod seen;
mod tell;

pub use seen::Seen;

/// Between two looks at the writers.
const LOOK: Duration = Duration::from_millis(50);
/// Between two looks at the rows.
const ROWS: Duration = Duration::from_secs(1);
/// So many lines at most tell how far it is.
const LINES: u32 = 12;
/// So many of the newest safe rows are watched for company, for as long as it goes on and from each look to the next.
const WATCHED: i64 = 10_000;
const WATCHED_NEXT: i64 = 1_000;
/// The growth is counted up to here.
const GROWTH: i64 = 1_000_000;

/// Rows that were safe to read: none may be added to them.
#[derive(Clone, Debug)]
struct Sealed {
    from: Option<Position>,
    below: Position,
    rows: i64,
}

/// One table, while it is looked at.
struct Observed<'a> {
    relay: &'a Config,
    shape: Shape,
    seen: Seen,
    begun: Option<Timestamp>,
    first: Option<Sealed>,
    last: Option<Sealed>,
}

/// Observes the tables of these relays for `time`; `told` gets a line from time to time.
///
/// # Errors
/// When PostgreSQL cannot be asked.
pub async fn observe(
    sessions: (&Sessions, Watcher),
    relays: &[Config],
    time: Duration,
    told: impl Fn(String),
) -> Result<Vec<Finding>, Error> {
    let (sessions, watcher) = sessions;
    let session = sessions.open().await?;
    let mut tables = tables(&session, relays).await?;
    let begun = Instant::now();
    let (mut rows_at, mut told_at): (Option<Instant>, Option<Instant>) = (None, None);
    while begun.elapsed() < time {
        let rows_due = rows_at.is_none_or(|at| at.elapsed() >= ROWS);
        for table in &mut tables {
            let sighting = watcher.scan(&table.shape).await?;
            table.begun.get_or_insert(sighting.horizon.observed_at);
            table.seen.note(&sighting.horizon);
            if rows_due {
                table.rows(&session, &sighting).await?;
            }
        }
        if rows_due {
            rows_at = Some(Instant::now());
        }
        if rows_due && told_at.is_none_or(|at| at.elapsed() >= time / LINES) {
            told_at = Some(Instant::now());
            let (writers, late) = tables
                .iter()
                .fold((0, 0), |(writers, late), table| (writers + table.seen.writers(), late + table.seen.late));
            told(format!(
                "observing: {} s of {} s, {writers} writers seen, {late} rows below what was safe to read",
                begun.elapsed().as_secs(),
                time.as_secs()
            ));
        }
        tokio::time::sleep(LOOK.min(time.saturating_sub(begun.elapsed()))).await;
    }
    let mut findings = Vec::new();
    for mut table in tables {
        let sighting = watcher.scan(&table.shape).await?;
        table.end(&session, &sighting).await?;
        let found = tell::findings(&table.shape, &table.seen, begun.elapsed());
        findings.extend(found.into_iter().map(|finding| Finding { relay: table.relay.relay.clone(), ..finding }));
    }
    findings.push(snapshot(&session).await?);
    Ok(findings)
}

/// The tables that can be read, each once.
async fn tables<'a>(session: &Session, relays: &'a [Config]) -> Result<Vec<Observed<'a>>, Error> {
    let mut tables = Vec::new();
    let mut known = HashSet::new();
    for relay in relays {
        if !known.insert(&relay.source) {
            continue;
        }
        // What is wrong with the others, the check itself says.
        if let Ok(shape) = prepare::shape(session, &relay.source).await? {
            tables.push(Observed { relay, shape, seen: Seen::default(), begun: None, first: None, last: None });
        }
    }
    Ok(tables)
}

impl Observed<'_> {
    /// Counts what was safe at the last look again, and seals what is safe now.
    async fn rows(&mut self, session: &Session, sighting: &Sighting) -> Result<(), Error> {
        if let Some(last) = self.last.take() {
            self.seen.late += self.added(session, &last).await?;
        }
        if self.first.is_none() {
            self.first = self.seal(session, sighting, WATCHED).await?;
        }
        self.last = self.seal(session, sighting, WATCHED_NEXT).await?;
        let newest = newest(session, &self.shape).await?;
        if let Some(newest) = newest.filter(|newest| newest.created_at.is_finite()) {
            let ahead = newest.created_at.since(sighting.clock());
            self.seen.ahead = self.seen.ahead.max(ahead);
        }
        Ok(())
    }

    async fn seal(&self, session: &Session, sighting: &Sighting, rows: i64) -> Result<Option<Sealed>, Error> {
        let at = sighting.horizon.at;
        if !at.is_finite() {
            return Ok(None);
        }
        let from = below(session, &self.shape, at, rows).await?;
        let below = Position { created_at: at, id: None };
        let counted = between(session, &self.shape, (from.as_ref(), Some(&below)), rows * 2).await?.rows;
        Ok(Some(Sealed { from, below, rows: counted }))
    }

    /// How many rows have come below what was safe.
    async fn added(&self, session: &Session, sealed: &Sealed) -> Result<i64, Error> {
        let now = between(session, &self.shape, (sealed.from.as_ref(), Some(&sealed.below)), WATCHED * 2).await?;
        Ok((now.rows - sealed.rows).max(0))
    }

    async fn end(&mut self, session: &Session, sighting: &Sighting) -> Result<(), Error> {
        if let Some(first) = &self.first {
            // Rows far below are not among those that were watched from look to look.
            self.seen.late = self.seen.late.max(self.added(session, first).await?);
        }
        if let Some(begun) = self.begun {
            let position = |created_at| Position { created_at, id: None };
            let (from, to) = (position(begun), position(sighting.clock()));
            self.seen.grown = between(session, &self.shape, (Some(&from), Some(&to)), GROWTH).await?.rows;
        }
        Ok(())
    }
}

/// The oldest snapshot: the dead versions of the cursors' rows pile up below it, and turns get slower.
async fn snapshot(session: &Session) -> Result<Finding, Error> {
    let row = session.query_opt(include_str!("sql/observe_snapshot.sql"), &[]).await?;
    let all: bool =
        session.query_one("SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')", &[]).await?.try_get(0)?;
    let row = match row {
        Some(row) => Some((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)),
        None => None,
    };
    Ok(tell::snapshot(row, all))
}

/// A finding about what was observed.
fn observed(level: Level, code: &'static str, message: String) -> Finding {
    Finding::new(level, code, message)
}
