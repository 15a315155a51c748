//! A full look of a group: at the catalog, the writers, the newest rows and the cursors, and the turns that it begins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{CATALOGUE, Group};
use crate::cursor::clock_step;
use crate::database::{Error, Session};
use crate::relay::engine::deadline::within;
use crate::relay::stream::clock_watch::Reading;
use crate::relay::stream::idle::Rest;
use crate::relay::stream::member::Quiet;
use crate::relay::stream::poll::Look;
use crate::relay::stream::shards;
use crate::relay::stream::sweeps::{self, Sweep};
use crate::relay::stream::worker::{self, Start};
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

/// Between two looks for a row that a hint has told of.
const HINTED: Duration = Duration::from_millis(1);

impl Group {
    /// A full look, with a catalog that was read as lately as `known`.
    pub(super) async fn look(&mut self, known: Duration) -> Result<bool, Error> {
        (self.wake, self.rest_after, self.waits) = (None, None, false);
        self.members.iter_mut().for_each(|member| member.begins = false);
        self.catalogue(known).await?;
        let Some(shape) = self.shape.clone() else { return Ok(false) };
        let sighting = self.engine.watcher.scan(&shape).await?;
        self.passed_over.tell(&shape, &sighting.horizon);
        self.prepare(&shape, &sighting).await;
        let session = self.engine.probe.session().await?;
        if let Err(error) = sighting.server.same_as(&session.server) {
            self.engine.watcher.forget().await;
            return Err(error);
        }
        let names: Vec<&str> = self.members.iter().map(|member| member.config.name.as_str()).collect();
        let bulletin = self.engine.bulletin.number(&session, self.engine.call_deadline).await?;
        let look = Look::take(&session, &shape, &names, sighting, self.engine.call_deadline).await?;
        let configs = self.members.iter().map(|member| &member.config);
        let mut look = self.shards.complete(look, &session, &shape, configs, self.engine.call_deadline).await?;
        look.before = self.seen;
        look.late = sweeps::ask(&self.engine, &session, &self.sweeps(false)).await?;
        self.judge_positions(&session, &look).await;
        // A row that has only just come is safe to read soon: it is worth looking often again.
        let mut found = self.latest != look.latest;
        if found {
            self.arrivals.came(Instant::now());
        }
        // While a writer holds the horizon, rows that come are no reason to look again soon.
        found &= look.sighting.horizon.held_by.is_empty();
        self.latest.clone_from(&look.latest);
        // No sooner than the shortest pause, unless this group is woken by hints: it would wait for rows that it has heard of.
        let shortest = self.members.iter().map(|member| member.config.poll.min).min().unwrap_or_default();
        let floor = if self.sleeper.is_some() { HINTED } else { shortest };
        self.wake = look.safe_at().map(|at| at.max(Instant::now() + floor));
        self.stands_by = self.members.iter().all(|member| member.stands_by(&self.engine, &look));
        if known > CATALOGUE && !self.stands_by && !self.rests(&look) {
            return Ok(true); // looks again at once, at the catalog, too
        }
        self.seen = Some(look.sighting.horizon.observed_at);
        // Replicas that begin at different ends rarely try the same cursor.
        let first = fastrand::usize(..self.members.len().max(1));
        self.waits = self.members.iter().all(|member| member.ready.is_some());
        self.takes_over = false;
        let safe = self.wake.take();
        for index in (first..self.members.len()).chain(0..first) {
            found |= self.consider(index, &look, known);
        }
        if self.takes_over {
            (self.shape_read, self.stands_by) = (None, false); // looks again at once, at the catalog, too
        }
        self.waits &= !self.takes_over;
        if !self.waits && !self.stands_by {
            self.wake = self.wake.into_iter().chain(safe).min();
        }
        self.note_steps(&session).await;
        self.samples.take(&self.engine, &mut self.members, &look).await?;
        let rest = Rest::after(&look, bulletin);
        if self.rests(&look) {
            self.rest = rest;
        } else {
            self.rest_after = rest.filter(|_| self.members.iter().all(|member| member.begins || member.rests(&look)));
        }
        Ok(found)
    }

