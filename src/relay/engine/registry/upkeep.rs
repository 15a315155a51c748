//! Writes the row of this process, and reads those of the others.
//!
//! Nothing is written while nothing changes. The rows are read once a minute, when the session is another one than before, and
//! once a second while a relay waits for another configuration.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::Registry;
use crate::cursor::replicas::{self, Own, Replica, WantedRelay};
use crate::database::sqlstate::{self, Cure};
use crate::database::{Error, Session};
use crate::pace::Backoff;
use crate::position::Timestamp;
use crate::relay::engine::not_ready::Unready;
use crate::relay::engine::shared::Shared;

/// How often it is seen what is to be done, and how often a waiting relay asks.
const TICK: Duration = Duration::from_secs(1);
/// How often the rows are read, and the most often that this process's row is written once it has been written [`FIRST`] times.
const MINUTE: Duration = Duration::from_secs(60);
const FIRST: u32 = 5;
/// So many failures one after another do not pass by themselves.
const PASSING: u32 = 3;
/// The end of a process waits no longer than this for its last word.
const LAST: Duration = Duration::from_secs(2);

/// What has been done.
struct Upkeep<'a> {
    registry: &'a Registry,
    probe: &'a Shared,
    /// This replica's id.
    replica: &'a str,
    /// When this process started, by the database's clock, as text.
    started_at: Option<String>,
    /// What the row says; none when it is not there.
    written: Option<Vec<WantedRelay>>,
    writes: u32,
    written_at: Option<Instant>,
    read_at: Option<Instant>,
    /// When the rows were read last, by the database's clock.
    seen: Option<Timestamp>,
    session: Weak<Session>,
    /// Another live process has this replica's id, which has been logged.
    shares_id: bool,
    /// Since when a claim that is waited for has been free. It is taken a tick later, because after a failover replicas come back at
    /// different instants.
    free: Option<Instant>,
    backoff: Backoff,
    not_before: Instant,
}

/// Until `stop`; each call to the database takes no longer than `limit`.
pub(in crate::relay) async fn run(
    registry: &Registry,
    probe: &Shared,
    replica: &str,
    limit: Duration,
    stop: &CancellationToken,
) {
    let mut upkeep = Upkeep {
        registry,
        probe,
        replica,
        started_at: None,
        written: None,
        writes: 0,
        written_at: None,
        read_at: None,
        seen: None,
        session: Weak::new(),
        shares_id: false,
        free: None,
        backoff: Backoff::new(),
        not_before: Instant::now(),
    };
    while !stop.is_cancelled() {
        let step = tokio::time::timeout(limit * 2, upkeep.step()).await.unwrap_or(Err(Error::Timeout(limit)));
        upkeep.ended(step).await;
        let pause = TICK.max(upkeep.not_before.saturating_duration_since(Instant::now()));
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = registry.asked.notified() => {}
            () = stop.cancelled() => {}
        }
    }
}

/// Records that this process stops in order.
pub(in crate::relay) async fn stop(registry: &Registry, probe: &Shared) {
    let stopping = async {
        let session = probe.session().await?;
        replicas::stop(&session, &registry.instance).await?;
        // A job ends before it would read the rows.
        replicas::forget(&session).await
    };
    match tokio::time::timeout(LAST, stopping).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, "cannot record that this replica has stopped"),
        Err(_) => tracing::warn!(limit = ?LAST, "cannot record that this replica has stopped in time"),
    }
}

