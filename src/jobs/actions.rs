//! Actions: occurrences of schedules that replicas claim, keep and end.
//!
//! Promise: who no longer has the claim's token changes nothing, and is told. A claim is made in the transaction that locks
//! the relay's cursor; it is kept by saying again and again that its claimant is at work, and runs out otherwise.

use std::collections::HashMap;
use std::time::Duration;

use crate::cursor::ErrorReport;
use crate::database::{Error, Session};
use crate::position::Timestamp;

mod claim;
mod end;

const LOOK: &str = include_str!("sql/actions_look.sql");

const BACKLOG: &str = include_str!("sql/actions_backlog.sql");

/// A statement of its own, behind the one that ended the action: it sees what was queued meanwhile. One that an application has
/// locked is left to [`RELEASE`].
const PROMOTE: &str = include_str!("sql/actions_promote.sql");

/// A queued action that nothing is before any more: what was before it was canceled, or was locked when it was to be promoted.
const RELEASE: &str = include_str!("sql/actions_release.sql");

/// One that an application has locked, so that [`RELEASE`] leaves it.
const UNRELEASED: &str = include_str!("sql/actions_unreleased.sql");

/// In the order in which [`end`] locks: the two of them never wait for each other in a circle.
/// Waits for nobody: a row that somebody has locked is about to end, or is looked at, and is still its claimant's. Waiting for it
/// while others are held would be a deadlock with whoever ends several.
const KEEP: &str = include_str!("sql/actions_keep.sql");

/// One look, without any lock.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The database's clock.
    pub now: Timestamp,
    /// When the first action is to be begun, or retried.
    pub first: Option<Timestamp>,
    /// Some were begun by somebody who is gone.
    pub interrupted: bool,
    /// Some are running, whoever has them.
    pub running: bool,
}

/// How many due actions a measurement counts.
pub const CAP: i64 = 10_000;

/// What waits.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// The database's clock.
    pub now: Timestamp,
    /// Since when the oldest waits that is due, also after a failure.
    pub oldest: Option<Timestamp>,
    /// Since when the oldest waits that has not been tried.
    pub untried: Option<Timestamp>,
    /// How many are due, at most [`CAP`].
    pub rows: i64,
}

/// Measures what waits.
///
/// # Errors
/// The database's.
pub async fn backlog(session: &Session, relay: &str) -> Result<Backlog, Error> {
    let statement = session.prepare_cached(BACKLOG).await?;
    let row = session.query_one(&statement, &[&relay, &CAP]).await?;
    Ok(Backlog { now: row.try_get(0)?, oldest: row.try_get(1)?, untried: row.try_get(2)?, rows: row.try_get(3)? })
}

/// An action that may be begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its id.
    pub id: i64,
    /// Whose it is; empty is nobody's.
    pub tenant: String,
    /// Its schedule.
    pub schedule: i64,
}

/// A claimed action.
#[derive(Clone, Debug)]
pub struct ClaimedAction {
    /// Its id.
    pub id: i64,
    /// Its schedule's id and name.
    pub schedule: (i64, String),
    /// Whose it is.
    pub tenant: String,
    /// The instant of its rule.
    pub planned_at: Timestamp,
    /// Since when it could be begun.
    pub due_at: Timestamp,
    /// When it was claimed.
    pub started_at: Timestamp,
    /// When it was last begun before that.
    pub begun_before: Option<Timestamp>,
    /// How many tries have failed.
    pub attempts: i32,
    /// A JSON object.
    pub payload: String,
    /// A configured query.
    pub query: Option<String>,
    /// A configured program.
    pub command: Option<String>,
    /// Whether it is retried when its outcome is unknown.
    pub retries: bool,
    /// How long it may take.
    pub timeout: Duration,
    /// Somebody asked for it.
    pub manual: bool,
}

/// An action that somebody began who is gone.
#[derive(Clone, Debug)]
pub struct Interrupted {
    /// Its id.
    pub id: i64,
    /// Its schedule's id, and whose it is.
    pub of: (i64, String),
    /// Its schedule's name.
    pub schedule: String,
    /// Whether it is retried.
    pub again: bool,
}

/// An action and its claim's token.
#[derive(Clone, Copy, Debug)]
pub struct NamedAction<'a> {
    /// Its id.
    pub id: i64,
    /// The token.
    pub token: &'a str,
    /// For how long it has been running; none where `started_at` in the database says so already.
    pub ran: Option<Duration>,
}

/// An action that a replica has claimed and keeps.
#[derive(Clone, Debug, PartialEq)]
pub struct Kept {
    /// Its id.
    pub id: i64,
    /// Its claim's token.
    pub token: String,
    /// What it reported last, for people.
    pub progress: Option<String>,
    /// See [`NamedAction::ran`]: not at all while it waits for a connection.
    pub ran: Option<Duration>,
}

/// How an action ends.
#[derive(Clone, Copy, Debug)]
pub enum ActionEnd<'a> {
    /// It was done; what was answered.
    Completed(&'a str),
    /// There was nothing to do; why.
    Skipped(&'a str),
    /// It was not done, or nobody knows.
    Failed(&'a ErrorReport<'a>),
}

/// Whether what became of an action is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedAction {
    /// Of this schedule's id and this tenant.
    Of((i64, String)),
    /// Not yet: somebody has locked the row.
    Locked,
    /// Somebody else has taken it up, or it is recorded already.
    Lost,
}

/// Lets queued actions go that nothing is before any more; how many.
///
/// # Errors
/// The database's.
pub async fn release(session: &Session, relay: &str) -> Result<u64, Error> {
    Ok(session.execute(RELEASE, &[&relay]).await?)
}

/// Lets queued actions go that nothing is before any more; whether there were any, or are some that an application has locked.
///
/// # Errors
/// The database's.
pub async fn release_left(session: &Session, relay: &str) -> Result<bool, Error> {
    if release(session, relay).await? > 0 {
        return Ok(true);
    }
    Ok(session.query_one(UNRELEASED, &[&relay]).await?.try_get(0)?)
}

/// Looks what there is to do.
///
/// # Errors
/// The database's.
pub async fn look(session: &Session, relay: &str) -> Result<Look, Error> {
    let statement = session.prepare_cached(LOOK).await?;
    let row = session.query_one(&statement, &[&relay]).await?;
    Ok(Look { now: row.try_get(0)?, first: row.try_get(1)?, interrupted: row.try_get(2)?, running: row.try_get(3)? })
}

/// Says that these are still this replica's; the ids of those that are, each with whether it was renewed: not when another transaction
/// had its row locked.
///
/// # Errors
/// The database's.
pub async fn keep(session: &Session, lease: Duration, actions: &[Kept]) -> Result<HashMap<i64, bool>, Error> {
    let ids: Vec<i64> = actions.iter().map(|action| action.id).collect();
    let tokens: Vec<&str> = actions.iter().map(|action| action.token.as_str()).collect();
    let progress: Vec<Option<&str>> = actions.iter().map(|action| action.progress.as_deref()).collect();
    let ran: Vec<Option<f64>> = actions.iter().map(|action| action.ran.map(|ran| ran.as_secs_f64())).collect();
    let statement = session.prepare_cached(KEEP).await?;
    let rows = session.query(&statement, &[&lease.as_secs_f64(), &ids, &tokens, &progress, &ran]).await?;
    Ok(rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, tokio_postgres::Error>>()?)
}

fn split(of: &[(i64, String)]) -> (Vec<i64>, Vec<&str>) {
    of.iter().map(|(id, tenant)| (*id, tenant.as_str())).unzip()
}
