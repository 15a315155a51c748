//! Due work: a desk for each relay of `[relay.source.pending]`.
//!
//! A desk looks what is due, claims as many rows as it can begin to send at once, sends them without any lock, and records
//! what became of each. A row that fails waits by itself and holds no other up. Replicas share the rows: each claims for
//! an instant under the lock of the relay's cursor. It naps until the next row is due, and no longer than an idle poll, so
//! that a row that is due earlier is seen at once and a clock that is set has no long effect.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use crate::cursor;
use crate::database::{Error, sqlstate};
use crate::pace::Pace;
use crate::position::Timestamp;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::queue::checked::Checked;
use crate::relay::queue::failure_tracker::Setbacks;
use crate::sink::{Class, Failure};
use crate::source::Pending;

mod claim;
mod drain;
mod look;
mod measure;
mod ready;
mod record;
mod renew;
mod send;
mod settle;
mod task;

pub(in crate::relay) use look::{backlog, statements};
pub(in crate::relay) use ready::due;

use claim::Claim;
use ready::Ready;
use task::Attempt;

/// After a claim that another replica stood before.
const BUSY: Duration = Duration::from_millis(3);
/// How long the end of one send waits for others'.
const TOGETHER: Duration = Duration::from_millis(2);

/// One relay's desk in this process.
struct Desk {
    engine: Arc<Engine>,
    config: Config,
    source: Pending,
    checked: Checked<Ready>,
    /// Rows on their way; each task answers what became of its rows.
    sending: JoinSet<Vec<Attempt>>,
    in_flight: usize,
    /// What is still to be recorded.
    unsettled: Vec<Attempt>,
    setbacks: Setbacks,
    /// Rows are claimed one by one, because one among several cannot be marked.
    narrow: bool,
    pace: Pace,
    sampled: Option<Instant>,
}

/// Runs the relay's desk until the engine stops and what it has begun to send has ended.
pub(in crate::relay) async fn run(engine: Arc<Engine>, config: Config, source: Pending) {
    let pace = Pace::new(config.poll.min, config.poll.max);
    let setbacks = Setbacks::new(Arc::clone(&engine), &config.name);
    let desk = Desk {
        engine,
        config,
        source,
        checked: Checked::default(),
        sending: JoinSet::new(),
        in_flight: 0,
        unsettled: Vec::new(),
        setbacks,
        narrow: false,
        pace,
        sampled: None,
    };
    desk.run().await;
}

