//! The relays of one source: one look at the table serves them all.
//!
//! A look is a scan of the writers, the newest row that is safe to read, and where the cursors stand: no lock, no
//! transaction id, no WAL. Only a cursor that is behind gets a turn. Idle cost grows with tables, not with cursors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{Id, JoinSet};

use super::Ready;
use super::engine::Engine;
use super::prepare::{self, Unready};
use super::worker::{self, Next};
use crate::cursor::{self, Standing};
use crate::database::Error;
use crate::pace::{Backoff, Pace};
use crate::position::Position;
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

/// How often the catalogue is read again.
const CATALOGUE: Duration = Duration::from_secs(1);
/// How often lag and backlog are measured.
const SAMPLE: Duration = Duration::from_secs(5);
/// How long a relay that did not pass its checks waits before they are made again.
const RECHECK: Duration = Duration::from_secs(5);

/// The relays of one source.
#[derive(Debug)]
pub(super) struct Group {
    engine: Arc<Engine>,
    source: crate::source::Config,
    members: Vec<Member>,
    shape: Option<Arc<Shape>>,
    shape_read: Option<Instant>,
    running: JoinSet<(Next, Backoff)>,
    tasks: HashMap<Id, usize>,
}

/// One relay of the group.
#[derive(Debug)]
struct Member {
    config: super::Config,
    ready: Option<Arc<Ready>>,
    backoff: Backoff,
    not_before: Instant,
    busy: bool,
    /// Nothing was found with this newest row at this position: not worth another turn.
    quiet: Option<(Option<Position>, Option<Position>)>,
    sampled: Option<Instant>,
}

/// What one look found.
struct Look {
    sighting: Sighting,
    newest: Option<Position>,
    standings: Vec<Standing>,
}

impl Group {
    /// A group of relays with the same source.
    #[must_use]
    pub(super) fn new(engine: Arc<Engine>, source: crate::source::Config, relays: Vec<super::Config>) -> Self {
        let members = relays
            .into_iter()
            .map(|config| Member {
                config,
                ready: None,
                backoff: Backoff::new(),
                not_before: Instant::now(),
                busy: false,
                quiet: None,
                sampled: None,
            })
            .collect();
        Self { engine, source, members, shape: None, shape_read: None, running: JoinSet::new(), tasks: HashMap::new() }
    }

    /// Runs until the engine stops; running turns are waited for.
    pub(super) async fn run(mut self) {
        let poll = self.members.iter().map(|member| member.config.poll).min_by_key(|poll| poll.max).unwrap_or_default();
        let mut pace = Pace::new(poll.min, poll.max);
        let mut backoff = Backoff::new();
        while !self.engine.stop.is_cancelled() {
            self.engine.heartbeat.beat();
            let pause = match self.step().await {
                Ok(found) => {
                    backoff = Backoff::new();
                    pace.after(found)
                }
                Err(error) => {
                    let pause = backoff.failed(fastrand::f64());
                    tracing::warn!(table = %self.source.table, %error, ?pause, "cannot look at the table");
                    self.engine.unreachable(&error);
                    pause
                }
            };
            self.wait(pause).await;
        }
        while let Some(done) = self.running.join_next_with_id().await {
            self.finished(done);
        }
    }

