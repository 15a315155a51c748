//! Schedules as operators see them: listed, paused, resumed, and carried out at once.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::cursor::control::{ControlOutcome, note};
use crate::database::Error;
use crate::position::Timestamp;

/// What became of the newest occurrence is found from tenant to tenant along the index: a long history costs nothing.
const LIST: &str = include_str!("sql/timetable_list.sql");

const ENABLE: &str = include_str!("sql/timetable_enable.sql");

/// Nobody deletes it before its actions are made.
const KEEP: &str = include_str!("sql/timetable_keep.sql");

const MAKE: &str = include_str!("sql/timetable_make.sql");

const MADE: &str = include_str!("sql/timetable_made.sql");

/// What to list.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScheduleFilter<'a> {
    /// Only of this relay.
    pub relay: Option<&'a str>,
    /// Only this tenant's; empty is nobody's, `*` those for each tenant.
    pub tenant: Option<&'a str>,
    /// Only those that cannot run.
    pub problems: bool,
    /// Only the one of this id.
    pub id: Option<i64>,
    /// Only those of this name, or of this tenant and name with a slash in between.
    pub name: Option<&'a str>,
    /// The most.
    pub limit: i64,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleSummary {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Whose it is; `*` for each tenant.
    pub tenant: String,
    /// The relay that carries its actions out.
    pub relay: String,
    /// Its rule; none for one date.
    pub rule: Option<String>,
    /// The rule's zone.
    pub time_zone: String,
    /// The rule's beginning, or the one date.
    pub starts_at: Option<Timestamp>,
    /// Its end.
    pub ends_at: Option<Timestamp>,
    /// When what says when was last changed.
    pub changed_at: Timestamp,
    /// False: it makes no occurrences.
    pub enabled: bool,
    /// When it is next due; none is to be computed, infinity is never again.
    pub next_at: Option<Timestamp>,
    /// The newest occurrence that was made or passed over.
    pub last_at: Option<Timestamp>,
    /// Why it cannot run.
    pub problem: Option<String>,
    /// Its newest occurrence that was made, and how many of its actions have which status, as JSON.
    pub last: Option<(Timestamp, String)>,
    /// All its columns, as JSON.
    pub columns: String,
}

/// An action that was made because somebody asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// Its id.
    pub id: i64,
    /// Whose it is.
    pub tenant: String,
    /// `due`, or `queued` behind another one of its schedule.
    pub status: String,
}

/// Lists schedules by relay, tenant and name.
///
/// # Errors
/// The database's.
pub async fn list(client: &Client, filter: ScheduleFilter<'_>) -> Result<Vec<ScheduleSummary>, Error> {
    let parameters: [&(dyn ToSql + Sync); 6] =
        [&filter.relay, &filter.tenant, &filter.problems, &filter.id, &filter.name, &filter.limit];
    let rows = client.query(LIST, &parameters).await?;
    Ok(rows.iter().map(listed).collect::<Result<_, _>>()?)
}

fn listed(row: &Row) -> Result<ScheduleSummary, tokio_postgres::Error> {
    let planned: Option<Timestamp> = row.try_get(13)?;
    let outcome: Option<String> = row.try_get(14)?;
    Ok(ScheduleSummary {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        tenant: row.try_get(2)?,
        relay: row.try_get(3)?,
        rule: row.try_get(4)?,
        time_zone: row.try_get(5)?,
        starts_at: row.try_get(6)?,
        ends_at: row.try_get(7)?,
        changed_at: row.try_get(8)?,
        enabled: row.try_get(9)?,
        next_at: row.try_get(10)?,
        last_at: row.try_get(11)?,
        problem: row.try_get(12)?,
        last: planned.zip(outcome),
        columns: row.try_get(15)?,
    })
}

/// Lets a schedule make occurrences or none, and notes who did.
///
/// # Errors
/// The database's.
pub async fn enable(client: &mut Client, id: i64, enabled: bool, by: &str) -> Result<ControlOutcome, Error> {
    let transaction = client.transaction().await?;
    let Some(row) = transaction.query_opt(ENABLE, &[&id, &enabled]).await? else { return Ok(ControlOutcome::Already) };
    let verb = if enabled { "schedule resume" } else { "schedule pause" };
    let relay: String = row.try_get(0)?;
    let detail = serde_json::json!({
        "schedule_id": id, "schedule": row.try_get::<_, String>(1)?, "tenant": row.try_get::<_, String>(2)?,
    });
    note(&transaction, verb, &relay, by, Some(&detail.to_string())).await?;
    transaction.commit().await?;
    Ok(ControlOutcome::Done)
}

/// Makes the actions of an occurrence now, whatever the rule says, and notes who asked; none when the schedule is gone.
/// `tenants`: those of a schedule for each tenant.
///
/// # Errors
/// The database's.
pub async fn run_now(client: &mut Client, id: i64, tenants: &[String], by: &str) -> Result<Option<Vec<Made>>, Error> {
    let transaction = client.transaction().await?;
    let Some(row) = transaction.query_opt(KEEP, &[&id]).await? else { return Ok(None) };
    let (planned, relay): (Timestamp, String) = (row.try_get(0)?, row.try_get(1)?);
    transaction.query(MAKE, &[&id, &planned, &tenants]).await?;
    let rows = transaction.query(MADE, &[&id, &planned]).await?;
    let made = rows
        .iter()
        .map(|row| Ok(Made { id: row.try_get(0)?, tenant: row.try_get(1)?, status: row.try_get(2)? }))
        .collect::<Result<Vec<_>, tokio_postgres::Error>>()?;
    let detail = serde_json::json!({
        "schedule_id": id, "schedule": row.try_get::<_, String>(2)?, "tenant": row.try_get::<_, String>(3)?,
        "actions": made.iter().map(|made| made.id).collect::<Vec<_>>(),
    });
    note(&transaction, "schedule run-now", &relay, by, Some(&detail.to_string())).await?;
    transaction.commit().await?;
    Ok(Some(made))
}
