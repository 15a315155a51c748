//! One look at what is due, without any lock.

use tokio_postgres::types::ToSql;

use super::Once;
use super::ready::Ready;
use crate::database::{Error, Session};
use crate::message::Field;
use crate::position::Timestamp;
use crate::relay::Guarantee;
use crate::relay::engine::lag::Lag;
use crate::source::pending::{CAP, Due, Taking};

/// What a look found.
#[derive(Clone, Debug)]
pub(super) struct Look {
    /// The database's clock.
    pub(super) now: Timestamp,
    /// Since when the first row is due that can be claimed.
    pub(super) due: Option<Timestamp>,
    /// When the next one will be, within a minute.
    pub(super) next: Option<Timestamp>,
    /// Rows that are marked and were provably not sent may be tried again.
    pub(super) waits: bool,
    /// Somebody's claim has run out while he was sending.
    pub(super) expired: bool,
    /// Dead letters are to be sent again.
    pub(super) redrive: bool,
    /// Rows are on their way, whoever has them.
    pub(super) under_way: bool,
    pub(super) once: Once,
}

/// The statements that a relay runs on its table, for a check that prepares them.
pub(in crate::relay) fn statements(due: &Due, fields: &[Field], guarantee: Guarantee) -> Vec<String> {
    let mut all = vec![
        due.look_sql(),
        due.claim_sql(fields, taking(guarantee), 1),
        due.retake_sql(fields, 1),
        due.redrive_sql(fields, taking(guarantee), 1),
        Due::reclaim_sql(),
        Due::gone_sql(),
        due.unmark_sql(),
        due.backlog_sql(),
        due.done_sql(),
    ];
    if taking(guarantee) == Taking::MarkLater {
        all.extend([due.mark_sql(), due.unmarked_sql()]);
    }
    all
}

/// When a row is marked.
pub(super) const fn taking(guarantee: Guarantee) -> Taking {
    match guarantee {
        // The configuration has no other one here.
        Guarantee::AtLeastOnce | Guarantee::Deduplicated | Guarantee::InDatabase => Taking::MarkLater,
        Guarantee::AtMostOnce => Taking::MarkFirst,
    }
}

pub(super) async fn look(session: &Session, ready: &Ready, once: Once) -> Result<Look, Error> {
    let statement = session.prepare_cached(&ready.look_sql).await?;
    let parameters: [&(dyn ToSql + Sync); 2] = [&ready.config.name, &once];
    let row = session.query_one(&statement, &parameters).await?;
    Ok(Look {
        now: row.try_get(0)?,
        due: row.try_get(1)?,
        next: row.try_get(2)?,
        waits: row.try_get(3)?,
        expired: row.try_get(4)?,
        redrive: row.try_get(5)?,
        under_way: row.try_get(6)?,
        once,
    })
}

/// How old the oldest row is that is due and not sent, and how many there are.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn backlog(session: &Session, due: &Due, relay: &str) -> Result<Lag, Error> {
    let statement = session.prepare_cached(&due.backlog_sql()).await?;
    let row = session.query_one(&statement, &[&relay, &CAP]).await?;
    let (now, oldest, rows): (Timestamp, Option<Timestamp>, i64) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let age = oldest.map(|oldest| now.since(oldest)).unwrap_or_default();
    Ok(Lag { age, rows, capped: rows >= CAP, observed_at: now })
}