    /// Waits for the pause, the end of a turn, or the engine's end.
    async fn wait(&mut self, pause: Duration) {
        let stop = self.engine.stop.clone();
        // With every relay in a turn there is nothing to look for before one of them is done.
        let pause = if self.members.iter().all(|member| member.busy) { pause.max(SAMPLE / 10) } else { pause };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
            Some(done) = self.running.join_next_with_id() => self.finished(done),
        }
        while let Some(done) = self.running.try_join_next_with_id() {
            self.finished(done);
        }
    }

    /// One look; true when some relay had work to do.
    async fn step(&mut self) -> Result<bool, Error> {
        self.catalogue().await?;
        let Some(shape) = self.shape.clone() else { return Ok(false) };
        let sighting = self.engine.watcher.scan(&shape).await?;
        self.engine.reachable();
        self.prepare(&shape, &sighting).await?;
        let look = self.look(&shape, sighting).await?;
        let mut found = false;
        for index in 0..self.members.len() {
            found |= self.consider(index, &look);
        }
        self.sample(&shape, &look).await?;
        Ok(found)
    }

    /// Reads the table's shape again when it is time; halts the relays whose rule has changed under them.
    async fn catalogue(&mut self) -> Result<(), Error> {
        if self.shape.is_some() && self.shape_read.is_some_and(|read| read.elapsed() < CATALOGUE) {
            return Ok(());
        }
        if self.shape.is_none() && self.shape_read.is_some_and(|read| read.elapsed() < RECHECK) {
            return Ok(());
        }
        self.shape_read = Some(Instant::now());
        let session = self.engine.probe.session().await?;
        let shape = prepare::shape(&session, &self.source).await?;
        // The server answers, whatever it says of the table.
        self.engine.reachable();
        match shape {
            Ok(shape) => {
                if let Some(before) = self.shape.as_ref().filter(|before| ***before != shape) {
                    let weaker = before.rule != shape.rule || (before.proven && !shape.proven);
                    if weaker {
                        self.rule_changed(&session, before.rule.as_str(), &shape).await?;
                    }
                }
                if self.shape.as_deref() != Some(&shape) {
                    self.shape = Some(Arc::new(shape));
                    self.reshape();
                }
            }
            Err(unready) => {
                self.shape = None;
                for member in &mut self.members {
                    member.ready = None;
                    prepare::not_ready(&self.engine, &member.config, &unready).await;
                }
            }
        }
        Ok(())
    }

    async fn rule_changed(&self, session: &crate::database::Session, before: &str, shape: &Shape) -> Result<(), Error> {
        for member in &self.members {
            let Some(ready) = &member.ready else { continue };
            let message = format!(
                "the default or trigger of {}.{} has changed: the horizon rule was {before} and is {} now{}",
                shape.config.table,
                shape.config.created_at,
                shape.rule.as_str(),
                if shape.proven { "" } else { ", not proven" }
            );
            tracing::error!(cursor = member.config.name, error = message, "relay halted");
            let report = cursor::ErrorReport {
                class: "fatal",
                code: "horizon_rule_changed",
                message: &message,
                hint: "Restore the default, or accept the new rule: `outbox-relay cursor resume`.",
                message_id: None,
            };
            cursor::report(session, &member.config.name, &report, Some(&ready.fingerprint)).await?;
        }
        Ok(())
    }

    /// Gives the relays that are ready the new shape.
    fn reshape(&mut self) {
        let Some(shape) = &self.shape else { return };
        for member in &mut self.members {
            if let Some(ready) = &member.ready {
                member.ready = Some(Arc::new(ready.with_shape(Arc::clone(shape))));
            }
            member.quiet = None;
        }
    }

    /// Makes relays ready that are not.
    async fn prepare(&mut self, shape: &Arc<Shape>, sighting: &Sighting) -> Result<(), Error> {
        for member in &mut self.members {
            if member.ready.is_some() || member.not_before > Instant::now() {
                continue;
            }
            match prepare::ready(&self.engine, &member.config, shape, sighting).await? {
                Ok(ready) => {
                    tracing::info!(cursor = member.config.name, rule = shape.rule.as_str(), "relay ready");
                    member.ready = Some(Arc::new(ready));
                }
                Err(unready) => {
                    let pause = if matches!(unready, Unready::NoHorizon) { Duration::from_millis(20) } else { RECHECK };
                    member.not_before = Instant::now() + pause;
                    prepare::not_ready(&self.engine, &member.config, &unready).await;
                }
            }
        }
        Ok(())
    }

    async fn look(&self, shape: &Shape, sighting: Sighting) -> Result<Look, Error> {
        let session = self.engine.probe.session().await?;
        let names: Vec<&str> = self.members.iter().map(|member| member.config.name.as_str()).collect();
        let newest_sql = session.prepare_cached(&shape.newest_sql()).await?;
        let horizon = [&sighting.horizon.at as &(dyn tokio_postgres::types::ToSql + Sync)];
        let newest = async {
            if sighting.horizon.at.is_finite() {
                session.query_opt(&newest_sql, &horizon).await.map_err(Error::from)
            } else {
                Ok(None)
            }
        };
        let both = async { tokio::try_join!(newest, cursor::standings(&session, &names)) };
        let (newest, standings) = tokio::time::timeout(self.engine.call_deadline, both)
            .await
            .map_err(|_| Error::Timeout(self.engine.call_deadline))??;
        let newest = match newest {
            Some(row) => Some(Position { created_at: row.try_get(0)?, id: row.try_get(1)? }),
            None => None,
        };
        Ok(Look { sighting, newest, standings })
    }

    /// Starts a turn if the relay has something to do and may; true when it has.
    fn consider(&mut self, index: usize, look: &Look) -> bool {
        let member = &mut self.members[index];
        let Some(ready) = member.ready.clone() else { return false };
        let Some(standing) = look.standings.iter().find(|standing| standing.name == ready.config.name) else {
            member.ready = None; // its row is gone: it is made anew
            return true;
        };
        ready.observe(standing, &look.sighting);
        let behind = behind(standing.position.as_ref(), look.newest.as_ref());
        let seen = (standing.position.clone(), look.newest.clone());
        let wanted = standing.seek || (behind && member.quiet.as_ref() != Some(&seen));
        let halted = standing.halted.as_deref() == Some(ready.fingerprint.as_str());
        let now = Instant::now();
        if !wanted || member.busy || halted || standing.paused || member.not_before > now {
            return wanted && member.busy;
        }
        if let Some(interval) = ready.sink.min_interval() {
            let due = standing.advanced_at.plus(interval).since(look.sighting.clock());
            if !due.is_zero() && standing.advanced_by.is_some() {
                member.not_before = now + due;
                return false;
            }
        }
        member.busy = true;
        member.quiet = Some(seen);
        let task = worker::run(Arc::clone(&self.engine), ready, look.sighting.clone(), member.backoff);
        self.tasks.insert(self.running.spawn(task).id(), index);
        true
    }

    fn finished(&mut self, done: Result<(Id, (Next, Backoff)), tokio::task::JoinError>) {
        let (id, outcome) = match done {
            Ok((id, outcome)) => (id, Ok(outcome)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(member) = self.tasks.remove(&id).and_then(|index| self.members.get_mut(index)) else { return };
        member.busy = false;
        let next = match outcome {
            Ok((next, backoff)) => {
                member.backoff = backoff;
                next
            }
            Err(error) => {
                let pause = member.backoff.failed(fastrand::f64());
                tracing::error!(cursor = member.config.name, %error, ?pause, "turn panicked: its connections are closed");
                Next::After(pause)
            }
        };
        match next {
            Next::Quiet => {}
            Next::Look | Next::Halted => member.quiet = None,
            Next::After(pause) => {
                member.quiet = None;
                member.not_before = Instant::now() + pause;
            }
            Next::Catalogue => {
                member.quiet = None;
                self.shape_read = None;
            }
            Next::Recheck(pause) => {
                member.quiet = None;
                member.ready = None;
                member.not_before = Instant::now() + pause;
            }
        }
    }

    /// Measures lag and backlog of the cursors whose time has come: every replica does, so that the figures survive the
    /// holder.
    async fn sample(&mut self, shape: &Shape, look: &Look) -> Result<(), Error> {
        let session = self.engine.probe.session().await?;
        for member in &mut self.members {
            if member.sampled.is_some_and(|sampled| sampled.elapsed() < SAMPLE) {
                continue;
            }
            let (Some(ready), Some(standing)) =
                (&member.ready, look.standings.iter().find(|standing| standing.name == member.config.name))
            else {
                continue;
            };
            member.sampled = Some(Instant::now());
            let now = look.sighting.clock();
            let lag = super::lag::measure(&session, shape, standing.position.as_ref(), now).await?;
            ready.sampled(&lag);
            let (open, idle) = self.engine.connections();
            crate::metrics::pool(idle, open.saturating_sub(idle));
        }
        Ok(())
    }
}

/// Whether a cursor has something to read, as far as can be told without ordering ids: at the same instant, another id
/// than the newest is taken to be before it.
fn behind(position: Option<&Position>, newest: Option<&Position>) -> bool {
    let Some(newest) = newest else { return false };
    let Some(position) = position else { return true };
    position.created_at < newest.created_at || (position.created_at == newest.created_at && position.id != newest.id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;

    fn at(micros: i64, id: Option<&str>) -> Position {
        Position { created_at: Timestamp::from_pg_micros(micros), id: id.map(str::to_owned) }
    }

    #[test]
    fn a_cursor_is_behind_unless_the_newest_safe_row_is_its_own() {
        assert!(!behind(None, None));
        assert!(behind(None, Some(&at(1, Some("a")))));
        assert!(behind(Some(&at(1, None)), Some(&at(1, Some("a")))));
        assert!(behind(Some(&at(1, Some("b"))), Some(&at(1, Some("a")))));
        assert!(!behind(Some(&at(1, Some("a"))), Some(&at(1, Some("a")))));
        assert!(!behind(Some(&at(2, Some("a"))), Some(&at(1, Some("z")))));
    }
}
