//! Claiming actions, in the transaction that locks the relay's cursor.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Candidate, ClaimedAction, Interrupted, PROMOTE, split};
use crate::cursor::{LockedCursor, Taking};
use crate::database::Error;

const RUNNING: &str =
    "SELECT a.tenant, a.schedule_id FROM outbox.action AS a WHERE a.relay = $1 AND a.status = 'running'";

const OLDEST: &str = include_str!("../sql/actions_claim_oldest.sql");

/// From tenant to tenant along the index, and of each the oldest: a tenant with a million of them costs as much as one with
/// one.
const BY_TENANT: &str = include_str!("../sql/actions_claim_by_tenant.sql");

/// What one begins with that belongs to nobody, when others hide it.
const UNOWNED: &str = include_str!("../sql/actions_claim_unowned.sql");

/// One whose row an application has locked, by `outbox.cancel_actions` for example, waits, and no other with it.
const CLAIM: &str = include_str!("../sql/actions_claim.sql");

/// One whose row an application has locked waits, and no other with it. The first time it is taken up at once: replicas end for
/// many reasons. One that ends its replica again and again (with the memory it needs, for example) waits for longer each time:
/// 1 s, 2 s, 4 s, up to 5 minutes.
const EXPIRE: &str = include_str!("../sql/actions_claim_expire.sql");

impl LockedCursor {
    /// Which tenants' schedules have an action that is running.
    ///
    /// # Errors
    /// The database's.
    pub async fn running_actions(&self) -> Result<Vec<(String, i64)>, Error> {
        let rows = self.claim(Taking { sql: RUNNING, parameters: &[&self.name()] }).await?;
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
        candidates(&self.claim(Taking { sql: OLDEST, parameters: &[&self.name(), &most] }).await?)
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
        unowned: i64,
    ) -> Result<(Vec<Candidate>, String), Error> {
        let parameters: [&(dyn ToSql + Sync); 4] = [&self.name(), &after, &tenants, &each];
        let rows = self.claim(Taking { sql: BY_TENANT, parameters: &parameters }).await?;
        let (mut found, mut names) = (Vec::new(), BTreeSet::new());
        for row in &rows {
            let tenant: String = row.try_get(1)?;
            if let (Some(id), Some(schedule)) = (row.try_get(0)?, row.try_get(2)?) {
                found.push(Candidate { id, tenant: tenant.clone(), schedule });
            }
            names.insert(tenant);
        }
        // Behind the last one it begins again.
        let full = names.len() >= usize::try_from(tenants).unwrap_or(0);
        let next = names.pop_last().filter(|_| full).unwrap_or_default();
        found.extend(candidates(&self.claim(Taking { sql: UNOWNED, parameters: &[&self.name(), &unowned] }).await?)?);
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
    ) -> Result<Vec<ClaimedAction>, Error> {
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
        let rows = self.claim(Taking { sql: EXPIRE, parameters: &[&self.name()] }).await?;
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
            self.claim(Taking { sql: PROMOTE, parameters: &[&ids, &tenants, &self.name()] }).await?;
        }
        Ok(gone)
    }
}

fn candidates(rows: &[Row]) -> Result<Vec<Candidate>, Error> {
    let read = |row: &Row| Ok(Candidate { id: row.try_get(0)?, tenant: row.try_get(1)?, schedule: row.try_get(2)? });
    Ok(rows.iter().map(read).collect::<Result<_, tokio_postgres::Error>>()?)
}

fn claimed(row: &Row) -> Result<ClaimedAction, tokio_postgres::Error> {
    let on_interrupted: String = row.try_get(11)?;
    Ok(ClaimedAction {
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
        begun_before: row.try_get(14)?,
    })
}
