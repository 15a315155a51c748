//! Gathers what is known of a cursor that may not move, by two looks with a while in between.

use std::time::{Duration, Instant};

use crate::cursor::{Detail, Standing, detail, standings};
use crate::database::{Error, Session};
use crate::jobs::{self, schedules};
use crate::position::Timestamp;
use crate::relay::Config;
use crate::relay::engine::identity::SourceKind;
use crate::relay::engine::lag::CAP;
use crate::relay::engine::replicas;
use crate::relay::inspect::facts::{CursorFacts, Holder, LastError, OutOfReach, Retrying, Schedules, Waiting};
use crate::relay::inspect::status::{CursorStatus, HeldStatus, horizon, status};
use crate::relay::inspect::waiting_rows;
use crate::relay::queue::actions;
use crate::relay::setup::{prepare, renamed, shards};
use crate::source;
use crate::source::shape::Shape;
use crate::source::span::between;
use crate::source::watcher::Watcher;
use locks::lock;

mod locks;

pub(super) use locks::{lock_of, prepared_lock};

/// A cursor that has rows to take moves within this, unless something holds it up.
const WATCH: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(100);
/// Fewer rows tell no rate: they may be those of one turn, after which nothing is left.
const ENOUGH: f64 = 100.0;

/// Gathers the facts; `configured` are the names of all relays here. None when there is neither a cursor nor a relay of this name.
///
/// # Errors
/// The database's.
pub async fn facts(
    session: &Session,
    watcher: &Watcher,
    relay: Option<&Config>,
    configured: &[String],
    name: &str,
) -> anyhow::Result<Option<CursorFacts>> {
    let begun = Instant::now();
    let before = standing(session, name).await?;
    let all = status(session, watcher, relay.map_or(&[][..], std::slice::from_ref)).await?;
    let cursor = all.cursors.into_iter().find(|cursor| cursor.name == name);
    if cursor.is_none() && relay.is_none() {
        return Ok(None);
    }
    let detail = detail(session, name).await?;
    let observed_at = Timestamp::parse_rfc3339(&all.observed_at).ok();
    let mut facts = CursorFacts {
        replicas: all.fleet.may_take(name, replicas::running(session).await?),
        ..written(name, cursor.as_ref(), &detail)
    };
    facts.notes = cursor.as_ref().map_or_else(|| all.fleet.notes_of(name), |cursor| cursor.notes(&all.fleet));
    facts.absent = all.fleet.lacks(name);
    if let Some(relay) = relay.filter(|_| !facts.exists) {
        facts.renamed = renamed(session, relay, configured).await?;
    }
    let kind = kind(relay, detail.identity.as_deref());
    facts.due_work = kind != SourceKind::Stream;
    facts.has_lanes = relay.is_some_and(|relay| relay.lanes.are_used());
    facts.of_requests = kind == SourceKind::Requests;
    facts.retrying = jobs::waiting(session, name).await?.map(|(rows, next_in, code)| Retrying { rows, next_in, code });
    if kind == SourceKind::Schedules {
        facts.schedules = Some(scheduled(session, name).await?);
    }
    if let (Some(relay), Some(before)) = (relay, &before) {
        facts.out_of_reach = out_of_reach(session, relay, before).await?;
    }
    let settled = facts.paused.is_some() || facts.halted || facts.waiting.is_some_and(|waiting| waiting.rows == 0);
    let after = watch(session, name, before.as_ref(), if settled { Duration::ZERO } else { WATCH }).await?;
    if let (Some(before), Some(after)) = (&before, &after) {
        facts.rested = match after.advanced_by {
            Some(_) => Some(clock(session).await?.since(after.advanced_at).as_secs_f64()),
            None => None,
        };
        if after.position != before.position {
            facts.moved = true;
            let rows = rows(session, relay, before, after).await?;
            facts.rate = rate(rows, begun.elapsed());
        }
    }
    if !facts.moved {
        facts.lock = lock(session, name, cursor.as_ref()).await?;
        facts.prepared_lock = prepared_lock(session, name).await?;
        if let Some((relay, cursor)) = relay.zip(cursor.as_ref()).filter(|_| facts.held) {
            facts.holders = held_still(session, watcher, relay, cursor).await?;
            let since_then = clock(session).await?.since(observed_at.unwrap_or(Timestamp::INFINITY));
            // It has not moved: the same row is still the oldest.
            facts.waiting = facts
                .waiting
                .map(|waiting| Waiting { lag_seconds: waiting.lag_seconds + since_then.as_secs_f64(), ..waiting });
        }
    }
    Ok(Some(facts))
}

