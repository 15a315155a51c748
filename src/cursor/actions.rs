//! Actions: occurrences of schedules that replicas claim, keep and end.
//!
//! Promise: who no longer has the claim's token changes nothing, and is told. A claim is made in the transaction that locks
//! the relay's cursor; it is kept by saying again and again that its claimant is at work, and runs out otherwise.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::LockedCursor;
use super::claims::{Settlement, Taking};
use super::status::{self, ErrorReport};
use crate::database::{Error, Session};
use crate::position::Timestamp;

const LOOK: &str = "SELECT pg_catalog.statement_timestamp(), \
     (SELECT a.try_at FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'due' ORDER BY a.try_at LIMIT 1), \
     EXISTS (SELECT FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'running' AND a.expires_at <= pg_catalog.statement_timestamp()), \
     EXISTS (SELECT FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'running')";

const RUNNING: &str =
    "SELECT a.tenant, a.schedule_id FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'running'";

const OLDEST: &str = "SELECT a.action_id, a.tenant, a.schedule_id FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'due' \
     AND a.try_at <= pg_catalog.statement_timestamp() ORDER BY a.try_at, a.action_id LIMIT $2";

/// From tenant to tenant along the index, and of each the oldest: a tenant with a million of them costs as much as one with
/// one.
const BY_TENANT: &str = "WITH RECURSIVE t AS (\
     (SELECT a.tenant, 1 AS n FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'due' AND a.tenant > $2 ORDER BY a.tenant LIMIT 1) \
     UNION ALL SELECT (SELECT a.tenant FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'due' AND a.tenant > t.tenant \
     ORDER BY a.tenant LIMIT 1), t.n + 1 FROM t WHERE t.tenant IS NOT NULL AND t.n < $3) \
     SELECT d.action_id, t.tenant, d.schedule_id FROM t LEFT JOIN LATERAL (SELECT a.action_id, a.schedule_id, a.try_at \
     FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'due' AND a.tenant = t.tenant \
     AND a.try_at <= pg_catalog.statement_timestamp() ORDER BY a.try_at, a.action_id LIMIT $4) AS d ON true \
     WHERE t.tenant IS NOT NULL ORDER BY d.try_at, d.action_id";

/// What one begins with that belongs to nobody, when others hide it.
const NOBODYS: &str = "SELECT a.action_id, a.tenant, a.schedule_id FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'due' \
     AND a.tenant = '' AND a.try_at <= pg_catalog.statement_timestamp() ORDER BY a.try_at, a.action_id LIMIT $2";

const BACKLOG: &str = "SELECT pg_catalog.clock_timestamp(), pg_catalog.min(d.due_at), pg_catalog.min(d.due_at) FILTER (WHERE d.attempts = 0), \
     pg_catalog.count(*) FROM (SELECT a.due_at, a.attempts FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'due' \
     AND a.due_at <= pg_catalog.statement_timestamp() ORDER BY a.try_at LIMIT $2) AS d";

const CLAIM: &str = "UPDATE outbox.action AS a SET status = 'running', token = $1, claimed_by = $2, \
     started_at = pg_catalog.clock_timestamp(), progress = NULL, \
     expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $3::float8), \
     updated_at = pg_catalog.clock_timestamp() WHERE a.action_id = ANY ($4::bigint[]) AND a.status = 'due' \
     RETURNING a.action_id, a.schedule_id, a.schedule, a.tenant, a.planned_at, a.due_at, a.started_at, a.attempts, a.payload::text, \
     a.query, a.command, a.on_interrupted, EXTRACT(EPOCH FROM a.timeout)::float8, a.manual";

