//! What a scan reads, in the order that the horizon's proof needs: starts of transactions seen before, the clock, then
//! locks; for the rule `transactions` the clock, sessions, then transactions; and behind all of it how far the log is, where rows
//! wait for standbys.
//!
//! Each is a statement of its own in autocommit, because the planner may reorder a join, and because PostgreSQL shows
//! one statement the activity of its first reading. All are sent at once and carried out one after the other.

use std::collections::HashSet;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::database::{Error, Session};
use crate::position::Timestamp;
use crate::source::Rule;
use crate::source::horizon::{self, Activity, Running, ScanResult, Standby, Start, Wal, Writer};
use crate::source::shape::Shape;

/// For scans without a table of the rule `writers`, whose locks come with the clock.
const CLOCK: &str = "SELECT pg_catalog.clock_timestamp() AS at";

/// What was read for all tables of a scan.
#[derive(Debug)]
pub(super) struct Read {
    /// The database's clock.
    pub(super) at: Timestamp,
    starts: Vec<Start>,
    /// Each with the relation that it has locked.
    writers: Vec<(Writer, u32)>,
    sessions: Vec<Seen>,
    running: Vec<Running>,
    /// The log, if a table's rows wait for standbys.
    pub(super) wal: Wal,
}

#[derive(Debug)]
struct Seen {
    session: horizon::Session,
    /// Of the relay's role, and running none of the user's SQL.
    own: bool,
    /// A walsender that streams changes.
    replicates: bool,
}

impl Seen {
    fn is_left_out(&self, shape: &Shape) -> bool {
        self.replicates || self.own && shape.own_role_only_reads
    }
}

impl Read {
    /// What counts for one table.
    pub(super) fn found(&self, shape: &Shape, family: &[u32]) -> ScanResult {
        match shape.rule {
            Rule::Window => ScanResult::Nothing,
            Rule::Writers => {
                let mut seen = HashSet::new();
                let its_own = self.writers.iter().filter(|(_, relation)| family.contains(relation));
                let writers = its_own.map(|(writer, _)| writer).filter(|writer| seen.insert(&writer.transaction));
                ScanResult::Writers { starts: self.starts.clone(), writers: writers.cloned().collect() }
            }
            Rule::Transactions => {
                let (left_out, sessions): (Vec<_>, Vec<_>) =
                    self.sessions.iter().partition(|seen| seen.is_left_out(shape));
                let left_out: HashSet<i32> = left_out.into_iter().map(|seen| seen.session.pid).collect();
                let counts = |running: &&Running| running.pid.is_none_or(|pid| !left_out.contains(&pid));
                let mut seen = HashSet::new();
                let running = self.running.iter().filter(counts).filter(|running| seen.insert(&running.transaction));
                ScanResult::Sessions {
                    running: running.cloned().collect(),
                    sessions: sessions.into_iter().map(|seen| seen.session.clone()).collect(),
                }
            }
        }
    }
}

