//! The relays of one source: one look at the table serves them all.
//!
//! A look is a scan of the writers, the newest row that is safe to read, and where the cursors stand: no lock, no
//! transaction id, no WAL. Only a cursor that is behind gets a turn. Idle cost grows with tables, not with cursors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{Id, JoinSet};

use super::engine::Engine;
use super::look::Look;
use super::member::{Member, RECHECK, SAMPLE};
use super::shards::{self, Shards};
use super::worker::{self, Next};
use super::{prepare, report};
use crate::cursor;
use crate::database::{Error, sqlstate};
use crate::pace::{Backoff, Pace};
use crate::position::Position;
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

/// A look that takes longer hangs on a server that keeps its connection and does not answer.
const STEP: Duration = Duration::from_secs(30);
/// How often the catalogue is read again.
const CATALOGUE: Duration = Duration::from_secs(1);

/// The relays of one source.
#[derive(Debug)]
pub(super) struct Group {
    engine: Arc<Engine>,
    source: crate::source::Config,
    members: Vec<Member>,
    shape: Option<Arc<Shape>>,
    shape_read: Option<Instant>,
    /// The newest row at the last look.
    latest: Option<Position>,
    /// The newest row of each shard.
    shards: Shards,
    /// When the first relay may go on that has something to do but must wait.
    wake: Option<Instant>,
    running: JoinSet<(Next, Backoff)>,
    tasks: HashMap<Id, usize>,
}

impl Group {
    /// A group of relays with the same source.
    #[must_use]
    pub(super) fn new(engine: Arc<Engine>, source: crate::source::Config, relays: Vec<super::Config>) -> Self {
        let members = relays.into_iter().map(Member::new).collect();
        Self {
            engine,
            source,
            members,
            shape: None,
            shape_read: None,
            latest: None,
            shards: Shards::default(),
            wake: None,
            running: JoinSet::new(),
            tasks: HashMap::new(),
        }
    }

