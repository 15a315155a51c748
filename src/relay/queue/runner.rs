//! The machine of relays that send their jobs individually, whatever the kind of work.
//!
//! It polls what is due, claims as many jobs as it can begin to send immediately, sends them without any lock, and records what
//! became of each. A job that fails waits by itself and holds up no other. Replicas share the jobs: each claims for an instant
//! under the lock of the relay's cursor. Between two polls it waits until the next job is due, and no longer than an idle poll,
//! so that a job that becomes due earlier is seen soon and a clock that is set has no long effect.
//!
//! Promise: an outcome is kept, and its claim renewed, until it is recorded, is given up after a long time, or its claim is lost;
//! the last two are logged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cursor;
use crate::database::{Error, Session};
use crate::pace::Pace;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::drain::Drain;
use crate::relay::engine::intervals::SAMPLE;
use crate::relay::queue::batch_size::BatchSize;
use crate::relay::queue::checked::{Checked, Seated as _};
use crate::relay::queue::failure_tracker::FailureTracker;
use crate::relay::queue::work::{AttemptOf, Begun, Context, Poll, Prepared as _, Renewal, Work};

mod in_flight;
mod lock_and_claim;
mod unrecorded;

pub(super) use unrecorded::log_given_up;

use in_flight::InFlight;

/// After a claim while another replica had the lock.
const BUSY: Duration = Duration::from_millis(3);

/// The shortest pause while a claim waits for the end of one that was not answered: that may take as long as a standby is away.
const STALLED: Duration = Duration::from_millis(50);

/// One relay's runner in this process.
struct Runner<W: Work> {
    work: W,
    context: Context<W::Prepared>,
    /// Jobs on their way.
    sending: InFlight<AttemptOf<W>>,
    /// What is still to be recorded.
    unrecorded: Vec<AttemptOf<W>>,
    /// Jobs of a claim whose commit was not answered, while that may still take place.
    unanswered: Vec<AttemptOf<W>>,
    /// What was found to be due while no more might be begun, and when.
    found: Option<(Poll<W::Found>, Instant)>,
    /// How many of that one transaction records at most.
    size: BatchSize,
    pace: Pace,
    sampled: Option<Instant>,
}

/// Runs the relay until the engine stops and what it has begun to send has ended.
pub(super) async fn run<W: Work>(engine: Arc<Engine>, config: Config, work: W) {
    let background = work.background(Arc::clone(&engine));
    let runner = Runner {
        sending: InFlight::new(&config.name),
        pace: Pace::new(config.poll.min, work.longest_pause(&config)),
        context: Context {
            failures: FailureTracker::new(Arc::clone(&engine), &config.name),
            checked: Checked::default(),
            engine,
            config,
        },
        work,
        unrecorded: Vec::new(),
        unanswered: Vec::new(),
        found: None,
        size: BatchSize::default(),
        sampled: None,
    };
    tokio::select! {
        () = runner.run() => {}
        () = background => {}
    }
}