const EXPIRE: &str = "UPDATE outbox.action AS a SET status = CASE a.on_interrupted WHEN 'retry' THEN 'due' ELSE 'failed' END, \
     finished_at = CASE a.on_interrupted WHEN 'retry' THEN NULL ELSE pg_catalog.clock_timestamp() END, \
     try_at = pg_catalog.clock_timestamp(), attempts = a.attempts + 1, token = NULL, expires_at = NULL, progress = NULL, \
     error = pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp(), 'class', 'retry', 'code', 'interrupted', \
     'message', 'replica ' || a.claimed_by || ' ended or was cut off while it had the action: done or not', \
     'hint', 'on_interrupted of its schedule says whether it is tried again.'), updated_at = pg_catalog.clock_timestamp() \
     WHERE a.relay = $1 AND a.status = 'running' AND a.expires_at <= pg_catalog.statement_timestamp() \
     RETURNING a.action_id, a.schedule_id, a.tenant, a.schedule, a.status";

/// A statement of its own, behind the one that ended the action: it sees what was queued meanwhile.
const PROMOTE: &str = "UPDATE outbox.action AS a SET status = 'due', updated_at = pg_catalog.clock_timestamp() WHERE a.action_id IN (\
     SELECT (SELECT q.action_id FROM outbox.action AS q WHERE q.schedule_id = p.id AND q.tenant = p.tenant AND q.status = 'queued' \
     ORDER BY q.planned_at LIMIT 1) FROM ROWS FROM (pg_catalog.unnest($1::bigint[]), pg_catalog.unnest($2::text[])) AS p(id, tenant)) \
     AND a.status = 'queued' AND NOT EXISTS (SELECT FROM outbox.action AS o WHERE o.schedule_id = a.schedule_id AND o.tenant = a.tenant \
     AND o.status IN ('due', 'running'))";

const KEEP: &str = "UPDATE outbox.action AS a SET expires_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $1::float8), \
     progress = COALESCE(p.progress, a.progress), updated_at = pg_catalog.clock_timestamp() \
     FROM ROWS FROM (pg_catalog.unnest($2::bigint[]), pg_catalog.unnest($3::text[]), pg_catalog.unnest($4::text[])) AS p(id, token, progress) \
     WHERE a.action_id = p.id AND a.token = p.token RETURNING a.action_id";

const FINISH: &str = "UPDATE outbox.action AS a SET status = $3, finished_at = pg_catalog.clock_timestamp(), result = $4, \
     error = CASE WHEN $5::text IS NOT NULL THEN $5::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()) END, \
     attempts = a.attempts + CASE WHEN $3 = 'failed' THEN 1 ELSE 0 END, token = NULL, expires_at = NULL, progress = NULL, \
     updated_at = pg_catalog.clock_timestamp() WHERE a.action_id = $1 AND a.token = $2 RETURNING a.schedule_id, a.tenant";

const WAIT: &str = "UPDATE outbox.action AS a SET status = 'due', \
     try_at = pg_catalog.clock_timestamp() + pg_catalog.make_interval(secs => $3::float8), attempts = a.attempts + $4, \
     error = $5::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()), token = NULL, expires_at = NULL, \
     progress = NULL, updated_at = pg_catalog.clock_timestamp() WHERE a.action_id = $1 AND a.token = $2 RETURNING a.schedule_id, a.tenant";

/// One look, without any lock.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The database's clock.
    pub now: Timestamp,
    /// When the first action is to be begun, or tried again.
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
pub struct Claimed {
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
    /// How many tries have failed.
    pub attempts: i32,
    /// A JSON object.
    pub payload: String,
    /// A configured query.
    pub query: Option<String>,
    /// A configured program.
    pub command: Option<String>,
    /// Whether it is tried again when nobody knows what became of it.
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
    /// Whether it is tried again.
    pub again: bool,
}

/// An action and its claim's token.
#[derive(Clone, Copy, Debug)]
pub struct Named<'a> {
    /// Its id.
    pub id: i64,
    /// The token.
    pub token: &'a str,
}

