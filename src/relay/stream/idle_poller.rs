//! One look for all tables that rest.
//!
//! A group that rests hands its [`Rest`] to the sentry and sleeps. The sentry asks for the newest rows of all such tables by one
//! statement, as often as the arrivals of each ask for (after a silence less often, the more tables there are), looks at their
//! writers together, and asks the [`crate::relay::engine::control_changes`]. It wakes a group whose newest row is another, whose rest
//! is over, or of which the bulletin has news.
//!
//! **It ends a pause, and nothing else**, as a notification does. A group that is woken looks by itself, and what it does
//! rests on its own look alone, so the argument of [`crate::relay::stream::idle`] is untouched: its short looks are only made where one
//! has found something, or is due. What the sentry must not do is to be silent about a table that has changed:
//!
//! - Each of its looks takes its snapshot after the pause of every table that it asks for has begun, and none waits longer
//!   than its pause among the others after the look before has ended. A look that
//!   meets a locked table takes half a second, and those of the others wait for it.
//! - An answer is compared with what the group rests on, never with an earlier answer. A row that comes and goes between
//!   two looks is missed, as it is by a group's own.
//! - When anything fails (a table is gone, locked or may not be read, the server is away) nobody knows which table it was.
//!   All groups are woken and look by themselves, each telling its own error, and the sentry takes nobody in for a while.
//!   A group whose table fails does not rest, so the others come together again without it.
//! - A group never sleeps beyond the end of its rest, whatever the sentry does.
//!
//! A row in the future is none before its time: the clock of the last look at any table's writers is the same clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use self::look::{Asked, LookResult, look};
use self::question::Question;
use crate::database::Error;
use crate::pace::Backoff;
use crate::pace::freshness;
use crate::position::{Position, Timestamp};
use crate::relay::engine::Engine;
use crate::relay::stream::idle::Rest;
use crate::relay::stream::sweeps::Sweep;
use crate::source::shape::Shape;

mod look;
mod pauses;
mod question;

pub(in crate::relay) use pauses::Pauses;

/// See the module.
#[derive(Debug, Default)]
pub(in crate::relay) struct IdlePoller {
    watched: Mutex<Tables>,
    /// Somebody's look is due before the one that is waited for.
    sooner: Notify,
}

#[derive(Debug, Default)]
struct Tables {
    next: u64,
    tables: BTreeMap<u64, PolledTable>,
    /// When the next look will be made.
    planned: Option<Instant>,
    /// Every relay looks by itself before this.
    apart_until: Option<Instant>,
    failures: Backoff,
}

#[derive(Debug)]
struct PolledTable {
    rest: Rest,
    shape: Arc<Shape>,
    pauses: Pauses,
    due: Instant,
    /// When it was last found as it was, by the database's clock.
    seen: Option<Timestamp>,
    /// The newest row when it was not found as it was.
    newer: Option<Position>,
    /// Where rows may come late, and whether some have.
    sweeps: Vec<Sweep>,
    late: bool,
    woken: Arc<Notify>,
}

/// How a group's rest has ended.
#[derive(Debug)]
pub(in crate::relay) struct Watched {
    /// The rest as it is now.
    pub(in crate::relay) rest: Rest,
    /// When the table was last found as it was, by the database's clock.
    pub(in crate::relay) seen: Option<Timestamp>,
    /// The newest row, if it is another now.
    pub(in crate::relay) newer: Option<Position>,
    /// Rows have come late.
    pub(in crate::relay) late: bool,
}

/// A table that the sentry looks after, for as long as this lives.
#[derive(Debug)]
pub(in crate::relay) struct Watch<'a> {
    sentry: &'a IdlePoller,
    number: u64,
    left: Duration,
    woken: Arc<Notify>,
}

