//! Which requests wait, without any lock, and what is measured from time to time.

use std::time::Instant;

use tokio_postgres::types::ToSql;

use super::prepare::PreparedRequests;
use crate::cursor;
use crate::database::{Error, Session};
use crate::jobs::ledger;
use crate::position::Timestamp;
use crate::relay::engine::lag::Lag;
use crate::relay::queue::reach::{Next, Reach};
use crate::relay::queue::work::Poll;
use crate::source::requests::{CAP, backlog_sql, lane_look_sql};

/// What a poll tells the claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestPoll {
    /// Another replica's claims have expired.
    pub(super) interrupted: bool,
    /// With lanes: how many requests were looked through, and whether there may be others beyond.
    pub(super) jobs: usize,
    pub(super) more: bool,
}

/// The database's clock, and what there is to do; with lanes, it is looked for as far as it takes to find one that may be sent.
pub(super) async fn poll(
    session: &Session,
    prepared: &PreparedRequests,
    once: Option<Timestamp>,
    reach: &mut Option<Reach>,
) -> Result<(Timestamp, Poll<RequestPoll>), Error> {
    let (Some(reach), Some(lanes)) = (reach, &prepared.requests.lanes) else {
        return look(session, prepared, once, (&prepared.look_sql, 0)).await;
    };
    loop {
        let sql = lane_look_sql(lanes, reach.jobs());
        let begun = Instant::now();
        let (now, poll) = look(session, prepared, once, (&sql, reach.jobs())).await?;
        match reach.looked(poll.due, poll.detail.more, begun.elapsed(), Instant::now()) {
            Next::Done => return Ok((now, poll)),
            Next::Again => {}
            Next::Later(pause) => return Ok((now, poll.looks_again(pause))),
        }
    }
}

async fn look(
    session: &Session,
    prepared: &PreparedRequests,
    once: Option<Timestamp>,
    (sql, jobs): (&str, usize),
) -> Result<(Timestamp, Poll<RequestPoll>), Error> {
    let statement = session.prepare_cached(sql).await?;
    let parameters: [&(dyn ToSql + Sync); 2] = [&prepared.config.name, &once];
    let row = session.query_one(&statement, &parameters).await?;
    let (now, due, next): (Timestamp, Option<Timestamp>, Option<Timestamp>) =
        (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
    let interrupted: bool = row.try_get(3)?;
    let poll = Poll {
        due: due.is_some() || interrupted,
        next_in: next.map(|next| next.since(now)),
        under_way: row.try_get(4)?,
        detail: RequestPoll { interrupted, jobs, more: row.try_get(5)? },
    };
    Ok((now, poll))
}

pub(super) async fn sample(session: &Session, prepared: &PreparedRequests) -> Result<u64, Error> {
    let (relay, metrics) = (&prepared.config.name, &prepared.metrics);
    let lag = backlog(session, relay).await?;
    let rows = u64::try_from(lag.rows).unwrap_or(0);
    metrics.set_lag(lag.age, rows, lag.observed_at);
    prepared.numbers.set_due(rows);
    metrics.set_dead_letters(ledger::failed(session, relay).await?.unsigned_abs());
    metrics.set_unknown_outcomes(cursor::unknown::count(session, relay).await?.unsigned_abs());
    Ok(rows)
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