/// How an action ends.
#[derive(Clone, Copy, Debug)]
pub enum End<'a> {
    /// It was done; what was answered.
    Completed(&'a str),
    /// There was nothing to do; why.
    Skipped(&'a str),
    /// It was not done, or nobody knows.
    Failed(&'a ErrorReport<'a>),
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

/// Says that these are still at work, each with its token and its progress; the ids of those that are still this replica's.
///
/// # Errors
/// The database's.
pub async fn keep(
    session: &Session,
    lease: Duration,
    actions: &[(i64, String, Option<String>)],
) -> Result<Vec<i64>, Error> {
    let ids: Vec<i64> = actions.iter().map(|(id, ..)| *id).collect();
    let tokens: Vec<&str> = actions.iter().map(|(_, token, _)| token.as_str()).collect();
    let progress: Vec<Option<&str>> = actions.iter().map(|(.., progress)| progress.as_deref()).collect();
    let statement = session.prepare_cached(KEEP).await?;
    let rows = session.query(&statement, &[&lease.as_secs_f64(), &ids, &tokens, &progress]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

impl LockedCursor {
    /// Which tenants' schedules have an action that is running.
    ///
    /// # Errors
    /// The database's.
    pub async fn running_actions(&self) -> Result<Vec<(String, i64)>, Error> {
        let rows = self.claim(Taking { sql: RUNNING, parameters: &[&self.name] }).await?;
        Ok(rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, tokio_postgres::Error>>()?)
    }

    /// The actions that have been due for the longest.
    ///
    /// # Errors
    /// The database's.
    pub async fn oldest_actions(&self, most: i64) -> Result<Vec<Candidate>, Error> {
        candidates(&self.claim(Taking { sql: OLDEST, parameters: &[&self.name, &most] }).await?)
    }

    /// The oldest actions of each of `tenants` tenants whose names come after `after`, and then of nobody's; and after which
    /// tenant to go on.
    ///
    /// # Errors
    /// The database's.
    pub async fn actions_by_tenant(
        &self,
        after: &str,
        tenants: i32,
        each: i64,
        nobodys: i64,
    ) -> Result<(Vec<Candidate>, String), Error> {
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.name, &after, &tenants, &each];
        let rows = self.claim(Taking { sql: BY_TENANT, parameters: &parameters }).await?;
        let (mut found, mut names) = (Vec::new(), BTreeSet::new());
        for row in &rows {
            let tenant: String = row.try_get(1)?;
            if let (Some(id), Some(schedule)) = (row.try_get(0)?, row.try_get(2)?) {
                found.push(Candidate { id, tenant: tenant.clone(), schedule });
            }
            names.insert(tenant);
        }
        // Behind the last one it begins anew.
        let full = names.len() >= usize::try_from(tenants).unwrap_or(0);
        let next = names.pop_last().filter(|_| full).unwrap_or_default();
        found.extend(candidates(&self.claim(Taking { sql: NOBODYS, parameters: &[&self.name, &nobodys] }).await?)?);
        Ok((found, next))
    }

    /// Claims actions; nothing is claimed before [`Self::claimed`].
    ///
    /// # Errors
    /// The database's.
    pub async fn claim_actions(
        &self,
        token: &str,
        by: &str,
        lease: Duration,
        ids: &[i64],
    ) -> Result<Vec<Claimed>, Error> {
        let lease = lease.as_secs_f64();
        let parameters: [&(dyn ToSql + Sync); 4] = [&token, &by, &lease, &ids];
        let rows = self.claim(Taking { sql: CLAIM, parameters: &parameters }).await?;
        Ok(rows.iter().map(claimed).collect::<Result<_, _>>()?)
    }

    /// Ends the claims of those who are gone, as each schedule says, and lets what was queued behind them go on.
    ///
    /// # Errors
    /// The database's.
    pub async fn expire_actions(&self) -> Result<Vec<Interrupted>, Error> {
        let rows = self.claim(Taking { sql: EXPIRE, parameters: &[&self.name] }).await?;
        let mut gone = Vec::with_capacity(rows.len());
        for row in &rows {
            let status: String = row.try_get(4)?;
            gone.push(Interrupted {
                id: row.try_get(0)?,
                of: (row.try_get(1)?, row.try_get(2)?),
                schedule: row.try_get(3)?,
                again: status == "due",
            });
        }
        let ended: Vec<_> = gone.iter().filter(|action| !action.again).map(|action| action.of.clone()).collect();
        if !ended.is_empty() {
            let (ids, tenants) = split(&ended);
            self.claim(Taking { sql: PROMOTE, parameters: &[&ids, &tenants] }).await?;
        }
        Ok(gone)
    }
}

impl Settlement {
    /// The action ends; its schedule's id and its tenant, or none when somebody else has taken it up.
    ///
    /// # Errors
    /// The database's.
    pub async fn end_action(&self, action: Named<'_>, end: End<'_>) -> Result<Option<(i64, String)>, Error> {
        let (status, result, error) = match end {
            End::Completed(result) => ("completed", Some(result), None),
            End::Skipped(why) => ("skipped", Some(why), None),
            End::Failed(error) => ("failed", None, Some(status::json(error))),
        };
        let parameters: [&(dyn ToSql + Sync); 5] = [&action.id, &action.token, &status, &result, &error];
        of(&self.query(Taking { sql: FINISH, parameters: &parameters }).await?)
    }

    /// The action is tried again after a pause, `attempts` failures being added; false when somebody else has taken it up.
    ///
    /// # Errors
    /// The database's.
    pub async fn retry_action(
        &self,
        action: Named<'_>,
        error: &ErrorReport<'_>,
        attempts: i32,
        pause: Duration,
    ) -> Result<bool, Error> {
        let (error, pause) = (status::json(error), pause.as_secs_f64());
        let parameters: [&(dyn ToSql + Sync); 5] = [&action.id, &action.token, &pause, &attempts, &error];
        Ok(of(&self.query(Taking { sql: WAIT, parameters: &parameters }).await?)?.is_some())
    }

    /// Of schedules whose actions have ended, by id and tenant, the first that is queued becomes due.
    ///
    /// # Errors
    /// The database's.
    pub async fn promote_actions(&self, ended: &[(i64, String)]) -> Result<(), Error> {
        let (ids, tenants) = split(ended);
        self.query(Taking { sql: PROMOTE, parameters: &[&ids, &tenants] }).await.map(drop)
    }
}

fn split(of: &[(i64, String)]) -> (Vec<i64>, Vec<&str>) {
    of.iter().map(|(id, tenant)| (*id, tenant.as_str())).unzip()
}

fn of(rows: &[Row]) -> Result<Option<(i64, String)>, Error> {
    let Some(row) = rows.first() else { return Ok(None) };
    Ok(Some((row.try_get(0)?, row.try_get(1)?)))
}

fn candidates(rows: &[Row]) -> Result<Vec<Candidate>, Error> {
    let read = |row: &Row| Ok(Candidate { id: row.try_get(0)?, tenant: row.try_get(1)?, schedule: row.try_get(2)? });
    Ok(rows.iter().map(read).collect::<Result<_, tokio_postgres::Error>>()?)
}

fn claimed(row: &Row) -> Result<Claimed, tokio_postgres::Error> {
    let on_interrupted: String = row.try_get(11)?;
    Ok(Claimed {
        id: row.try_get(0)?,
        schedule: (row.try_get(1)?, row.try_get(2)?),
        tenant: row.try_get(3)?,
        planned_at: row.try_get(4)?,
        due_at: row.try_get(5)?,
        started_at: row.try_get(6)?,
        attempts: row.try_get(7)?,
        payload: row.try_get(8)?,
        query: row.try_get(9)?,
        command: row.try_get(10)?,
        retries: on_interrupted == "retry",
        timeout: Duration::from_secs_f64(row.try_get::<_, f64>(12)?.max(0.0)),
        manual: row.try_get(13)?,
    })
}