/// Why no replica creates the cursor of a relay that may have been renamed, and what decides it.
async fn renamed(session: &Session, relay: &Config, configured: &[String]) -> Result<Option<(String, String)>, Error> {
    let identity = prepare::identity(session, relay).await?;
    let twins = renamed::twins(session, relay, configured, &identity).await?;
    Ok(twins.first().map(|twin| (renamed::evidence(twin), renamed::hint(relay, twin))))
}

/// What the relay reads: as it is configured here, or else as its cursor knows it.
pub(super) fn kind(relay: Option<&Config>, identity: Option<&str>) -> SourceKind {
    match relay.map(|relay| &relay.source) {
        Some(source::Config::Stream(_)) => SourceKind::Stream,
        Some(source::Config::Pending(_)) => SourceKind::Pending,
        Some(source::Config::Requests(_)) => SourceKind::Requests,
        Some(source::Config::Schedule(_)) => SourceKind::Schedules,
        None => identity.map_or(SourceKind::Stream, SourceKind::of),
    }
}

/// How the schedules of a relay stand.
pub(super) async fn scheduled(session: &Session, name: &str) -> Result<Schedules, Error> {
    let counted = schedules::count(session, name).await?;
    let (lag, _) = actions::backlog(session, name).await?;
    let first = schedules::first(session, name).await?;
    Ok(Schedules {
        running: counted.running,
        due: lag.rows,
        problems: counted.problems,
        next_at: match first.new {
            true => Some("a time still to be computed".to_owned()),
            false => first.at.map(|at| at.to_string()),
        },
        overdue: !first.new && first.at.is_some_and(|at| at <= first.now),
    })
}

/// What stands in the schema, and what `status` makes of it.
pub(super) fn written(name: &str, cursor: Option<&CursorStatus>, detail: &Detail) -> CursorFacts {
    let at = |at: Option<Timestamp>| at.map_or_else(|| "an unknown time".to_owned(), |at| at.to_string());
    let paused = cursor.is_some_and(|cursor| cursor.paused);
    CursorFacts {
        name: name.to_owned(),
        relay: cursor.map_or(name, |cursor| cursor.relay.as_str()).to_owned(),
        exists: detail.exists,
        paused: paused
            .then(|| (at(detail.paused_at), detail.paused_by.clone().unwrap_or_else(|| "an operator".to_owned()))),
        halted: cursor.is_some_and(|cursor| cursor.halted),
        by_check: cursor.is_some_and(|cursor| cursor.by_check),
        error: cursor.and_then(|cursor| last_error(cursor, detail)),
        circuit_opened_at: cursor.and_then(|cursor| cursor.sink.opened_at.clone()),
        clock_step: cursor.and_then(|cursor| cursor.clock_step.clone()),
        regressed_until: cursor.filter(|cursor| cursor.state == "clock_regression").map(|_| at(detail.observed_at)),
        waiting: cursor.and_then(|cursor| {
            Some(Waiting {
                lag_seconds: cursor.lag_seconds?,
                rows: cursor.backlog_rows?,
                capped: cursor.backlog_capped.unwrap_or(false),
            })
        }),
        held: cursor.is_some_and(|cursor| cursor.held),
        unknown: cursor.map_or(0, |cursor| cursor.unknown_outcomes),
        unknown_keys: cursor
            .and_then(|cursor| serde_json::from_str(cursor.unknown_keys.get()).ok())
            .unwrap_or_default(),
        late_rows: cursor.map_or(0, |cursor| cursor.late_rows),
        dead_letters: cursor.map_or(0, |cursor| cursor.dead_letters),
        parked_keys: cursor.map_or(0, |cursor| cursor.parked_keys),
        open_work: cursor.and_then(|cursor| cursor.open_work),
        change: (detail.change > detail.change_done).then_some(detail.change),
        requested: detail.requested.clone(),
        ..CursorFacts::default()
    }
}

fn last_error(cursor: &CursorStatus, detail: &Detail) -> Option<LastError> {
    let error: serde_json::Value = serde_json::from_str(cursor.last_error.as_ref()?.get()).ok()?;
    let part = |key: &str| error.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    Some(LastError {
        class: part("class"),
        code: part("code"),
        message: part("message"),
        hint: part("hint"),
        at: Timestamp::parse_rfc3339(&part("at")).map_or_else(|_| part("at"), |at| at.to_string()),
        since: cursor.error_since().map(|since| Timestamp::parse_rfc3339(&since).map_or(since, |at| at.to_string())),
        message_id: detail.message_id.clone(),
    })
}