impl IdlePoller {
    /// Takes a resting group's table in, and its rest out of its hands; none while every relay looks by itself.
    pub(in crate::relay) fn watch(
        &self,
        rest: &mut Option<Rest>,
        (shape, sweeps): (&Arc<Shape>, Vec<Sweep>),
        pauses: Pauses,
    ) -> Option<Watch<'_>> {
        let mut watched = self.watched();
        let now = Instant::now();
        if watched.apart_until.is_some_and(|until| until > now) {
            return None;
        }
        let rest = rest.take()?;
        watched.next += 1;
        // Replicas that were started together, or woken by the same row, would all look at the same moments from then on, and
        // the next row would wait for all of them. The first of the tables decides for those that come after it.
        let pause = pauses.among(watched.tables.len() + 1, now);
        let silent = pause >= freshness::longest(&pauses.poll);
        let first = if silent && watched.tables.is_empty() { pause.mul_f64(fastrand::f64()) } else { pause };
        let left = rest.left();
        let (number, due, woken) = (watched.next, now + first, Arc::default());
        let shape = Arc::clone(shape);
        let (newer, late) = (None, false);
        let table =
            PolledTable { rest, shape, pauses, due, seen: None, newer, sweeps, late, woken: Arc::clone(&woken) };
        watched.tables.insert(number, table);
        if watched.planned.is_none_or(|planned| due < planned) {
            self.sooner.notify_one();
        }
        Some(Watch { sentry: self, number, left, woken })
    }

    /// When the next look is due; none while nobody rests.
    fn plan(&self) -> Option<Instant> {
        let mut watched = self.watched();
        let due = watched.tables.values().map(|table| table.due).min();
        // Groups that were woken to look by themselves may not have gone yet.
        watched.planned = due.map(|due| watched.apart_until.map_or(due, |apart| due.max(apart)));
        watched.planned
    }

    /// The tables to ask for now. Those whose pause is half over are asked for with those that are due: after that they
    /// are due together. None when nobody's is.
    fn due(&self) -> Vec<Asked> {
        let now = Instant::now();
        let watched = self.watched();
        if watched.tables.values().all(|table| table.due > now) {
            return Vec::new();
        }
        let tables = watched.tables.len();
        let due = watched.tables.iter().filter(|(_, table)| table.due <= now + table.pauses.among(tables, now) / 2);
        let asked = due.map(|(&number, table)| {
            let (shape, sighting) = (Arc::clone(&table.shape), table.rest.sighting.clone());
            Asked { number, shape, sighting, wants_scan: table.rest.wants_scan(), sweeps: table.sweeps.clone() }
        });
        asked.collect()
    }

    /// Takes in what a look found, and wakes the groups that it concerns.
    fn found(&self, asked: &[Asked], found: LookResult) {
        let mut watched = self.watched();
        watched.failures = Backoff::new();
        let (tables, now) = (watched.tables.len(), Instant::now());
        for (asked, newest) in asked.iter().zip(found.newest) {
            let Some(table) = watched.tables.get_mut(&asked.number) else { continue };
            table.due = now + table.pauses.among(tables, now);
            if table.rest.is_of(newest.as_ref()) {
                table.seen = Some(found.begun);
            } else {
                table.newer = newest;
                table.woken.notify_one();
            }
        }
        for number in found.late {
            if let Some(table) = watched.tables.get_mut(&number) {
                table.late = true;
                table.woken.notify_one();
            }
        }
        for (number, sighting) in found.sightings {
            if let Some(table) = watched.tables.get_mut(&number) {
                table.rest.sighting = sighting;
            }
        }
        for table in watched.tables.values().filter(|table| table.rest.is_over(found.bulletin)) {
            table.woken.notify_one();
        }
    }

    /// Has every relay look by itself for a while.
    fn part(&self) -> Duration {
        let mut watched = self.watched();
        let pause = watched.failures.failed(fastrand::f64());
        watched.apart_until = Some(Instant::now() + pause);
        watched.tables.values().for_each(|table| table.woken.notify_one());
        pause
    }

    fn watched(&self) -> MutexGuard<'_, Tables> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch<'_> {
    /// Until the group must look by itself.
    pub(in crate::relay) async fn ended(&self) {
        self.woken.notified().await;
    }

    /// How long the rest lasted at most when the watch began.
    pub(in crate::relay) fn left(&self) -> Duration {
        self.left
    }

    /// The rest as it is now, and what was found.
    pub(in crate::relay) fn end(self) -> Option<Watched> {
        let PolledTable { rest, seen, newer, late, .. } = self.sentry.watched().tables.remove(&self.number)?;
        Some(Watched { rest, seen, newer, late })
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.sentry.watched().tables.remove(&self.number);
    }
}

/// Looks until the engine stops.
pub(in crate::relay) async fn run(engine: Arc<Engine>, sentry: Arc<IdlePoller>) {
    let mut question = Question::default();
    while !engine.stop.is_cancelled() {
        let planned = sentry.plan();
        tokio::select! {
            () = engine.stop.cancelled() => return,
            () = sentry.sooner.notified() => continue,
            () = until(planned) => {}
        }
        let asked = sentry.due();
        let Some(freshest) = asked.iter().map(|asked| &asked.sighting).max_by_key(|sighting| sighting.answered) else {
            continue;
        };
        match look(&engine, &mut question, &asked, freshest).await {
            Ok(found) => sentry.found(&asked, found),
            Err(error) => {
                question = Question::default();
                if matches!(error, Error::Timeout(_)) {
                    engine.probe.forget().await;
                }
                let pause = sentry.part();
                tracing::debug!(%error, ?pause, "tables that rest are looked at one by one");
            }
        }
    }
}

async fn until(planned: Option<Instant>) {
    match planned {
        Some(planned) => tokio::time::sleep_until(planned.into()).await,
        None => std::future::pending().await,
    }
}
