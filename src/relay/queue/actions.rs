//! Scheduled actions: a runner for each relay of `[relay.source.schedule]`.
//!
//! A runner makes the occurrences of schedules that are due, claims them, carries each out without any lock, says again and
//! again that it is at work, and records what became of it. Replicas share schedules and actions: schedules row by row,
//! actions by claims that are made for an instant under the lock of the relay's cursor. Who is gone stops saying that he is
//! at work, and what he had is taken up as its schedule's `on_interrupted` says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinSet};

use crate::cursor::{self, actions, schedules};
use crate::database::{Error, Session};
use crate::pace::Pace;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::drain::Drain;
use crate::relay::engine::intervals::SAMPLE;
use crate::relay::queue::checked::Checked;
use crate::relay::queue::failure_tracker::Setbacks;
use crate::source::Schedules;

mod carry;
mod choose;
mod claim;
mod keep;
mod look;
mod plan;
mod ready;
mod settle;
mod task;
mod watch;

use carry::Errand;
use claim::Claim;
use keep::Keeper;
use ready::Ready;
use task::Attempt;
use watch::Watch;

pub(in crate::relay) use look::{backlog, findings};

/// After a claim that another replica stood before.
const BUSY: Duration = Duration::from_millis(3);
/// A schedule that was written or edited is computed this soon, at the latest.
const EDITED: Duration = Duration::from_millis(250);

/// One relay's runner in this process.
struct Runner {
    engine: Arc<Engine>,
    config: Config,
    source: Schedules,
    checked: Checked<Ready>,
    watch: Watch,
    /// When schedules were last looked for whose relay has never been started.
    strays: Option<Instant>,
    keeper: Arc<Keeper>,
    running: JoinSet<Attempt>,
    /// What is still to be recorded.
    unsettled: Vec<Attempt>,
    setbacks: Setbacks,
    pace: Pace,
    sampled: Option<Instant>,
    /// Behind which tenant to look next.
    after: String,
}

/// Runs the relay's schedules until the engine stops and what has begun has ended.
pub(in crate::relay) async fn run(engine: Arc<Engine>, config: Config, source: Schedules) {
    let keeper = Arc::new(Keeper::default());
    let runner = Runner {
        pace: Pace::new(config.poll.min, config.poll.max.min(EDITED)),
        setbacks: Setbacks::new(Arc::clone(&engine), &config.name),
        keeper: Arc::clone(&keeper),
        engine: Arc::clone(&engine),
        config,
        source,
        checked: Checked::default(),
        watch: Watch::default(),
        strays: None,
        running: JoinSet::new(),
        unsettled: Vec::new(),
        sampled: None,
        after: String::new(),
    };
    tokio::select! {
        () = runner.run() => {}
        () = keeper.run(&engine) => {}
    }
}

