//! A kind of work that a queue runner does: due rows, requests, scheduled actions.
//!
//! The runner is the same for all of them. What they differ in on purpose is named here:
//!
//! - how claims are kept alive ([`Work::renewal`]),
//! - whether a claim must be on the disk before anything is sent ([`Work::is_durable`]),
//! - which jobs are sent together ([`Work::groups`]),
//! - whether an outcome is reported as soon as it is known ([`Work::ended`]) or once it is recorded ([`Work::recorded`]),
//! - what becomes of an outcome that the server refuses ([`Work::refused`]) or that cannot be recorded for long
//!   ([`Work::give_up`]),
//! - what a claim does that the server refuses ([`Work::claim_refused`]).

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cursor::LockedCursor;
use crate::database::{Error, Session};
use crate::metrics::CursorMetrics;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::queue::checked::{Checked, Seated};
use crate::relay::queue::failure_tracker::FailureTracker;
use crate::sink::Sink;

mod answers;
mod attempt;

pub(super) use answers::{Begun, Poll, Recorded, Renewal, Renewed};
pub(super) use attempt::Attempt;

/// A relay that has passed its checks, as the runner sees it.
pub(super) trait Prepared: Seated + Send + Sync + 'static {
    /// Where its jobs go.
    fn sink(&self) -> &Sink;
    /// What it counts.
    fn metrics(&self) -> &CursorMetrics;
}

/// A claimed job.
pub(super) trait Job: Send + Sync + 'static {
    /// What people know it by.
    fn id(&self) -> String;
    /// When it was claimed, by this process's clock.
    fn claimed_at(&self) -> Instant;
}

/// What became of a job.
pub(super) trait Outcome: Send + Sync + 'static {
    /// Whether it was done: forgetting that would do it again.
    fn is_acknowledged(&self) -> bool;

    /// Whether anything of the job was run: of one that was not, nothing is lost with its claim.
    fn was_begun(&self) -> bool {
        true
    }
}

/// An attempt of this kind of work.
pub(super) type AttemptOf<W> = Attempt<<W as Work>::Job, <W as Work>::Outcome>;

/// What the runner and its kind of work share.
pub(super) struct Context<P> {
    pub(super) engine: Arc<Engine>,
    pub(super) config: Config,
    pub(super) checked: Checked<P>,
    pub(super) failures: FailureTracker,
}

/// A claim in progress: the relay's cursor is locked.
pub(super) struct Claim<'a, W: Work> {
    pub(super) engine: &'a Engine,
    pub(super) prepared: &'a W::Prepared,
    pub(super) cursor: &'a LockedCursor,
    pub(super) found: &'a W::Found,
    /// The most jobs.
    pub(super) room: usize,
    /// The receiver is out: one job tries it.
    pub(super) probes: bool,
}

