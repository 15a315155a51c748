//! Lag and backlog: how old the oldest row is that a cursor still has to read, and how many there are, whether or not
//! the horizon holds them back. Rows in the future do not count.

use std::time::Duration;

use tokio_postgres::types::ToSql;

use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};
use crate::source::shape::{After, Shape};

/// The backlog is counted up to here.
pub const CAP: i64 = 10_000;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Age of the oldest committed row visible now beyond the position; zero when there is none.
    pub age: Duration,
    /// How many such rows there are, at most [`CAP`].
    pub rows: i64,
    /// There may be more rows than counted.
    pub capped: bool,
    /// The database's clock.
    pub observed_at: Timestamp,
}

/// Measures the lag of a cursor at `position`, at the database's time `now`.
///
/// # Errors
/// The database's.
pub async fn measure(
    session: &Session,
    shape: &Shape,
    position: Option<&Position>,
    now: Timestamp,
) -> Result<Lag, Error> {
    let after = After::of(position);
    let created_at = position.map(|position| position.created_at);
    let id = position.and_then(|position| position.id.clone());
    let mut bound: Vec<&(dyn ToSql + Sync)> = Vec::new();
    if let Some(created_at) = &created_at {
        bound.push(created_at);
    }
    if let Some(id) = &id {
        bound.push(id);
    }
    let oldest = session.prepare_cached(&shape.oldest_sql(after)).await?;
    let count = session.prepare_cached(&shape.backlog_sql(after)).await?;
    let oldest_parameters: Vec<&(dyn ToSql + Sync)> = [&now as _].into_iter().chain(bound.iter().copied()).collect();
    let count_parameters: Vec<&(dyn ToSql + Sync)> = [&now as _, &CAP as _].into_iter().chain(bound).collect();
    let oldest = session.query_opt(&oldest, &oldest_parameters).await?;
    let age = match oldest {
        Some(row) => now.since(row.try_get(0)?),
        None => return Ok(Lag { age: Duration::ZERO, rows: 0, capped: false, observed_at: now }),
    };
    let rows: i64 = session.query_one(&count, &count_parameters).await?.try_get(0)?;
    Ok(Lag { age, rows, capped: rows >= CAP, observed_at: now })
}
