//! How a group spends its pauses, and its looks while nothing is to be done.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{CATALOGUE, CATALOGUE_AT_REST, Group};
use crate::database::{Error, Session};
use crate::position::Position;
use crate::relay::engine::intervals::SAMPLE;
use crate::relay::engine::wakeups;
use crate::relay::stream::idle::Rest;
use crate::relay::stream::idle_poller::{Pauses, Watch, Watched};
use crate::relay::stream::member::Member;
use crate::relay::stream::poll::Look;
use crate::relay::stream::sweeps;
use crate::source::shape::Shape;

/// A row that will be safe to read within this time is waited for.
const SOON: Duration = Duration::from_millis(10);

impl Group {
    /// Waits as long as the group rests, while the sentry looks; when that fails, for a pause.
    pub(super) async fn rest(&mut self, pauses: Pauses) {
        let sentry = Arc::clone(&self.sentry);
        let sweeps = self.sweeps(true);
        let watch = self.shape.as_ref().and_then(|shape| sentry.watch(&mut self.rest, (shape, sweeps), pauses));
        self.wait(pauses.alone(Instant::now()), watch).await;
    }

    /// Waits for the pause, or the sentry's word instead, a hint, the end of a turn or of the last checks, or the engine's end.
    pub(super) async fn wait(&mut self, pause: Duration, watch: Option<Watch<'_>>) {
        let stop = self.engine.stop.clone();
        // With every relay in a turn there is nothing to look for before one of them is done.
        let busy = self.members.iter().all(|member| member.busy);
        let pause = if busy { pause.max(SAMPLE / 10) } else { pause };
        let preparing = !self.preparing.is_empty();
        let pause = watch.as_ref().map_or(pause, Watch::left);
        let wake = self.wake.filter(|_| !busy);
        let pause = wake.map_or(pause, |wake| pause.min(wake.saturating_duration_since(Instant::now())));
        let sleeper = self.sleeper.clone();
        let hint = wakeups::hint(sleeper.as_deref(), &mut self.hinted);
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = ended(watch.as_ref()) => {}
            () = hint, if !busy && !self.stands_by => {}
            () = Self::checked(&mut self.preparing, &mut self.tasks, &mut self.members), if preparing => {}
            () = stop.cancelled() => {}
            Some(done) = self.running.join_next_with_id() => self.finished(done),
        }
        if self.hinted {
            self.members.iter_mut().for_each(Member::hinted);
        }
        if let Some(Watched { rest, seen, newer, late }) = watch.and_then(Watch::end) {
            (self.rest, self.newer, self.late) = (Some(rest), newer, late);
            self.seen = seen.or(self.seen);
        }
        while let Some(done) = self.running.try_join_next_with_id() {
            self.finished(done);
        }
    }

    /// One look; true when some relay had work to do.
    pub(super) async fn step(&mut self) -> Result<bool, Error> {
        // A replica that stands by reads the catalog again before it takes over.
        let known = if self.stands_by { CATALOGUE_AT_REST } else { CATALOGUE };
        let (arrived, newer) = (std::mem::take(&mut self.arrived), self.newer.take());
        let late = std::mem::take(&mut self.late);
        let (Some(mut rest), Some(shape)) = (self.rest.take(), self.shape.clone()) else {
            return self.look(known).await;
        };
        let session = self.engine.probe.session().await?;
        if rest.is_over(self.engine.bulletin.number(&session, self.engine.call_deadline).await?) {
            return self.look(CATALOGUE_AT_REST).await;
        }
        if late {
            return self.look(known).await;
        }
        if arrived {
            self.rest = Some(rest);
            return Ok(false);
        }
        let newest = match newer {
            Some(newer) => Some(newer),
            None => self.newest(&session, &shape, &rest).await?,
        };
        if !rest.is_of(newest.as_ref()) {
            let safe = newest.map_or(Duration::ZERO, |newest| rest.sighting.until_safe(&newest, shape.margin));
            if safe <= SOON && !self.stands_by {
                tokio::time::sleep(safe).await; // one look that can read it, instead of two
            }
            return self.look(known).await;
        }
        if rest.wants_scan() {
            rest.sighting = self.engine.watcher.scan(&shape).await?;
            if !sweeps::ask(&self.engine, &session, &self.sweeps(true)).await?.is_empty() {
                return self.look(known).await;
            }
        }
        self.rest = Some(rest);
        Ok(false)
    }

    /// A short look: the newest row.
    async fn newest(&mut self, session: &Session, shape: &Shape, rest: &Rest) -> Result<Option<Position>, Error> {
        let (begun, now) = (rest.sighting.clock(), rest.sighting.latest_clock());
        let newest = Look::glance(session, shape, now, self.engine.call_deadline).await?;
        if rest.is_of(newest.as_ref()) {
            self.seen = Some(begun);
        }
        Ok(newest)
    }
}

/// Until the sentry wakes the group; indefinitely when it looks by itself.
async fn ended(watch: Option<&Watch<'_>>) {
    match watch {
        Some(watch) => watch.ended().await,
        None => std::future::pending().await,
    }
}
