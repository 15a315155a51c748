//! What waits, and what is to be said of schedules.

use std::time::Duration;

use super::prepare::PreparedSchedule;
use crate::cursor::open_work::{OpenWork, left_schedules};
use crate::database::{Error, Session};
use crate::jobs::{actions, schedules};
use crate::position::Timestamp;
use crate::relay::Config;
use crate::relay::engine::lag::Lag;
use crate::relay::engine::replicas::fleet;
use crate::source::finding::{Finding, Level};

pub(super) async fn sample(prepared: &PreparedSchedule, session: &Session) -> Result<u64, Error> {
    let relay = &prepared.config.name;
    let (lag, waiting) = backlog(session, relay).await?;
    let counted = schedules::count(session, relay).await?;
    prepared.metrics.set_lag(lag.age, lag.rows.unsigned_abs(), lag.observed_at);
    prepared.counters.set(lag.rows.unsigned_abs(), counted.running.unsigned_abs(), counted.problems.unsigned_abs());
    prepared.counters.set_waiting(waiting.max(Duration::from_secs_f64(counted.waiting.max(0.0))));
    Ok(lag.rows.unsigned_abs())
}

/// How long the oldest action that is due has waited, and how many there are; and for how long the oldest has waited that has
/// not been tried.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn backlog(session: &Session, relay: &str) -> Result<(Lag, Duration), Error> {
    let backlog = actions::backlog(session, relay).await?;
    let age = |since: Option<Timestamp>| since.map(|since| backlog.now.since(since)).unwrap_or_default();
    let lag = Lag {
        age: age(backlog.oldest),
        rows: backlog.rows,
        capped: backlog.rows >= actions::CAP,
        observed_at: backlog.now,
    };
    Ok((lag, age(backlog.untried)))
}

/// What is to be said of schedules that wait for a relay that neither this configuration nor a live replica has.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn orphans(session: &Session, relays: &[String]) -> Result<Vec<Finding>, Error> {
    let left = left_schedules(session, relays).await?;
    if left.is_empty() {
        return Ok(Vec::new());
    }
    let fleet = fleet(session).await?;
    let finding = |(relay, open): (String, OpenWork)| {
        let message = format!(
            "{open} {} for relay {relay}, which neither this configuration nor a live replica has",
            open.wait()
        );
        let hint = format!(
            "Run that relay, here or elsewhere; if it was renamed: `outbox-relay cursor rename {relay} NEW`; if it was removed: \
             `outbox-relay cursor remove {relay}` prints how to finish or give up what waits."
        );
        Finding::new(Level::Warn, "schedules_orphaned", message).setting(hint)
    };
    Ok(left.into_iter().filter(|(relay, _)| fleet.lacks(relay)).map(finding).collect())
}

/// What is to be said of a relay's schedules: those that cannot run.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn findings(session: &Session, relay: &Config) -> Result<Vec<Finding>, Error> {
    let problems = schedules::problems(session, &relay.name).await?;
    let more = problems.len() > 10;
    let more = more.then(|| {
        let message = "there are more schedules that cannot run than these".to_owned();
        Finding::new(Level::Warn, "schedule_problem", message)
            .setting("See all: `outbox-relay schedule list --problems`.")
    });
    Ok(problems
        .into_iter()
        .take(10)
        .map(|(schedule, problem)| {
            Finding::new(Level::Warn, "schedule_problem", format!("schedule {schedule}: {problem}"))
                .setting("Correct the schedule's row; `outbox-relay schedule preview` tries a rule.")
        })
        .chain(more)
        .collect())
}