/// Who held the horizon back at the first look and holds it still, oldest first: a transaction of the moment holds nothing up.
async fn held_still(
    session: &Session,
    watcher: &Watcher,
    relay: &Config,
    first: &CursorStatus,
) -> anyhow::Result<Vec<Holder>> {
    let Some(shape) = shape(session, relay).await? else { return Ok(Vec::new()) };
    let now = horizon(&shape, &watcher.scan(&shape).await?);
    let before = first.horizon.as_ref().map_or(&[][..], |horizon| horizon.held_by.as_slice());
    let still = now.held_by.into_iter().filter(|held| before.iter().any(|first| first.transaction == held.transaction));
    Ok(holders(session, &still.collect::<Vec<_>>()).await?)
}

/// A prepared transaction by the name that ends it.
pub(super) async fn holders(session: &Session, held_by: &[HeldStatus]) -> Result<Vec<Holder>, Error> {
    let mut holders = Vec::with_capacity(held_by.len());
    for held in held_by {
        let standby = held.reason.ends_with("standby");
        let gid = if held.pid.is_none() && !standby { gid(session, held).await? } else { None };
        holders.push(Holder {
            pid: held.pid,
            application: held.application.clone(),
            age_seconds: held.age_seconds,
            gid,
            standby,
        });
    }
    Ok(holders)
}

/// A prepared transaction keeps the virtual transaction of its locks, and among these the lock on its own id.
async fn gid(session: &Session, held: &HeldStatus) -> Result<Option<String>, Error> {
    let sql = include_str!("sql/diagnose_gid.sql");
    Ok(match session.query_opt(sql, &[&held.transaction]).await? {
        Some(row) => row.try_get(0)?,
        None => None,
    })
}

async fn standing(session: &Session, name: &str) -> Result<Option<Standing>, Error> {
    Ok(standings(session, &[name]).await?.into_iter().next())
}

async fn clock(session: &Session) -> Result<Timestamp, Error> {
    Ok(session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?)
}

/// Looks until the cursor has moved, or the time is over.
async fn watch(
    session: &Session,
    name: &str,
    before: Option<&Standing>,
    time: Duration,
) -> Result<Option<Standing>, Error> {
    let begun = Instant::now();
    loop {
        let now = standing(session, name).await?;
        let moved = now.as_ref().map(|now| &now.position) != before.map(|before| &before.position);
        if moved || begun.elapsed() >= time {
            return Ok(now);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// The rows of a stream that no turn reads now; none where its table cannot be read.
async fn out_of_reach(session: &Session, relay: &Config, standing: &Standing) -> Result<OutOfReach, Error> {
    let Some(shape) = shape(session, relay).await? else { return Ok(OutOfReach::default()) };
    waiting_rows::out_of_reach(session, &shape, standing.position.as_ref(), clock(session).await?).await
}

/// What a stream's table looks like to this relay; none for other sources, and where the table cannot be read.
async fn shape(session: &Session, relay: &Config) -> Result<Option<Shape>, Error> {
    // Without the column that shards are told apart by, no row of one can be asked for.
    if shards::readable(session, relay).await?.is_err() {
        return Ok(None);
    }
    let shape = prepare::shape(session, &relay.source).await?;
    Ok(shape.ok().map(|shape| Shape { shard: relay.shard.clone(), ..shape }))
}

/// How many rows lie between two standings, as far as that can be counted.
async fn rows(session: &Session, relay: Option<&Config>, before: &Standing, after: &Standing) -> Result<f64, Error> {
    let Some(relay) = relay else { return Ok(0.0) };
    let Some(shape) = shape(session, relay).await? else { return Ok(0.0) };
    let span = between(session, &shape, (before.position.as_ref(), after.position.as_ref()), CAP).await?;
    Ok(span.rows as f64)
}

/// Rows a second; none when they are too few for a rate.
fn rate(rows: f64, elapsed: Duration) -> Option<f64> {
    (rows >= ENOUGH).then(|| rows / elapsed.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::rate;

    #[test]
    fn few_rows_have_no_rate() {
        assert_eq!((rate(1.0, Duration::from_millis(200)), rate(99.0, Duration::from_millis(20))), (None, None));
        assert_eq!(rate(1_000.0, Duration::from_secs(2)), Some(500.0));
    }
}
