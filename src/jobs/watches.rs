//! Which processes watched the schedules of a relay, and when, as rows of `outbox.schedule_watch`.
//!
//! What was watched is known to the database, not to a process: whichever replica plans an occurrence that is late, it finds
//! the same answer.

use std::time::Duration;

use super::Settlement;
use crate::cursor::Taking;
use crate::cursor::liveness;
use crate::database::{Error, Session};
use crate::position::Timestamp;

/// A process watches as long as it looks at its schedules at least this often.
pub const UNBROKEN: Duration = Duration::from_secs(5);

/// No row while the process has none in `outbox.replica`.
const BEGIN: &str = include_str!("sql/watches_begin.sql");

const SEEN: &str =
    "UPDATE outbox.schedule_watch SET seen_at = pg_catalog.clock_timestamp() WHERE watch_id = $1 AND ended_at IS NULL";

const END: &str = include_str!("sql/watches_end.sql");

/// A process is there as long as it says so in one of its sessions. One that says nothing was there until it was last seen. What
/// sessions say shows nothing of the time before this server was started.
fn watches() -> String {
    format!(
        "SELECT w.since, COALESCE(w.ended_at, GREATEST(w.seen_at, r.seen_at)), \
         CASE WHEN w.ended_at IS NULL AND r.stopped_at IS NULL THEN ({}) END, pg_catalog.pg_postmaster_start_time() \
         FROM outbox.schedule_watch AS w JOIN outbox.replica AS r ON r.instance = w.instance WHERE w.relay = $1",
        liveness::there_until("r")
    )
}

/// A process that watches.
#[derive(Clone, Copy, Debug)]
pub struct WatchingProcess<'a> {
    /// Names the process.
    pub instance: &'a str,
    /// The relay whose schedules it watches.
    pub relay: &'a str,
}

/// A time in which a process watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// From here on.
    pub from: Timestamp,
    /// Up to here.
    pub to: Timestamp,
}

/// Records that a process watches since an instant, and when its watch before that ended; the row's id. None when the process
/// has no row, so that it is to be retried.
///
/// # Errors
/// The database's.
pub async fn begin(
    session: &Session,
    watcher: WatchingProcess<'_>,
    since: Timestamp,
    before: Option<(i64, Timestamp)>,
) -> Result<Option<i64>, Error> {
    let (id, ended) = before.unzip();
    let row = session.query_opt(BEGIN, &[&watcher.instance, &watcher.relay, &since, &ended, &id]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Records that a process still watches; false when its row is not there.
///
/// # Errors
/// The database's.
pub async fn seen(session: &Session, id: i64) -> Result<bool, Error> {
    Ok(session.execute(SEEN, &[&id]).await? > 0)
}

/// Records that a process watches no longer, since an instant or since now.
///
/// # Errors
/// The database's.
pub async fn end(session: &Session, id: i64, ended: Option<Timestamp>) -> Result<(), Error> {
    session.execute(END, &[&id, &ended]).await?;
    Ok(())
}

impl Settlement {
    /// The times in which processes watched the schedules of a relay, in no order.
    ///
    /// # Errors
    /// The database's.
    pub async fn watched(&self, relay: &str) -> Result<Vec<Span>, Error> {
        let rows = self.query(Taking { sql: &watches(), parameters: &[&relay] }).await?;
        let mut spans = Vec::new();
        for row in &rows {
            let (from, to): (Timestamp, Timestamp) = (row.try_get(0)?, row.try_get(1)?);
            spans.push(Span { from, to });
            if let Some(to) = row.try_get::<_, Option<Timestamp>>(2)? {
                let started: Timestamp = row.try_get(3)?;
                spans.push(Span { from: from.max(started), to });
            }
        }
        Ok(spans)
    }
}
