//! Which rows are due, without any lock, and what is measured from time to time.

use std::time::Instant;

use tokio_postgres::types::ToSql;

use super::Once;
use super::prepare::PreparedPending;
use crate::cursor;
use crate::database::{Error, Session};
use crate::message::Field;
use crate::position::Timestamp;
use crate::relay::Guarantee;
use crate::relay::engine::lag::Lag;
use crate::relay::queue::reach::{Next, Reach};
use crate::relay::queue::work::Poll;
use crate::source::lane;
use crate::source::pending::{CAP, Due, Taking};

/// What a poll tells the claim.
#[derive(Clone, Debug)]
pub(super) struct PendingPoll {
    /// The database's clock.
    pub(super) now: Timestamp,
    /// The same by this process's clock: the claim may come later.
    pub(super) at: Instant,
    /// Rows that are marked and were provably not sent may be retried.
    pub(super) waits: bool,
    /// A replica's claim has run out while it was sending.
    pub(super) expired: bool,
    /// Dead letters are to be sent again.
    pub(super) redrive: bool,
    pub(super) once: Once,
    /// With lanes: how many rows were looked through, and whether there may be others beyond.
    pub(super) rows: usize,
    pub(super) more: bool,
}

/// The statements that a relay runs on its table, for a check that prepares them.
pub(in crate::relay) fn statements(due: &Due, fields: &[Field], guarantee: Guarantee) -> Vec<String> {
    let mut all = vec![
        due.look_sql(),
        due.claim_sql(fields, taking(guarantee), 1),
        due.retake_sql(fields, 1),
        due.redrive_sql(fields, taking(guarantee), 1),
        Due::reclaim_sql(),
        due.stray_sql(),
        Due::unknown_sql(),
        Due::gone_sql(),
        due.unmark_sql(),
        due.backlog_sql(),
        due.done_sql(),
    ];
    if due.config.lanes.is_some() {
        let reach = lane::Reach { jobs: 1, probes: true };
        all.extend([due.lane_look_sql(1), due.lane_claim_sql(fields, taking(guarantee), reach)]);
    }
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

/// Polls; with lanes, as far as it takes to find one that may be sent.
pub(super) async fn poll(
    session: &Session,
    prepared: &PreparedPending,
    once: Once,
    reach: &mut Option<Reach>,
) -> Result<Poll<PendingPoll>, Error> {
    let Some(reach) = reach else { return look(session, prepared, once, (&prepared.look_sql, 0)).await };
    loop {
        let sql = prepared.due.lane_look_sql(reach.jobs());
        let begun = Instant::now();
        let poll = look(session, prepared, once, (&sql, reach.jobs())).await?;
        match reach.looked(poll.due, poll.detail.more, begun.elapsed(), Instant::now()) {
            Next::Done => return Ok(poll),
            Next::Again => {}
            Next::Later(pause) => return Ok(poll.looks_again(pause)),
        }
    }
}

async fn look(
    session: &Session,
    prepared: &PreparedPending,
    once: Once,
    (sql, rows): (&str, usize),
) -> Result<Poll<PendingPoll>, Error> {
    let statement = session.prepare_cached(sql).await?;
    let parameters: [&(dyn ToSql + Sync); 2] = [&prepared.config.name, &once];
    let row = session.query_one(&statement, &parameters).await?;
    let at = Instant::now();
    let (now, due, next): (Timestamp, Option<Timestamp>, Option<Timestamp>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let (waits, expired, redrive): (bool, bool, bool) = (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
    Ok(Poll {
        due: due.is_some() || waits || expired || redrive,
        next_in: next.map(|next| next.since(now)),
        under_way: row.try_get(6)?,
        detail: PendingPoll { now, at, waits, expired, redrive, once, rows, more: row.try_get(7)? },
    })
}

pub(super) async fn sample(session: &Session, prepared: &PreparedPending) -> Result<u64, Error> {
    let (relay, metrics) = (&prepared.config.name, &prepared.metrics);
    let lag = backlog(session, &prepared.due, relay).await?;
    let rows = u64::try_from(lag.rows).unwrap_or(0);
    metrics.set_lag(lag.age, rows, lag.observed_at);
    prepared.numbers.set_due(rows);
    metrics.set_dead_letters(u64::try_from(cursor::dead_letter::open(session, relay).await?).unwrap_or(0));
    metrics.set_unknown_outcomes(cursor::unknown::count(session, relay).await?.unsigned_abs());
    Ok(rows)
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