    /// Where rows may come late: for its relays that are ready, may publish, and run no turn that would find them unless the `busy` are
    /// wanted, too. While a cursor is paused or halted no replica looks: its first turns after that do.
    pub(super) fn sweeps(&self, busy: bool) -> Vec<Sweep> {
        let members = self.members.iter().filter(|member| busy || !member.busy);
        let members = members.filter(|member| !member.paused && !member.halted);
        Sweep::of(members.filter_map(|member| member.ready.as_deref()))
    }

    /// Writes down steps back of the clock; what cannot be written waits for the next look.
    async fn note_steps(&mut self, session: &Session) {
        while let Some((cursor, step)) = self.steps.last() {
            let noted = within(&self.engine, clock_step::note(session, cursor, &self.engine.replica, *step)).await;
            if let Err(error) = noted {
                tracing::warn!(cursor, %error, "cannot record that the clock has stepped back; retrying");
                return;
            }
            self.steps.pop();
        }
    }

    /// Whether there is nothing to do for any relay before the newest row or a cursor's standing changes.
    fn rests(&self, look: &Look) -> bool {
        self.members.iter().all(|member| member.rests(look))
    }

    /// Makes relays ready that are not, each in a task of its own: a sink that cannot be reached must not hold the others.
    async fn prepare(&mut self, shape: &Arc<Shape>, sighting: &Sighting) {
        for (index, member) in self.members.iter_mut().enumerate() {
            member.prepare(&self.engine, shape).await;
            if let Some(checks) = member.checks(&self.engine, shape, sighting) {
                self.tasks.insert(self.preparing.spawn(checks).id(), index);
            }
        }
    }

    /// Starts a turn if the relay has something to do and may; true when it has.
    fn consider(&mut self, index: usize, look: &Look, known: Duration) -> bool {
        let member = &mut self.members[index];
        if !member.busy && self.engine.registry.gives_way(&member.config.name) {
            member.ready = None; // its checks wait until no other configuration runs
        }
        member.see(look);
        let Some(ready) = member.ready.clone() else { return false };
        let Some(standing) = look.standing(&ready.config.name) else {
            member.ready = None; // its row is gone: it is made again
            self.waits = false;
            return true;
        };
        ready.observe(standing, look);
        member.paused = standing.paused;
        let behind = ready.is_behind(standing, &look.sighting);
        let window = ready.shape.margin.window;
        let news = member.clock.poll(Reading::of(&look.sighting), standing.observed_at, behind, window);
        let step = news.and_then(|news| ready.log_clock(news, standing));
        self.steps.extend(step.map(|step| (ready.config.name.clone(), step)));
        if member.busy {
            member.tell(&ready, standing, look);
            return false;
        }
        if member.has_resumed(&self.engine, &ready, standing) {
            self.waits = false;
            return true;
        }
        if !member.tries_change(standing) {
            let wanted = member.is_wanted(&ready, standing, look);
            // What an ended replica had in flight is recorded also while nothing may be published.
            if !standing.in_flight && (!wanted || standing.paused || member.is_halted(&ready, standing)) {
                self.waits = false;
                return false;
            }
            let left = member.left_until(&self.engine, &ready, standing, look);
            if let Some(due) = left.or_else(|| member.due(&ready, standing, &look.sighting)) {
                self.wake = Some(self.wake.map_or(due, |wake| wake.min(due)));
                return false;
            }
        }
        if known > CATALOGUE {
            self.takes_over = true;
            return true;
        }
        let plain = member.begins_plainly(&ready, standing, look);
        self.stands_by = false;
        (member.busy, member.begins, member.woken, member.checking) = (true, plain, false, true);
        member.needless = Arc::default();
        let quiet = Quiet::begin(member.quiet.take(), standing.position.as_ref(), look.newest_for(standing));
        member.quiet = Some(quiet);
        let follow = shards::follows(&ready, standing, look);
        let start = Start {
            sighting: look.sighting.clone(),
            needless: Arc::clone(&member.needless),
            open_since: Arc::clone(&self.open_since),
            follow,
            sparse: self.arrivals.gap().is_some_and(|gap| gap >= member.config.poll.freshness * 5 / 2),
        };
        let task = worker::run(Arc::clone(&self.engine), ready, start, member.backoff, member.learned);
        self.tasks.insert(self.running.spawn(task).id(), index);
        true
    }
}