    /// Runs until the engine stops; running turns are waited for.
    pub(super) async fn run(mut self) {
        let poll = self.members.iter().map(|member| member.config.poll).min_by_key(|poll| poll.max).unwrap_or_default();
        let mut pace = Pace::new(poll.min, poll.max);
        let mut backoff = Backoff::new();
        while !self.engine.stop.is_cancelled() {
            self.engine.heartbeat.beat();
            let step = tokio::time::timeout(STEP, self.step()).await.unwrap_or(Err(Error::Timeout(STEP)));
            let pause = match step {
                Ok(found) => {
                    backoff = Backoff::new();
                    pace.after(found)
                }
                Err(error) => {
                    self.engine.probe.forget().await;
                    let pause = backoff.failed(fastrand::f64());
                    let hint = sqlstate::meaning(&error).hint;
                    tracing::warn!(table = %self.source.table(), %error, hint, ?pause, "cannot look at the table");
                    // Without a connection nothing can be written down either; one slip is no news for the status.
                    if matches!(error, Error::Statement(_) | Error::Timeout(_)) && backoff.failures() > 1 {
                        report::blind(&self.engine, self.members.iter().filter_map(|m| m.ready.as_ref()), &error).await;
                    }
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
        let pause = self.wake.map_or(pause, |wake| pause.min(wake.saturating_duration_since(Instant::now())));
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
        self.wake = None;
        self.catalogue().await?;
        let Some(shape) = self.shape.clone() else { return Ok(false) };
        let sighting = self.engine.watcher.scan(&shape).await?;
        self.prepare(&shape, &sighting).await;
        let session = self.engine.probe.session().await?;
        let names: Vec<&str> = self.members.iter().map(|member| member.config.name.as_str()).collect();
        let look = Look::take(&session, &shape, &names, sighting, self.engine.call_deadline).await?;
        let configs = self.members.iter().map(|member| &member.config);
        let look = self.shards.complete(look, &session, &shape, configs, self.engine.call_deadline).await?;
        // A row that has only just come is safe to read soon: it is worth looking often again.
        let mut found = self.latest != look.latest;
        self.latest.clone_from(&look.latest);
        for index in 0..self.members.len() {
            found |= self.consider(index, &look);
        }
        self.sample(&look).await?;
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
        match shape {
            Ok(shape) => {
                if let Some(before) = self.shape.as_ref().filter(|before| ***before != shape) {
                    let weaker = before.rule != shape.rule || (before.proven && !shape.proven);
                    if weaker {
                        let ready = self.members.iter().filter_map(|member| member.ready.as_ref());
                        report::rule_changed(&session, ready, before.rule, &shape).await?;
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
                    member.not_ready(&self.engine, &unready).await;
                }
            }
        }
        Ok(())
    }

    /// Gives the relays that are ready the new shape; those whose sink it does not fit are made ready anew.
    fn reshape(&mut self) {
        let Some(shape) = &self.shape else { return };
        for member in &mut self.members {
            if let Some(ready) = &member.ready {
                member.ready = ready.sink.fits(&shape.columns).then(|| Arc::new(ready.with_shape(shape)));
            }
            member.quiet = None;
        }
    }

    /// Makes relays ready that are not, each in a task of its own: a sink that cannot be reached must not hold the others.
    async fn prepare(&mut self, shape: &Arc<Shape>, sighting: &Sighting) {
        for member in &mut self.members {
            member.prepare(&self.engine, shape, sighting).await;
        }
    }

    /// Starts a turn if the relay has something to do and may; true when it has.
    fn consider(&mut self, index: usize, look: &Look) -> bool {
        let member = &mut self.members[index];
        let Some(ready) = member.ready.clone() else { return false };
        let Some(standing) = look.standing(&ready.config.name) else {
            member.ready = None; // its row is gone: it is made anew
            return true;
        };
        ready.observe(standing, look);
        let seen = (standing.position.clone(), look.newest_for(standing).cloned());
        if member.busy {
            return false;
        }
        if !member.tries_wish(standing) {
            let wanted = standing.redrive || (look.is_behind(standing) && member.quiet.as_ref() != Some(&seen));
            // What an ended replica had in flight is recorded also while nothing may be published.
            if !standing.in_flight && (!wanted || standing.paused || member.is_halted(&ready, standing)) {
                return false;
            }
            if let Some(due) = member.due(&ready, standing, &look.sighting) {
                self.wake = Some(self.wake.map_or(due, |wake| wake.min(due)));
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
            Next::Look => member.quiet = None,
            Next::Halted => {
                member.quiet = None;
                // A halt that could not be recorded must not become a storm of tries.
                member.not_before = Instant::now() + member.backoff.failed(fastrand::f64());
            }
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
    async fn sample(&mut self, look: &Look) -> Result<(), Error> {
        let session = self.engine.probe.session().await?;
        self.engine.measure_connections();
        for member in &mut self.members {
            if member.sampled.is_some_and(|sampled| sampled.elapsed() < SAMPLE) {
                continue;
            }
            let (Some(ready), Some(standing)) = (&member.ready, look.standing(&member.config.name)) else { continue };
            member.sampled = Some(Instant::now());
            if ready.sink.partitions().is_some() {
                let (ready, patience) = (Arc::clone(ready), self.engine.call_deadline);
                tokio::spawn(async move {
                    if let Err(failure) = ready.sink.look_again(patience).await {
                        tracing::debug!(cursor = ready.config.name, error = failure.message, "partitions not counted");
                    }
                });
            }
            let waits = look.is_behind(standing) || look.is_held(standing) || standing.redrive;
            let trouble = ready.reported() || standing.circuit.is_some();
            if trouble && !waits && !member.busy {
                cursor::clear(&session, &member.config.name, None).await?;
            }
            let now = look.sighting.clock();
            if !member.busy {
                shards::follow(&session, ready, standing, look).await?;
            }
            let lag = super::lag::measure(&session, &ready.shape, standing.position.as_ref(), now).await?;
            let name = &member.config.name;
            let unknown = cursor::unknown::count(&session, name).await?;
            ready.sampled(&lag, cursor::dead_letter::open(&session, name).await?, unknown);
        }
        Ok(())
    }
}
