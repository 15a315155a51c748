//! Actions as operators see them: what became of occurrences, and what is running.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::database::Error;
use crate::position::Timestamp;

const COLUMNS: &str = "SELECT a.action_id, a.schedule_id, a.schedule, a.tenant, a.relay, a.planned_at, a.due_at, a.started_at, \
     a.finished_at, a.status, a.manual, a.attempts, a.progress, a.result, a.error::text, a.claimed_by, \
     EXTRACT(EPOCH FROM a.timeout)::float8, EXTRACT(EPOCH FROM CASE a.status WHEN 'running' THEN pg_catalog.clock_timestamp() \
     ELSE a.finished_at END - a.started_at)::float8 FROM outbox.action AS a";

const LIST: &str = "WHERE ($1::text IS NULL OR a.relay = $1) AND ($2::text IS NULL OR a.tenant = $2) \
     AND ($3::text IS NULL OR a.status = $3) AND ($4::bigint IS NULL OR a.schedule_id = $4) \
     AND ($5::text IS NULL OR a.schedule = $5 OR a.tenant || '/' || a.schedule = $5) ORDER BY a.action_id DESC LIMIT $6";

/// The status is written out, so that an index of those that run can be used however long the history is.
const RUNNING: &str = "WHERE a.status = 'running' ORDER BY a.started_at, a.action_id LIMIT $1";

/// What to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ActionFilter<'a> {
    /// Only of this relay.
    pub relay: Option<&'a str>,
    /// Only this tenant's; empty is nobody's.
    pub tenant: Option<&'a str>,
    /// Only in this state.
    pub status: Option<&'a str>,
    /// Only of the schedule of this id.
    pub schedule_id: Option<i64>,
    /// Only of schedules that had this name then, or this tenant and name with a slash in between.
    pub schedule: Option<&'a str>,
    /// The most.
    pub limit: i64,
}

/// An action.
#[derive(Clone, Debug, PartialEq)]
pub struct ActionSummary {
    /// Its id.
    pub id: i64,
    /// Its schedule's id; the schedule may be gone.
    pub schedule_id: i64,
    /// Its schedule's name then.
    pub schedule: String,
    /// Whose it is; empty is nobody's.
    pub tenant: String,
    /// The relay that carries it out.
    pub relay: String,
    /// The instant of its rule.
    pub planned_at: Timestamp,
    /// Since when it could be begun.
    pub due_at: Timestamp,
    /// When it was last begun.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// `queued`, `due`, `running`, `completed`, `failed` or `skipped`.
    pub status: String,
    /// Somebody asked for it.
    pub manual: bool,
    /// How many tries have ended without success.
    pub attempts: i32,
    /// What a running command said last.
    pub progress: Option<String>,
    /// What was answered, or why it was skipped.
    pub result: Option<String>,
    /// Why the last try failed, as JSON.
    pub error: Option<String>,
    /// The replica that began it last.
    pub by: Option<String>,
    /// How many seconds it may take.
    pub timeout: f64,
    /// How many seconds it took, or has been running.
    pub took: Option<f64>,
}

/// Lists actions, the newest first.
///
/// # Errors
/// The database's.
pub async fn list(client: &Client, filter: ActionFilter<'_>) -> Result<Vec<ActionSummary>, Error> {
    let parameters: [&(dyn ToSql + Sync); 6] =
        [&filter.relay, &filter.tenant, &filter.status, &filter.schedule_id, &filter.schedule, &filter.limit];
    let rows = client.query(&format!("{COLUMNS} {LIST}"), &parameters).await?;
    Ok(rows.iter().map(listed).collect::<Result<_, _>>()?)
}

/// Lists what is running, the longest first.
///
/// # Errors
/// The database's.
pub async fn running(client: &Client, most: i64) -> Result<Vec<ActionSummary>, Error> {
    let rows = client.query(&format!("{COLUMNS} {RUNNING}"), &[&most]).await?;
    Ok(rows.iter().map(listed).collect::<Result<_, _>>()?)
}

fn listed(row: &Row) -> Result<ActionSummary, tokio_postgres::Error> {
    Ok(ActionSummary {
        id: row.try_get(0)?,
        schedule_id: row.try_get(1)?,
        schedule: row.try_get(2)?,
        tenant: row.try_get(3)?,
        relay: row.try_get(4)?,
        planned_at: row.try_get(5)?,
        due_at: row.try_get(6)?,
        started_at: row.try_get(7)?,
        finished_at: row.try_get(8)?,
        status: row.try_get(9)?,
        manual: row.try_get(10)?,
        attempts: row.try_get(11)?,
        progress: row.try_get(12)?,
        result: row.try_get(13)?,
        error: row.try_get(14)?,
        by: row.try_get(15)?,
        timeout: row.try_get(16)?,
        took: row.try_get(17)?,
    })
}
