//! Schedules: which are due, and the one transaction that makes their occurrences and says when each is next due.

use deadpool_postgres::ClientWrapper;
use tokio_postgres::types::ToSql;

use super::Settlement;
use crate::cursor::Taking;
use crate::database::{Error, Session};
use crate::position::Timestamp;

/// Statement time, not the clock's: an index can be asked for it.
const FIRST: &str = include_str!("sql/schedules_first.sql");

/// However many are to be computed, those that are due do not wait for them.
const TAKE: &str = include_str!("sql/schedules_take.sql");

const TAKE_NEW: &str = include_str!("sql/schedules_take_new.sql");

const TENANTS: &str =
    "SELECT n.nspname::text FROM pg_catalog.pg_namespace AS n WHERE n.nspname LIKE $1 ESCAPE '!' ORDER BY n.nspname";

const LEFT: &str = include_str!("sql/schedules_left.sql");

/// One call after the other, in this order: each sees what the one before it made.
const MAKE: &str = include_str!("sql/schedules_make.sql");

const PLANNED: &str = include_str!("sql/schedules_planned.sql");

const STRAYS: &str = include_str!("sql/schedules_strays.sql");

const FOUND: &str = include_str!("sql/schedules_found.sql");

const COUNT: &str = include_str!("sql/schedules_count.sql");

const PROBLEMS: &str = include_str!("sql/schedules_problems.sql");

/// The clock, and whether a schedule is due.
#[derive(Clone, Copy, Debug)]
pub struct First {
    /// The database's clock.
    pub now: Timestamp,
    /// When the first one is due.
    pub at: Option<Timestamp>,
    /// Some are to be computed.
    pub new: bool,
}

/// A schedule that is due, or whose next occurrence is to be computed, locked.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Whose it is; `*` for each tenant.
    pub tenant: String,
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
    /// When it is due; none is to be computed.
    pub next_at: Option<Timestamp>,
    /// The newest occurrence that was made or passed over.
    pub last_at: Option<Timestamp>,
    /// `all`, `latest` or `none`.
    pub missed: String,
    /// How many bytes its payload has on the disk.
    pub bytes: i32,
}

/// An occurrence that is to be made.
#[derive(Clone, Copy, Debug)]
pub struct Occurrence {
    /// Its schedule.
    pub schedule: i64,
    /// Its instant.
    pub planned: Timestamp,
    /// It waits for an earlier one, whatever the schedule says of overlaps.
    pub queues: bool,
}

/// When a schedule goes on.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its id.
    pub schedule: i64,
    /// When it is next due; infinity is never, and none is to be computed.
    pub next: Option<Timestamp>,
    /// The newest occurrence that was made or passed over.
    pub last: Option<Timestamp>,
    /// Why it cannot run.
    pub problem: Option<String>,
}

/// What is measured of a relay's schedules.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// How many have a problem.
    pub problems: i64,
    /// How many actions are running.
    pub running: i64,
    /// For how many seconds the first due schedule has waited for a replica.
    pub waiting: f64,
}

/// Looks whether a schedule of this relay is due, without any lock.
///
/// # Errors
/// The database's.
pub async fn first(session: &Session, relay: &str) -> Result<First, Error> {
    let statement = session.prepare_cached(FIRST).await?;
    let row = session.query_one(&statement, &[&relay]).await?;
    Ok(First { now: row.try_get(0)?, at: row.try_get(1)?, new: row.try_get(2)? })
}

/// Schedules of this relay, or of one that nobody has ever started, that have a problem, at most eleven: their names, and what it is.
///
/// # Errors
/// The database's.
pub async fn problems(session: &Session, relay: &str) -> Result<Vec<(String, String)>, Error> {
    let rows = session.query(PROBLEMS, &[&relay]).await?;
    Ok(rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, tokio_postgres::Error>>()?)
}

/// Counts problems and running actions. A schedule whose relay no replica has ever had counts for each relay that asks: no other
/// counts it.
///
/// # Errors
/// The database's.
pub async fn count(session: &Session, relay: &str) -> Result<Count, Error> {
    let statement = session.prepare_cached(COUNT).await?;
    let row = session.query_one(&statement, &[&relay]).await?;
    Ok(Count { problems: row.try_get(0)?, running: row.try_get(1)?, waiting: row.try_get(2)? })
}

/// Schedules that waited for a relay of this name are computed now that it is there; those of each tenant, too, if it `knows_tenants`:
/// what their rules had before is passed over, as after an edit.
///
/// # Errors
/// The database's.
pub async fn found(client: &ClientWrapper, relay: &str, knows_tenants: bool) -> Result<u64, Error> {
    Ok(client.execute(FOUND, &[&relay, &knows_tenants]).await?)
}