impl Runner {
    async fn run(mut self) {
        let stop = self.engine.stop.clone();
        while !self.engine.ends(&self.config.name) {
            self.engine.heartbeat.beat();
            let pause = match self.step().await {
                Ok(pause) => pause,
                Err(error) => {
                    let after = self.setbacks.failed(&error, self.checked.fingerprint().as_deref()).await;
                    if after.recheck {
                        self.checked.repeat();
                    }
                    after.pause
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wait(pause) => {}
            }
        }
        self.unwatch().await;
        self.drain().await;
    }

    /// The schedules are not watched from here on. What cannot be recorded is known by the process's sessions.
    async fn unwatch(&mut self) {
        let ended = self.watch.end(&self.engine);
        match tokio::time::timeout(self.engine.call_deadline, ended).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(cursor = self.config.name, %error, "cannot record that schedules are not watched");
            }
            Err(_) => tracing::warn!(cursor = self.config.name, "cannot record in time that schedules are not watched"),
        }
    }

    /// Waits for the pause, or for an action's end.
    async fn wait(&mut self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Some(done) = self.running.join_next() => self.ended(done),
        }
        while let Some(done) = self.running.try_join_next() {
            self.ended(done);
        }
    }

    fn ended(&mut self, done: Result<Attempt, JoinError>) {
        match done {
            Ok(attempt) => self.unsettled.push(attempt),
            // Nobody keeps its claim any more: it runs out.
            Err(error) => tracing::error!(cursor = self.config.name, %error, "an action panicked"),
        }
    }

    /// What has begun ends, or is cut with the grace period; what became of it is recorded as it comes.
    async fn drain(&mut self) {
        let mut drain = Drain::new(self.config.turn.lock_kill());
        while !self.running.is_empty() || !self.unsettled.is_empty() {
            if let Err(error) = self.settle().await {
                self.setbacks.cannot_record(&error);
            }
            let over = drain.is_over(&self.engine);
            if self.running.is_empty() && (over || self.unsettled.is_empty()) {
                break;
            }
            self.wait(drain.pause()).await;
        }
        let unrecorded = self.unsettled.iter().filter(|attempt| attempt.is_acknowledged()).count();
        self.engine.unrecorded.lost(&self.config.name, unrecorded);
    }

    /// One look, and what follows from it; how long to wait.
    async fn step(&mut self) -> Result<Duration, Error> {
        self.settle().await?;
        let checks = ready::ready(&self.engine, &self.config, &self.source);
        let ready = self.checked.ready(&self.engine, &self.config, &mut self.setbacks, checks).await?;
        let Some(ready) = ready else {
            if self.watch.is_broken() {
                self.unwatch().await;
            }
            return Ok(self.config.poll.max);
        };
        let (more, now, next) = self.plan(&ready).await?;
        let session = self.engine.probe.session().await?;
        let standings = cursor::standings(&session, &[&self.config.name]).await?;
        let Some(standing) = standings.first() else {
            self.checked.repeat(); // its row was deleted: the checks create it again
            return Ok(self.config.poll.min);
        };
        ready.metrics.set_paused(standing.paused);
        let halted = standing.halted.as_deref() == Some(ready.seat.fingerprint.as_str());
        ready.metrics.set_halted(halted);
        self.sample(&ready, &session).await?;
        if self.checked.has_resumed(&self.engine, &self.config, halted) {
            return Ok(Duration::ZERO);
        }
        if standing.paused || halted {
            return Ok(self.config.poll.max);
        }
        let looked = actions::look(&session, &self.config.name).await?;
        let room = self.room(&ready);
        let due = looked.first.is_some_and(|first| first <= looked.now);
        if !due && !looked.interrupted || room == 0 {
            let idle = self.running.is_empty() && self.unsettled.is_empty();
            let done = idle && !more && !due && !looked.running;
            self.engine.progress(&self.config.name, |progress| progress.done = done);
            let pause = if more { Duration::ZERO } else { self.pace.after(false) };
            let soonest =
                [next.map(|next| next.since(now)), looked.first.filter(|_| !due).map(|first| first.since(looked.now))];
            return Ok(soonest.into_iter().flatten().fold(pause, Duration::min));
        }
        self.engine.progress(&self.config.name, |progress| progress.done = false);
        if self.setbacks.not_before > Instant::now() {
            return Ok(self.setbacks.not_before - Instant::now());
        }
        let claimed = self.claim(&ready, looked.interrupted, room).await?;
        Ok(self.begin(&ready, claimed))
    }

    /// Begins what was claimed; how long to wait before the next look.
    fn begin(&mut self, ready: &Arc<Ready>, claimed: Claim) -> Duration {
        let tasks = match claimed {
            Claim::Busy => return BUSY.mul_f64(0.5 + fastrand::f64()),
            Claim::NotNow => return self.config.poll.max,
            Claim::Early(pause) => {
                ready.metrics.rate_limited(pause);
                return pause.min(EDITED);
            }
            Claim::Actions(tasks) => tasks,
        };
        if tasks.is_empty() {
            return self.pace.after(false);
        }
        self.pace.after(true);
        for task in tasks {
            let errand = Errand { engine: Arc::clone(&self.engine), ready: Arc::clone(ready) };
            self.running.spawn(errand.run(task));
        }
        Duration::ZERO
    }

    /// How many actions may be begun now.
    fn room(&self, ready: &Ready) -> usize {
        let most = match ready.sink.min_interval() {
            Some(_) => 1,
            None => ready.schedules.in_flight.min(ready.sink.at_once().unwrap_or(usize::MAX)),
        };
        most.saturating_sub(self.running.len() + self.unsettled.len())
    }

    async fn sample(&mut self, ready: &Ready, session: &Session) -> Result<(), Error> {
        if self.sampled.is_some_and(|sampled| sampled.elapsed() < SAMPLE) {
            return Ok(());
        }
        self.sampled = Some(Instant::now());
        let (lag, waiting) = backlog(session, &self.config.name).await?;
        let counted = schedules::count(session, &self.config.name).await?;
        ready.metrics.set_lag(lag.age, lag.rows.unsigned_abs(), lag.observed_at);
        ready.counters.set(lag.rows.unsigned_abs(), counted.running.unsigned_abs(), counted.problems.unsigned_abs());
        ready.counters.set_waiting(waiting.max(Duration::from_secs_f64(counted.waiting.max(0.0))));
        Ok(())
    }
}
