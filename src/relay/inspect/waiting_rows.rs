//! Lag of relays whose rows are sent individually, and rows that no turn reads.

use std::time::Duration;

use crate::database::{Error, Session};
use crate::jobs::schedules;
use crate::position::{Position, Timestamp};
use crate::relay::Config;
use crate::relay::engine::lag::{CAP, Lag};
use crate::relay::inspect::facts::{Counted, OutOfReach};
use crate::relay::queue::{actions, due_rows, requests};
use crate::source;
use crate::source::shape::{After, Shape};

/// Counts the rows of a stream that no turn reads at the database's time `now`: those after now, at infinity, and at
/// -infinity below a position.
///
/// # Errors
/// The database's.
pub async fn out_of_reach(
    session: &Session,
    shape: &Shape,
    position: Option<&Position>,
    now: Timestamp,
) -> Result<OutOfReach, Error> {
    let (first, last) = (Timestamp::NEG_INFINITY, Timestamp::INFINITY);
    // What lies below a position that is ahead of the clock is not delivered when its time comes.
    let passed = position.map_or(now, |position| position.created_at.max(now));
    let after_now = passed.plus(Duration::from_micros(1));
    let ahead = format!(
        "SELECT pg_catalog.count(*), pg_catalog.min(ahead.at) FROM ({}) AS ahead (at, id)",
        shape.next_sql(After::Instant)
    );
    let ahead = session.query_one(&ahead, &[&last, &CAP, &after_now]).await?;
    let never = session.query_one(&shape.backlog_sql(After::Instant), &[&last, &CAP, &last]).await?.try_get(0)?;
    let below = match position {
        Some(position) if position.created_at > first => {
            session.query_one(&shape.backlog_sql(After::Nothing), &[&first, &CAP]).await?.try_get(0)?
        }
        _ => 0,
    };
    let counted = |rows: i64| Counted { rows, capped: rows >= CAP };
    Ok(OutOfReach {
        ahead: counted(ahead.try_get(0)?),
        nearest: ahead.try_get::<_, Option<Timestamp>>(1)?.map(|at| at.to_string()),
        never: counted(never),
        below: counted(below),
    })
}

/// The lag of a relay whose rows are sent each on their own; none when its table cannot be read, or it reads a stream.
///
/// # Errors
/// The database's.
pub async fn of_due_work(session: &Session, relay: &Config) -> Result<Option<Lag>, Error> {
    match &relay.source {
        source::Config::Stream(_) => Ok(None),
        source::Config::Pending(config) => match due_rows::due(session, config).await?.1 {
            Some(due) => due_rows::backlog(session, &due, &relay.name).await.map(Some),
            None => Ok(None),
        },
        source::Config::Requests(_) => requests::backlog(session, &relay.name).await.map(Some),
        source::Config::Schedule(_) => {
            let (mut lag, _) = actions::backlog(session, &relay.name).await?;
            // An occurrence that no replica has made an action of is late, too.
            let first = schedules::first(session, &relay.name).await?;
            if let Some(at) = first.at.filter(|at| *at <= first.now) {
                lag.age = lag.age.max(first.now.since(at));
            }
            Ok(Some(lag))
        }
    }
}