impl<W: Work> Runner<W> {
    async fn run(mut self) {
        let stop = self.context.engine.stop.clone();
        while !self.context.engine.ends(&self.context.config.name) {
            self.context.engine.heartbeat.beat();
            let pause = match self.step().await {
                Ok(pause) => pause,
                Err(error) => self.failed(&error).await,
            };
            // The claims of what is still to be recorded would expire during a longer one.
            let pause = if self.unrecorded.is_empty() { pause } else { pause.min(self.renewal_pause()) };
            // What was claimed without an answer is given back before others take it for interrupted.
            let pause = if self.unanswered.is_empty() { pause } else { pause.min(self.context.config.poll.max) };
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wait(pause) => {}
            }
        }
        self.work.stopped(&self.context).await;
        self.drain().await;
    }

    /// The database refused; how long to wait.
    async fn failed(&mut self, error: &Error) -> Duration {
        let Context { checked, failures, .. } = &mut self.context;
        let after = failures.failed(error, checked.fingerprint().as_deref()).await;
        if after.recheck {
            checked.repeat();
        }
        after.pause
    }

    /// Waits for the pause, or for something that was sent.
    async fn wait(&mut self, pause: Duration) {
        for _ in 0..self.sending.wait(pause, &mut self.unrecorded).await {
            self.context.failures.panicked().await;
        }
    }

    /// What has begun ends, or is cut with the grace period; what became of it is recorded as it comes. What cannot be recorded
    /// is logged.
    async fn drain(&mut self) {
        let mut drain = Drain::new(self.context.config.turn.lock_kill());
        while !self.is_idle() {
            if let Err(error) = self.record().await {
                self.context.failures.cannot_record(&error);
            }
            let over = drain.is_over(&self.context.engine);
            if self.sending.is_empty() && (over || self.is_idle()) {
                break;
            }
            self.wait(drain.pause()).await;
        }
        self.unrecorded.append(&mut self.unanswered);
        self.lose(self.unrecorded.iter().filter(|attempt| attempt.is_acknowledged()).count());
        if let Some(prepared) = self.context.checked.last()
            && let Err(error) = self.give_up(&prepared, true).await
        {
            self.context.failures.cannot_record(&error);
        }
    }

    /// One poll, and what follows from it; how long to wait.
    async fn step(&mut self) -> Result<Duration, Error> {
        self.record().await?;
        let Some(prepared) = self.prepared().await? else { return Ok(self.context.config.poll.max) };
        let (engine, name) = (Arc::clone(&self.context.engine), self.context.config.name.clone());
        // A process that runs once does not wait until a receiver is back.
        if engine.once().is_some() && self.context.failures.is_out() && self.is_idle() {
            engine.progress(&name, |progress| progress.done = true);
            return Ok(self.context.config.poll.max);
        }
        let session = engine.probe.session().await?;
        if !self.work.holds(&prepared, &session).await? {
            self.context.checked.repeat();
            return Ok(Duration::ZERO);
        }
        let room = self.room(&prepared);
        if let Some(poll) = self.found_before(room) {
            return self.begin(&prepared, &poll, room).await;
        }
        // Also of a relay that is paused or halted: occurrences of its schedules are made all the same.
        let poll = self.work.poll(&self.context, &prepared, &session).await?;
        let standings = cursor::standings(&session, &[&name]).await?;
        let Some(standing) = standings.first() else {
            self.context.checked.repeat(); // its row was deleted: the checks create it again
            return Ok(self.context.config.poll.min);
        };
        prepared.metrics().set_paused(standing.paused);
        let halted = prepared.seat().stands_still(standing.halted.as_ref());
        prepared.metrics().set_halted(halted);
        let done = !poll.due && !poll.under_way && self.is_idle();
        let failing = standing.state == "backing_off";
        self.context.failures.is_failing(failing || standing.halted.is_some() && !halted);
        self.sample(&prepared, &session, done && failing).await?;
        if self.context.checked.has_resumed(&engine, &self.context.config, halted) {
            return Ok(Duration::ZERO);
        }
        if standing.paused || halted {
            return Ok(self.context.config.poll.max);
        }
        // What another process has under way is waited for: if it dies, it is for this one to see to.
        engine.progress(&name, |progress| progress.done = done);
        if !poll.due || room == 0 {
            let pause = self.pace.after(false);
            let pause = poll.next_in.map_or(pause, |next| pause.min(next));
            self.keep_found(poll);
            return Ok(pause);
        }
        if self.waits_for_claim() {
            return Ok(self.context.config.poll.min.max(STALLED));
        }
        let now = Instant::now();
        if self.context.failures.not_before > now {
            return Ok((self.context.failures.not_before - now).min(self.work.longest_pause(&self.context.config)));
        }
        self.begin(&prepared, &poll, room).await
    }

    /// The relay, once its checks have passed.
    async fn prepared(&mut self) -> Result<Option<Arc<W::Prepared>>, Error> {
        let Context { engine, config, checked, failures } = &mut self.context;
        let checks = self.work.prepare(engine, config);
        let prepared = checked.ready(engine, config, failures, checks).await?;
        if prepared.is_none() {
            self.work.unprepared(&self.context).await;
        }
        Ok(prepared)
    }

    /// Claims jobs and begins to send them; how long to wait before the next poll.
    async fn begin(
        &mut self,
        prepared: &Arc<W::Prepared>,
        poll: &Poll<W::Found>,
        room: usize,
    ) -> Result<Duration, Error> {
        let claimed = match self.claim(prepared, &poll.detail, room).await {
            Ok(Ok(claimed)) => claimed,
            Ok(Err(refusal)) => return Ok(self.not_claimed(prepared, refusal)),
            // It says nothing of what was to be claimed.
            Err(error) if self.waits_for_claim() => return Err(error),
            Err(error) => {
                self.work.claim_refused(&self.context, prepared, &poll.detail, error).await?;
                return Ok(Duration::ZERO);
            }
        };
        let Begun { jobs, progressed } = self.work.claimed(&mut self.context, prepared, claimed).await;
        if jobs.is_empty() {
            return Ok(self.pace.after(progressed));
        }
        self.pace.after(true);
        if let Some(interval) = prepared.sink().min_interval().filter(|_| self.work.has_lanes()) {
            self.context.failures.not_before = self.context.failures.not_before.max(Instant::now() + interval);
        }
        for group in W::groups(prepared, jobs) {
            let jobs = group.len();
            self.sending.spawn(jobs, W::send(Arc::clone(&self.context.engine), Arc::clone(prepared), group));
        }
        Ok(Duration::ZERO)
    }

    /// How many jobs may be begun now.
    fn room(&self, prepared: &W::Prepared) -> usize {
        let in_flight = self.sending.jobs();
        let sink = prepared.sink();
        let rate = sink.min_interval();
        let most = match rate {
            Some(_) if !self.work.has_lanes() => 1,
            _ => self.work.room(prepared, in_flight).min(sink.at_once().unwrap_or(usize::MAX)),
        };
        // While the receiver is out, one job tries it.
        let most = if self.context.failures.is_out() { most.min(1) } else { most };
        let unrecorded = if W::UNRECORDED_TAKE_ROOM { self.unrecorded.len() } else { 0 };
        // With a rate, each is claimed when it may begin.
        most.saturating_sub(in_flight + unrecorded).min(if rate.is_some() { 1 } else { usize::MAX })
    }

    /// Measures what waits, from time to time; `ends_failure` when a failure that was reported ends if that is nothing.
    async fn sample(&mut self, prepared: &W::Prepared, session: &Session, ends_failure: bool) -> Result<(), Error> {
        if self.sampled.is_some_and(|sampled| sampled.elapsed() < SAMPLE) {
            return Ok(());
        }
        self.sampled = Some(Instant::now());
        let waiting = self.work.sample(prepared, session).await?;
        if ends_failure && waiting == 0 {
            self.context.failures.nothing_waits(session, W::LINGER).await?;
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.sending.is_empty() && self.unrecorded.is_empty() && self.unanswered.is_empty()
    }

    /// So many outcomes that were acknowledged will never be recorded.
    fn lose(&self, outcomes: usize) {
        self.context.engine.unrecorded.lost(&self.context.config.name, outcomes);
    }

    /// How long it may take until outcomes are recorded, or their claims renewed, once more. A claim's time is enough for a renewal that is
    /// just not due yet, two records that are cut, which take 2/8 of it each, what is recorded before each of them, and a pause.
    fn renewal_pause(&self) -> Duration {
        match W::renewal(&self.context.config) {
            Renewal::WhileUnrecorded(lease) => lease / 8,
            Renewal::Always => Duration::MAX,
        }
    }
}