/// Reads what these tables need, and the starts of what `pids` run.
pub(super) async fn read(session: &Session, shapes: &[&Shape], pids: &[i32]) -> Result<Read, Error> {
    let of = |rule: Rule| shapes.iter().filter(move |shape| shape.rule == rule);
    let family: Vec<u32> = of(Rule::Writers).flat_map(|shape| shape.family()).collect();
    let (clock, parameters): (_, &[&(dyn ToSql + Sync)]) = match family.is_empty() {
        true => (CLOCK, &[]),
        false => (include_str!("../sql/writers.sql"), &[&family]),
    };
    let clock = session.prepare_cached(clock).await?;
    let starts = (!family.is_empty() && !pids.is_empty()).then_some(include_str!("../sql/starts.sql"));
    let by_session = of(Rule::Transactions).next().is_some();
    let sessions = by_session.then_some(include_str!("../sql/sessions.sql"));
    let running = by_session.then_some(include_str!("../sql/transactions.sql"));
    // Prepared first: from then on nothing but the statements themselves lies between them.
    let starts = prepared(session, starts).await?;
    let sessions = prepared(session, sessions).await?;
    let running = prepared(session, running).await?;
    let waits = shapes.iter().any(|shape| shape.config.standbys > 0);
    let wal = prepared(session, waits.then_some(include_str!("../sql/wal.sql"))).await?;
    let rows = async |statement: &Option<_>, parameters: &[&(dyn ToSql + Sync)]| match statement {
        Some(statement) => session.query(statement, parameters).await,
        None => Ok(Vec::new()),
    };
    let of_pids: [&(dyn ToSql + Sync); 1] = [&pids];
    let (starts, writers, sessions, running, log) = tokio::try_join!(
        biased;
        rows(&starts, &of_pids),
        session.query(&clock, parameters),
        rows(&sessions, &[]),
        rows(&running, &[]),
        rows(&wal, &[])
    )?;
    Ok(Read {
        at: writers.first().ok_or(Error::Unreadable("the clock has no row"))?.try_get("at")?,
        starts: starts.iter().map(start).collect::<Result<_, _>>()?,
        writers: writers.iter().filter_map(|row| writer(row).transpose()).collect::<Result<_, _>>()?,
        sessions: sessions.iter().map(seen).collect::<Result<_, _>>()?,
        running: running.iter().map(transaction).collect::<Result<_, _>>()?,
        wal: log_of(&log)?,
    })
}

async fn prepared(session: &Session, sql: Option<&str>) -> Result<Option<tokio_postgres::Statement>, Error> {
    match sql {
        Some(sql) => Ok(Some(session.prepare_cached(sql).await?)),
        None => Ok(None),
    }
}

/// A row for each standby, or one without.
fn log_of(rows: &[Row]) -> Result<Wal, tokio_postgres::Error> {
    let mut wal = Wal::default();
    let size = |value: i64| u64::try_from(value).unwrap_or(0);
    for row in rows {
        (wal.inserted, wal.page, wal.segment) = (size(row.try_get(0)?), size(row.try_get(1)?), size(row.try_get(2)?));
        if let Some(pid) = row.try_get(3)? {
            let flushed: Option<i64> = row.try_get(5)?;
            wal.standbys.push(Standby { pid, application: row.try_get(4)?, flushed: flushed.map(size) });
        }
    }
    Ok(wal)
}

fn start(row: &Row) -> Result<Start, tokio_postgres::Error> {
    Ok(Start { pid: row.try_get(0)?, application: row.try_get(1)?, started: row.try_get(2)? })
}

/// None in the row that is there for the clock alone.
fn writer(row: &Row) -> Result<Option<(Writer, u32)>, tokio_postgres::Error> {
    if row.len() == 1 {
        return Ok(None);
    }
    let Some(transaction) = row.try_get(1)? else { return Ok(None) };
    Ok(Some((Writer { transaction, pid: row.try_get(2)? }, row.try_get(3)?)))
}

fn seen(row: &Row) -> Result<Seen, tokio_postgres::Error> {
    let activity = match (row.try_get(2)?, row.try_get(3)?) {
        (true, _) => Activity::Hidden,
        (_, true) => Activity::Silent,
        _ if row.try_get(7)? => Activity::Unreported,
        _ => Activity::Reported { transaction: row.try_get(4)?, message: row.try_get(5)? },
    };
    let session = horizon::Session { pid: row.try_get(0)?, application: row.try_get(1)?, activity };
    Ok(Seen { session, own: row.try_get(6)?, replicates: row.try_get(8)? })
}

fn transaction(row: &Row) -> Result<Running, tokio_postgres::Error> {
    Ok(Running {
        transaction: row.try_get(0)?,
        pid: row.try_get(1)?,
        session_began: row.try_get(2)?,
        login_trigger: row.try_get(3)?,
    })
}