/// A kind of work. See the module.
pub(super) trait Work: Sized + Send + Sync + 'static {
    /// What its checks give.
    type Prepared: Prepared;
    /// What a poll tells the claim.
    type Found: Send + Sync;
    /// What the claim's transaction came to.
    type Claimed: Send;
    /// What is claimed.
    type Job: Job;
    /// What becomes of it.
    type Outcome: Outcome;

    /// The most attempts that one transaction records.
    const TOGETHER: usize = usize::MAX;
    /// For how long a failure that was reported stays once nothing waits: what has failed for good may be listed nowhere else.
    const LINGER: Duration = Duration::ZERO;

    /// Whether an outcome that cannot be recorded takes the place of a job on its way. Otherwise those that wait for long hold up
    /// no other.
    const UNRECORDED_TAKE_ROOM: bool = true;

    /// The longest pause between two polls.
    fn longest_pause(&self, config: &Config) -> Duration {
        config.poll.max
    }

    /// Runs beside the runner, for as long as it runs.
    fn background(&self, _engine: Arc<Engine>) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }

    /// Runs the checks.
    fn prepare(
        &self,
        engine: &Arc<Engine>,
        config: &Config,
    ) -> impl Future<Output = Result<Result<Self::Prepared, Unready>, Error>> + Send;

    /// Its checks fail.
    fn unprepared(&mut self, _context: &Context<Self::Prepared>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Nothing more is begun.
    fn stopped(&mut self, _context: &Context<Self::Prepared>) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Whether what is read is still as the checks have found it; otherwise they run again.
    fn holds(
        &mut self,
        _prepared: &Self::Prepared,
        _session: &Session,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        std::future::ready(Ok(true))
    }

    /// Finds out what there is to do; locks nothing that a claim needs.
    fn poll(
        &mut self,
        context: &Context<Self::Prepared>,
        prepared: &Self::Prepared,
        session: &Arc<Session>,
    ) -> impl Future<Output = Result<Poll<Self::Found>, Error>> + Send;

    /// Measures what waits: how many jobs are due and not done, those included that are retried later.
    fn sample(&self, prepared: &Self::Prepared, session: &Session) -> impl Future<Output = Result<u64, Error>> + Send;

    /// Whether jobs are sent in lanes. A rate then bounds when they begin; without lanes it also has one at a time on its way.
    fn has_lanes(&self) -> bool {
        false
    }

    /// How many jobs may be on their way at the same time, of which some are, when the sink's rate allows more than one.
    fn room(&self, prepared: &Self::Prepared, in_flight: usize) -> usize;

    /// Claims jobs in the cursor's transaction.
    fn claim(&mut self, claim: Claim<'_, Self>) -> impl Future<Output = Result<Self::Claimed, Error>> + Send;

    /// Whether the claim has changed nothing, so that it need not be committed.
    fn is_in_vain(claimed: &Self::Claimed) -> bool;

    /// Whether the claim must be on the disk before anything is sent: after a crash of the database, what was sent could not be
    /// told from what was not.
    fn is_durable(prepared: &Self::Prepared) -> bool;

    /// The claim is committed: what is to be sent.
    fn claimed(
        &mut self,
        context: &mut Context<Self::Prepared>,
        prepared: &Self::Prepared,
        claimed: Self::Claimed,
    ) -> impl Future<Output = Begun<Self::Job>> + Send;

    /// The claim failed; the error, unless the next claim can do better.
    fn claim_refused(
        &mut self,
        _context: &Context<Self::Prepared>,
        _prepared: &Self::Prepared,
        _found: &Self::Found,
        error: Error,
    ) -> impl Future<Output = Result<(), Error>> + Send {
        std::future::ready(Err(error))
    }

    /// The commit of a claim was not answered, and nothing of it is begun: attempts that give back what it may have claimed.
    fn unanswered(&mut self, claimed: Self::Claimed) -> Vec<AttemptOf<Self>>;

    /// Which jobs are sent together, by one call of [`Self::send`].
    fn groups(_prepared: &Self::Prepared, jobs: Vec<Self::Job>) -> Vec<Vec<Self::Job>> {
        jobs.into_iter().map(|job| vec![job]).collect()
    }

    /// Sends jobs without any lock, within their deadline; what became of each.
    fn send(
        engine: Arc<Engine>,
        prepared: Arc<Self::Prepared>,
        jobs: Vec<Self::Job>,
    ) -> impl Future<Output = Vec<AttemptOf<Self>>> + Send + 'static;

    /// An attempt has ended, and is to be recorded: called once, before.
    fn ended(
        &mut self,
        _context: &mut Context<Self::Prepared>,
        _prepared: &Self::Prepared,
        _attempt: &mut AttemptOf<Self>,
    ) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Records attempts in one transaction; the outcome of each. One whose claim has another token records nothing.
    fn record(
        &self,
        context: &Context<Self::Prepared>,
        prepared: &Self::Prepared,
        attempts: &[AttemptOf<Self>],
    ) -> impl Future<Output = Result<Vec<Recorded>, Error>> + Send;

    /// An attempt is recorded: [`Recorded::Done`] or [`Recorded::Ineffective`].
    fn recorded(
        &mut self,
        _context: &mut Context<Self::Prepared>,
        _prepared: &Self::Prepared,
        _attempt: &AttemptOf<Self>,
        _recorded: Recorded,
    ) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// The server refuses to record this attempt for what its row or its table is. Whether it is done with; otherwise it is
    /// kept.
    fn refused(
        &mut self,
        _context: &Context<Self::Prepared>,
        _prepared: &Self::Prepared,
        _attempt: &AttemptOf<Self>,
        _error: &Error,
    ) -> impl Future<Output = Result<bool, Error>> + Send {
        std::future::ready(Ok(false))
    }

    /// See [`Renewal`].
    fn renewal(config: &Config) -> Renewal;

    /// Renews claims, of [`Renewal::WhileUnrecorded`].
    fn renew(
        &self,
        _context: &Context<Self::Prepared>,
        attempts: &[AttemptOf<Self>],
        _lease: Duration,
    ) -> impl Future<Output = Result<Vec<Renewed>, Error>> + Send {
        std::future::ready(Ok(vec![Renewed::Yes; attempts.len()]))
    }

    /// Whether a claim of [`Renewal::Always`] has been lost.
    fn has_lost_claim(_job: &Self::Job) -> bool {
        false
    }

    /// An outcome could not be recorded for long, or the process ends: its claim is no longer renewed. Logs it.
    fn give_up(
        &mut self,
        context: &Context<Self::Prepared>,
        prepared: &Self::Prepared,
        attempt: &AttemptOf<Self>,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}