/// Says of schedules whose relay nobody has ever started that this is so; their names and relays.
///
/// # Errors
/// The database's.
pub async fn strays(client: &ClientWrapper) -> Result<Vec<(String, String)>, Error> {
    let rows = client.query(STRAYS, &[]).await?;
    Ok(rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_, tokio_postgres::Error>>()?)
}

/// The tenants that have schedules of this relay with a query, `*` among them.
///
/// # Errors
/// The database's.
pub async fn tenants_of_queries(client: &ClientWrapper, relay: &str) -> Result<Vec<String>, Error> {
    let sql = include_str!("sql/schedules_tenants_of_queries.sql");
    let rows = client.query(sql, &[&relay]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

/// The schemas whose names match, `*` standing for anything.
///
/// # Errors
/// The database's.
pub async fn tenants(client: &ClientWrapper, pattern: &str) -> Result<Vec<String>, Error> {
    let statement = client.prepare_cached(TENANTS).await?;
    let rows = client.query(&statement, &[&like(pattern)]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}

fn like(pattern: &str) -> String {
    let escaped = pattern.replace('!', "!!").replace('%', "!%").replace('_', "!_");
    escaped.replace('*', "%")
}

impl Settlement {
    /// Locks schedules of this relay that are due, and then some that are to be computed, and that nobody else has locked. However
    /// many are to be computed, those that are due do not wait for them.
    ///
    /// # Errors
    /// The database's.
    pub async fn due_schedules(&self, relay: &str, most: i64) -> Result<Vec<Schedule>, Error> {
        let mut rows = self.query(Taking { sql: TAKE, parameters: &[&relay, &most] }).await?;
        rows.extend(self.query(Taking { sql: TAKE_NEW, parameters: &[&relay, &most] }).await?);
        let read = |row: &tokio_postgres::Row| {
            Ok(Schedule {
                id: row.try_get(0)?,
                name: row.try_get(1)?,
                tenant: row.try_get(2)?,
                rule: row.try_get(3)?,
                time_zone: row.try_get(4)?,
                starts_at: row.try_get(5)?,
                ends_at: row.try_get(6)?,
                changed_at: row.try_get(7)?,
                next_at: row.try_get(8)?,
                last_at: row.try_get(9)?,
                missed: row.try_get(10)?,
                bytes: row.try_get(11)?,
            })
        };
        Ok(rows.iter().map(read).collect::<Result<_, tokio_postgres::Error>>()?)
    }

    /// Of these tenants, the first that have no action of this occurrence.
    ///
    /// # Errors
    /// The database's.
    pub async fn tenants_left(&self, of: Occurrence, tenants: &[String], most: usize) -> Result<Vec<String>, Error> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let parameters: [&(dyn ToSql + Sync); 4] = [&of.schedule, &of.planned, &tenants, &most];
        let rows = self.query(Taking { sql: LEFT, parameters: &parameters }).await?;
        Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
    }

    /// Makes occurrences, in this order; the schedule and the status of each action.
    ///
    /// # Errors
    /// The database's.
    pub async fn make_actions(
        &self,
        occurrences: &[Occurrence],
        tenants: &[String],
    ) -> Result<Vec<(i64, String)>, Error> {
        let ids: Vec<i64> = occurrences.iter().map(|occurrence| occurrence.schedule).collect();
        let instants: Vec<Timestamp> = occurrences.iter().map(|occurrence| occurrence.planned).collect();
        let queues: Vec<bool> = occurrences.iter().map(|occurrence| occurrence.queues).collect();
        let parameters: [&(dyn ToSql + Sync); 4] = [&ids, &instants, &queues, &tenants];
        let rows = self.query(Taking { sql: MAKE, parameters: &parameters }).await?;
        Ok(rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<Result<_, tokio_postgres::Error>>()?)
    }

    /// Writes when schedules are next due.
    ///
    /// # Errors
    /// The database's.
    pub async fn planned(&self, planned: &[Planned]) -> Result<(), Error> {
        let ids: Vec<i64> = planned.iter().map(|planned| planned.schedule).collect();
        let next: Vec<Option<Timestamp>> = planned.iter().map(|planned| planned.next).collect();
        let last: Vec<Option<Timestamp>> = planned.iter().map(|planned| planned.last).collect();
        let problems: Vec<Option<&str>> = planned.iter().map(|planned| planned.problem.as_deref()).collect();
        let parameters: [&(dyn ToSql + Sync); 4] = [&ids, &next, &last, &problems];
        self.query(Taking { sql: PLANNED, parameters: &parameters }).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_schemas_has_only_the_star() {
        assert_eq!(like("tenant_*"), "tenant!_%");
        assert_eq!(like("100%!*"), "100!%!!%");
    }
}
