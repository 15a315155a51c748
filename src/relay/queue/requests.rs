//! Requests that are sent once: a clerk for each relay of `[relay.source.requests]`.
//!
//! A clerk claims requests of the ledger that are due, renders and pins what is sent before the first try, sends each
//! without any lock, and records what became of it. It finds requests that another replica had when it ended, and does with
//! them what the relay's policy for unknown outcomes says. Replicas share the requests: each claims for an instant under the
//! lock of the relay's cursor.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinSet};

use crate::cursor;
use crate::database::Error;
use crate::pace::Pace;
use crate::position::Timestamp;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::drain::Drain;
use crate::relay::queue::checked::Checked;
use crate::relay::queue::failure_tracker::Setbacks;
use crate::source::Requests;

mod claim;
mod look;
mod ready;
mod send;
mod settle;
mod task;

pub(in crate::relay) use look::backlog;
pub(in crate::relay) use ready::{findings, orphans, statements};

use claim::Claim;
use ready::Ready;
use task::Attempt;

/// After a claim that another replica stood before.
const BUSY: Duration = Duration::from_millis(3);
/// How long the end of one send waits for others'.
const TOGETHER: Duration = Duration::from_millis(2);

/// One relay's clerk in this process.
struct Clerk {
    engine: Arc<Engine>,
    config: Config,
    source: Requests,
    checked: Checked<Ready>,
    sending: JoinSet<Attempt>,
    /// What is still to be recorded.
    unsettled: Vec<Attempt>,
    setbacks: Setbacks,
    pace: Pace,
    sampled: Option<Instant>,
    /// The database's clock at the last look.
    now: Timestamp,
}

/// Runs the relay's clerk until the engine stops and what it has begun to send has ended.
pub(in crate::relay) async fn run(engine: Arc<Engine>, config: Config, source: Requests) {
    let clerk = Clerk {
        pace: Pace::new(config.poll.min, config.poll.max),
        setbacks: Setbacks::new(Arc::clone(&engine), &config.name),
        engine,
        config,
        source,
        checked: Checked::default(),
        sending: JoinSet::new(),
        unsettled: Vec::new(),
        sampled: None,
        now: Timestamp::from_pg_micros(0),
    };
    clerk.run().await;
}

impl Clerk {
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
        self.drain().await;
    }

    /// Waits for the pause, or for something that was sent.
    async fn wait(&mut self, pause: Duration) {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Some(done) = self.sending.join_next() => {
                self.ended(done);
                // Others that were begun together end about now: one settlement and one claim for all of them.
                if !self.sending.is_empty() {
                    tokio::time::sleep(TOGETHER).await;
                }
            }
        }
        while let Some(done) = self.sending.try_join_next() {
            self.ended(done);
        }
    }

    fn ended(&mut self, done: Result<Attempt, JoinError>) {
        match done {
            Ok(attempt) => self.unsettled.push(attempt),
            // Its claim runs out by itself.
            Err(error) => tracing::error!(cursor = self.config.name, %error, "sending panicked"),
        }
    }

    /// What has begun ends, or is cut with the grace period; what became of it is recorded as it comes.
    async fn drain(&mut self) {
        let mut drain = Drain::new(self.config.turn.lock_kill());
        while !self.sending.is_empty() || !self.unsettled.is_empty() {
            if let Err(error) = self.settle().await {
                self.setbacks.cannot_record(&error);
            }
            let over = drain.is_over(&self.engine);
            if self.sending.is_empty() && over {
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
        let Some(ready) = ready else { return Ok(self.config.poll.max) };
        let idle = self.sending.is_empty() && self.unsettled.is_empty();
        // A process that runs once does not wait until a receiver is back.
        if self.engine.once().is_some() && self.setbacks.is_out() && idle {
            self.engine.progress(&self.config.name, |progress| progress.done = true);
            return Ok(self.config.poll.max);
        }
        let now = Instant::now();
        if self.setbacks.not_before > now {
            return Ok(self.setbacks.not_before - now);
        }
        let session = self.engine.probe.session().await?;
        let standings = cursor::standings(&session, &[&self.config.name]).await?;
        let Some(standing) = standings.first() else {
            self.checked.repeat(); // its row was deleted: the checks create it again
            return Ok(self.config.poll.min);
        };
        ready.metrics.set_paused(standing.paused);
        let halted = standing.halted.as_deref() == Some(ready.seat.fingerprint.as_str());
        ready.metrics.set_halted(halted);
        let looked = self.look(&session, &ready).await?;
        self.sample(&ready, &session).await?;
        if self.checked.has_resumed(&self.engine, &self.config, halted) {
            return Ok(Duration::ZERO);
        }
        if standing.paused || halted {
            return Ok(self.config.poll.max);
        }
        let work = looked.due.is_some() || looked.interrupted;
        let room = self.room(&ready);
        if !work || room == 0 {
            // What another process has under way is waited for: if it dies, it is for this one to see to.
            let done = !work && !looked.under_way && idle;
            self.engine.progress(&self.config.name, |progress| progress.done = done);
            let pause = self.pace.after(false);
            return Ok(looked.next.map_or(pause, |next| pause.min(next.since(looked.now))));
        }
        self.engine.progress(&self.config.name, |progress| progress.done = false);
        let claimed = claim::claim(&self.engine, &ready, looked.interrupted, room).await?;
        Ok(self.begin(&ready, claimed))
    }

    /// Begins to send what was claimed; how long to wait before the next look.
    fn begin(&mut self, ready: &Arc<Ready>, claimed: Claim) -> Duration {
        let (tasks, given_up, interrupted) = match claimed {
            Claim::Busy => return BUSY.mul_f64(0.5 + fastrand::f64()),
            Claim::NotNow => return self.config.poll.max,
            Claim::Early(pause) => {
                ready.metrics.rate_limited(pause);
                self.setbacks.not_before = Instant::now() + pause;
                return pause;
            }
            Claim::Requests { tasks, given_up, interrupted } => (tasks, given_up, interrupted),
        };
        ready.metrics.abandoned(u64::try_from(interrupted).unwrap_or(0));
        self.engine.progress(&self.config.name, |progress| progress.failed += given_up);
        if tasks.is_empty() {
            return self.pace.after(given_up > 0);
        }
        self.pace.after(true);
        for task in tasks {
            self.sending.spawn(send::send(Arc::clone(&self.engine), Arc::clone(ready), task));
        }
        Duration::ZERO
    }

    /// How many requests may be begun now.
    fn room(&self, ready: &Ready) -> usize {
        let most = match ready.sink.min_interval() {
            Some(_) => 1,
            None => ready.requests.in_flight.min(ready.requests.limit).min(ready.sink.at_once().unwrap_or(usize::MAX)),
        };
        // While the receiver is out, one request tries it.
        let most = if self.setbacks.is_out() { most.min(1) } else { most };
        most.saturating_sub(self.sending.len() + self.unsettled.len())
    }
}