impl Desk {
    async fn run(mut self) {
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
            self.wait(pause).await;
        }
        self.drain().await;
    }

    /// Waits for the pause, for something that was sent, or for the engine's end.
    async fn wait(&mut self, pause: Duration) {
        let stop = self.engine.stop.clone();
        // The claims of what is still to be recorded run out during a longer one.
        let pause = if self.unsettled.is_empty() { pause } else { pause.min(renew::renewal(&self.config)) };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
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

    fn ended(&mut self, done: Result<Vec<Attempt>, tokio::task::JoinError>) {
        match done {
            Ok(attempts) => {
                self.in_flight = self.in_flight.saturating_sub(attempts.len());
                self.unsettled.extend(attempts);
            }
            Err(error) => {
                // Its rows' claims run out by themselves.
                tracing::error!(cursor = self.config.name, %error, "sending panicked");
            }
        }
        if self.sending.is_empty() {
            self.in_flight = 0;
        }
    }

    /// One look, and what follows from it; how long to wait.
    async fn step(&mut self) -> Result<Duration, Error> {
        self.settle().await?;
        let checks = ready::ready(&self.engine, &self.config, &self.source);
        let ready = self.checked.ready(&self.engine, &self.config, &mut self.setbacks, checks).await?;
        let Some(ready) = ready else { return Ok(self.config.poll.max) };
        let now = Instant::now();
        // A process that runs once does not wait until a receiver is back.
        let given_up = self.engine.once().is_some() && self.setbacks.is_out() && self.in_flight == 0;
        if given_up && self.unsettled.is_empty() {
            self.engine.progress(&self.config.name, |progress| progress.done = true);
            return Ok(self.config.poll.max);
        }
        if self.setbacks.not_before > now {
            return Ok(self.setbacks.not_before - now);
        }
        let session = self.engine.probe.session().await?;
        let names = [ready.config.name.as_str()];
        let standings = cursor::standings(&session, &names).await?;
        let Some(standing) = standings.first() else {
            self.checked.repeat(); // its row was deleted: the checks create it again
            return Ok(self.config.poll.min);
        };
        ready.metrics.set_paused(standing.paused);
        let halted = standing.halted.as_deref() == Some(ready.seat.fingerprint.as_str());
        ready.metrics.set_halted(halted);
        let looked = look::look(&session, &ready, self.engine.once()).await?;
        self.sample(&ready, &session).await?;
        if self.checked.has_resumed(&self.engine, &self.config, halted) {
            return Ok(Duration::ZERO);
        }
        if standing.paused || halted {
            return Ok(self.config.poll.max);
        }
        let work = looked.due.is_some() || looked.waits || looked.expired || looked.redrive;
        let room = self.room(&ready);
        if !work || room == 0 {
            // What another process has under way is waited for: if it dies, the rows are due again.
            let idle = !work && !looked.under_way && self.in_flight == 0 && self.unsettled.is_empty();
            self.engine.progress(&self.config.name, |progress| progress.done = idle);
            let pause = self.pace.after(false);
            return Ok(looked.next.map_or(pause, |next| pause.min(next.since(looked.now))));
        }
        self.engine.progress(&self.config.name, |progress| progress.done = false);
        match claim::claim(&self.engine, &ready, &looked, if self.narrow { 1 } else { room }).await {
            Ok(Claim::Unmarkable(rows, key)) => {
                self.unmarked(&ready, &key).await;
                Ok(self.begin(&ready, Claim::Rows(rows)))
            }
            Ok(claimed) => Ok(self.begin(&ready, claimed)),
            // One row cannot be marked: claimed one by one, it stands alone, and is put off.
            Err(error) if settle::is_of_application(&error) && !self.narrow => {
                self.narrow = true;
                Ok(Duration::ZERO)
            }
            Err(error) if settle::is_of_application(&error) => {
                self.narrow = false;
                let (code, hint) = (sqlstate::word(&error), "See what a trigger or a constraint of the table says.");
                let failure = Failure::of(Class::Retry, &code, error.to_string(), hint);
                claim::put_off(&self.engine, &ready, &looked, &failure).await?;
                Ok(Duration::ZERO)
            }
            Err(error) => Err(error),
        }
    }

    /// Begins to send what was claimed; how long to wait before the next look.
    fn begin(&mut self, ready: &Arc<Ready>, claimed: Claim) -> Duration {
        let rows = match claimed {
            Claim::Busy => return BUSY.mul_f64(0.5 + fastrand::f64()),
            Claim::NotNow => return self.config.poll.max,
            Claim::Early(pause) => {
                ready.metrics.rate_limited(pause);
                self.setbacks.not_before = Instant::now() + pause;
                return pause;
            }
            Claim::Rows(rows) | Claim::Unmarkable(rows, _) => rows,
        };
        if rows.is_empty() {
            return self.pace.after(false);
        }
        self.pace.after(true);
        self.in_flight += rows.len();
        let groups =
            if ready.config.sink.one_by_one() { rows.into_iter().map(|row| vec![row]).collect() } else { vec![rows] };
        for group in groups {
            self.sending.spawn(send::send(Arc::clone(&self.engine), Arc::clone(ready), group));
        }
        Duration::ZERO
    }

    /// How many rows may be begun now. A receiver that answers one by one gets some at the same time; others get one batch.
    fn room(&self, ready: &Ready) -> usize {
        let most = match (ready.config.sink.one_by_one(), ready.sink.min_interval()) {
            (_, Some(_)) => 1,
            (true, None) => {
                ready.pending.in_flight.min(ready.pending.limit).min(ready.sink.at_once().unwrap_or(usize::MAX))
            }
            (false, None) if self.in_flight > 0 => 0,
            (false, None) => ready.pending.limit,
        };
        // While the receiver is out, one row tries it.
        let most = if self.setbacks.is_out() { most.min(1) } else { most };
        most.saturating_sub(self.in_flight)
    }
}

/// What the database's clock says of a process that runs once.
pub(in crate::relay) type Once = Option<Timestamp>;
