//! One look at what is due, without any lock, and what is measured from time to time.

use std::time::Instant;

use tokio_postgres::types::ToSql;

use super::Clerk;
use super::ready::Ready;
use crate::cursor::{self, ledger};
use crate::database::{Error, Session};
use crate::position::Timestamp;
use crate::relay::engine::intervals::SAMPLE;
use crate::relay::engine::lag::Lag;
use crate::source::requests::{CAP, backlog_sql};

/// What a look found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) now: Timestamp,
    pub(super) due: Option<Timestamp>,
    pub(super) next: Option<Timestamp>,
    pub(super) interrupted: bool,
    pub(super) under_way: bool,
}

impl Clerk {
    pub(super) async fn look(&mut self, session: &Session, ready: &Ready) -> Result<Look, Error> {
        let statement = session.prepare_cached(&ready.look_sql).await?;
        let once = self.engine.once();
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.config.name, &once];
        let row = session.query_one(&statement, &parameters).await?;
        self.now = row.try_get(0)?;
        Ok(Look {
            now: self.now,
            due: row.try_get(1)?,
            next: row.try_get(2)?,
            interrupted: row.try_get(3)?,
            under_way: row.try_get(4)?,
        })
    }

    pub(super) async fn sample(&mut self, ready: &Ready, session: &Session) -> Result<(), Error> {
        if self.sampled.is_some_and(|sampled| sampled.elapsed() < SAMPLE) {
            return Ok(());
        }
        self.sampled = Some(Instant::now());
        let lag = backlog(session, &self.config.name).await?;
        let rows = u64::try_from(lag.rows).unwrap_or(0);
        ready.metrics.set_lag(lag.age, rows, lag.observed_at);
        ready.numbers.set_due(rows);
        let failed = ledger::failed(session, &self.config.name).await?;
        ready.metrics.set_dead_letters(failed.unsigned_abs());
        let unknown = cursor::unknown::count(session, &self.config.name).await?;
        ready.metrics.set_unknown_outcomes(unknown.unsigned_abs());
        Ok(())
    }
}

/// How long the oldest due request has waited, and how many there are.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn backlog(session: &Session, relay: &str) -> Result<Lag, Error> {
    let statement = session.prepare_cached(backlog_sql()).await?;
    let row = session.query_one(&statement, &[&relay, &CAP]).await?;
    let (now, oldest, rows): (Timestamp, Option<Timestamp>, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let age = oldest.map(|oldest| now.since(oldest)).unwrap_or_default();
    Ok(Lag { age, rows, capped: rows >= CAP, observed_at: now })
}
