//! All that an operator may want to see at once: every cursor with why it does not move, and when schedules are next due.
//!
//! One look at everything, where `cursor why` watches one cursor for two seconds: a cursor that has only just begun to wait
//! counts as moving.

use crate::cursor::{Detail, details};
use crate::database::Session;
use crate::jobs;
use crate::jobs::timetable::{self, ScheduleFilter, ScheduleSummary};
use crate::position::Timestamp;
use crate::relay::Config;
use crate::relay::engine::identity::SourceKind;
use crate::relay::engine::replicas;
use crate::relay::inspect::diagnose;
use crate::relay::inspect::explain::{Why, why};
use crate::relay::inspect::facts::{CursorFacts, Retrying};
use crate::relay::inspect::status::{CursorStatus, Status, status};
use crate::source::watcher::Watcher;

/// Rows that have waited for less than this are no sign of trouble.
const USUAL: f64 = 5.0;
/// So many cursors are asked about one by one, where the list of all does not say enough.
const ASKED: usize = 50;
/// So many schedules are listed.
pub const SCHEDULES: usize = 100;

/// See the module.
#[derive(Debug)]
pub struct Overview {
    /// Every cursor, and the live replicas.
    pub status: Status,
    /// Why each cursor does not move, in the order of the cursors.
    pub whys: Vec<Why>,
    /// The first schedules, by relay, tenant and name.
    pub schedules: Vec<ScheduleSummary>,
}

/// Looks once.
///
/// # Errors
/// When PostgreSQL cannot be asked.
pub async fn overview(session: &Session, watcher: &Watcher, relays: &[Config]) -> anyhow::Result<Overview> {
    let mut status = status(session, watcher, relays).await?;
    let Status { cursors, fleet, .. } = &mut status;
    cursors.retain(|cursor| cursor.exists || !fleet.lacks(&cursor.name));
    let names: Vec<&str> = status.cursors.iter().map(|cursor| cursor.name.as_str()).collect();
    let details = details(session, &names).await?;
    let replicas = replicas::running(session).await?;
    let now = Timestamp::parse_rfc3339(&status.observed_at).ok();
    let mut whys = Vec::with_capacity(details.len());
    let mut asked = 0;
    for (cursor, detail) in status.cursors.iter().zip(&details) {
        let relay = relays.iter().find(|relay| relay.name == cursor.name);
        let mut facts = glance(cursor, detail, now);
        facts.replicas = status.fleet.may_take(&cursor.name, replicas.clone());
        facts.notes = cursor.notes(&status.fleet);
        facts.absent = status.fleet.lacks(&cursor.name);
        let kind = diagnose::kind(relay, detail.identity.as_deref());
        facts.due_work = kind != SourceKind::Stream;
        facts.has_lanes = relay.is_some_and(|relay| relay.lanes.are_used());
        facts.of_requests = kind == SourceKind::Requests;
        let waits = facts.waiting.is_some_and(|waiting| waiting.rows > 0);
        if (waits && !facts.moved || kind == SourceKind::Schedules) && asked < ASKED {
            asked += 1;
            ask(session, &mut facts, cursor, kind).await?;
        }
        whys.push(why(&facts));
    }
    let filter = ScheduleFilter { limit: i64::try_from(SCHEDULES).unwrap_or(i64::MAX), ..ScheduleFilter::default() };
    Ok(Overview { schedules: timetable::list(session, filter).await?, whys, status })
}

/// What the lists say. Keys of rows are not among it: the page is shown where rows are not.
fn glance(cursor: &CursorStatus, detail: &Detail, now: Option<Timestamp>) -> CursorFacts {
    let mut facts = diagnose::written(&cursor.name, Some(cursor), detail);
    facts.unknown_keys.clear();
    facts.held = cursor.state == "held";
    let advanced = cursor.advanced_at.as_deref().and_then(|at| Timestamp::parse_rfc3339(at).ok());
    facts.rested = advanced.zip(now).map(|(at, now)| now.since(at).as_secs_f64());
    let is_usual = facts.waiting.is_some_and(|waiting| waiting.rows > 0 && waiting.lag_seconds < USUAL);
    if is_usual && matches!(cursor.state, "running" | "held") {
        facts.moved = true;
        facts.rested = facts.rested.filter(|rested| *rested < USUAL);
    }
    facts
}

/// What is known of this cursor alone.
async fn ask(
    session: &Session,
    facts: &mut CursorFacts,
    cursor: &CursorStatus,
    kind: SourceKind,
) -> anyhow::Result<()> {
    if kind == SourceKind::Schedules {
        facts.schedules = Some(diagnose::scheduled(session, &cursor.name).await?);
    }
    if facts.due_work {
        let waiting = jobs::waiting(session, &cursor.name).await?;
        facts.retrying = waiting.map(|(rows, next_in, code)| Retrying { rows, next_in, code });
    }
    if facts.held
        && let Some(horizon) = &cursor.horizon
    {
        facts.holders = diagnose::holders(session, &horizon.held_by).await?;
    }
    if let Some(holder) = cursor.holder.as_ref().filter(|_| cursor.state == "running" && !facts.moved)
        && let Some(pid) = holder.pid
    {
        facts.lock = diagnose::lock_of(session, &holder.replica, pid).await?;
    }
    if cursor.state == "running" && !facts.moved && facts.lock.is_none() {
        facts.prepared_lock = diagnose::prepared_lock(session, &cursor.name).await?;
    }
    Ok(())
}