impl Upkeep<'_> {
    async fn step(&mut self) -> Result<(), Error> {
        let registry = self.registry;
        let session = self.probe.session().await?;
        // While it had no session, others may have taken this process for ended.
        let is_other = !Weak::ptr_eq(&self.session, &Arc::downgrade(&session));
        if self.written.is_some() && (is_other || self.read_at.is_none_or(|read| read.elapsed() >= MINUTE)) {
            self.read(&session).await?;
        }
        let wanted = registry.wanted(is_other || self.written.is_none());
        let mut now = registry.is_asked() || self.written.is_none();
        if !now && (is_other || registry.waits()) {
            let decided = replicas::decide(&session, self.own(), &wanted).await?;
            self.free = self.free.or_else(|| Some(Instant::now())).filter(|_| registry.may_take(&decided));
            now = registry.has_lost(&decided) || self.free.is_some_and(|since| since.elapsed() >= TICK);
        }
        let may = self.writes < FIRST || self.written_at.is_none_or(|at| at.elapsed() >= MINUTE);
        if now || (may && self.written.as_deref().is_none_or(|written| !WantedRelay::say_the_same(written, &wanted))) {
            self.write(&session, wanted).await?;
        }
        // Only now: if the write fails, claims are decided again by the next step.
        self.session = Arc::downgrade(&session);
        Ok(())
    }

    fn own(&self) -> Own<'_> {
        Own {
            instance: &self.registry.instance,
            id: self.replica,
            version: env!("CARGO_PKG_VERSION"),
            started_at: self.started_at.as_deref(),
        }
    }

    async fn write(&mut self, session: &Session, wanted: Vec<WantedRelay>) -> Result<(), Error> {
        let registered = replicas::register(session, self.own(), &wanted).await;
        match registered {
            Ok((started_at, relays)) => {
                self.registry.decided(&wanted, &relays);
                (self.started_at, self.written) = (Some(started_at), Some(wanted));
                (self.writes, self.written_at) = (self.writes.saturating_add(1), Some(Instant::now()));
                Ok(())
            }
            // Relays begin although the others cannot know of this process, where its row cannot be written for long.
            Err(error) => {
                if lasts(&error, &self.backoff) {
                    let decided = replicas::decide(session, self.own(), &wanted).await?;
                    self.registry.decided(&wanted, &decided);
                }
                Err(error)
            }
        }
    }

    /// Finds out whether this process's row is there, and takes care of those whose processes have ended.
    async fn read(&mut self, session: &Session) -> Result<(), Error> {
        let found = replicas::list(session, false).await?;
        let instance = &self.registry.instance;
        if !found.iter().any(|replica| replica.instance == *instance) {
            tracing::warn!(
                replica = self.replica,
                hint = "No action needed after an outage.",
                "the row of this replica was deleted, or marked as stopped: it is written again"
            );
            self.written = None;
        }
        let is_other = |replica: &&Replica| replica.live && replica.id == self.replica && replica.instance != *instance;
        match found.iter().find(is_other) {
            Some(other) if !self.shares_id => tracing::warn!(
                replica = self.replica,
                started_at = %other.started_at,
                hint = "Give each replica an id of its own: set another --replica-id, or take it out for the host name and process id.",
                "another live process has the id of this replica"
            ),
            _ => {}
        }
        self.shares_id = found.iter().any(|replica| is_other(&replica));
        let ended: Vec<&str> =
            found.iter().filter(|replica| !replica.live).map(|replica| replica.instance.as_str()).collect();
        if !ended.is_empty() {
            replicas::mark(session, &ended, self.seen).await?;
        }
        replicas::forget(session).await?;
        self.seen = Some(session.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?);
        self.read_at = Some(Instant::now());
        Ok(())
    }

    /// What follows from a step: a failure is logged once, and the step is repeated.
    async fn ended(&mut self, step: Result<(), Error>) {
        match step {
            Ok(()) => {
                if self.backoff.failures() > 0 {
                    tracing::info!("the row of this replica can be written again");
                }
                self.backoff = Backoff::new();
            }
            Err(error) => {
                if self.backoff.failures() == 0 {
                    tracing::warn!(%error, hint = error.fix(), "cannot write the row of this replica; relaying goes on");
                }
                if matches!(error, Error::Timeout(_)) {
                    self.probe.forget().await;
                }
                self.not_before = Instant::now() + pause(&mut self.backoff, fastrand::f64());
                if lasts(&error, &self.backoff) {
                    self.registry.unread(&Unready::from(&error));
                }
            }
        }
    }
}

/// How long to wait after a failure: no longer than between two steps, as the relays go on as soon as the database answers, and the
/// claims with them.
fn pause(backoff: &mut Backoff, random: f64) -> Duration {
    backoff.failed(random).min(TICK)
}

/// Whether an error is not expected to pass by itself.
fn lasts(error: &Error, backoff: &Backoff) -> bool {
    let passes = sqlstate::meaning(error).cure == Cure::Again && !matches!(error, Error::Answer { .. });
    !passes || backoff.failures() >= PASSING
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_after_a_long_outage_is_one_step() {
        let mut backoff = Backoff::new();
        let pauses: Vec<Duration> = (0..30).map(|_| pause(&mut backoff, 1.0)).collect();
        assert!(pauses[0] < TICK && pauses[29] == TICK, "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= TICK), "{pauses:?}");
    }
}
