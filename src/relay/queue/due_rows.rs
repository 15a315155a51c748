//! Due rows (`[relay.source.pending]`): the kind of work that sends rows of an application's table when they are due.
//!
//! `due_rows/claim.rs` claims them, `send.rs` sends them, `record.rs` records the outcomes; the statements are in
//! `source::pending`.
//!
//! Under `at_least_once` a row is marked after it was sent, in a transaction that waits for nobody's lock; under `at_most_once` the
//! claim marks it first. Sinks that take batches get the rows of a claim together.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::database::{Error, Session, sqlstate};
use crate::jobs::Settlement;
use crate::position::Timestamp;
use crate::relay::engine::deadline::within;
use crate::relay::engine::intervals::SAMPLE;
use crate::relay::engine::not_ready::Unready;
use crate::relay::engine::{Engine, Single};
use crate::relay::queue::reach::Reach;
use crate::relay::queue::runner;
use crate::relay::queue::work::{Attempt, AttemptOf, Begun, Claim, Context, Poll, Recorded, Renewal, Renewed, Work};
use crate::relay::{Config, Guarantee};
use crate::sink::{Class, Failure};
use crate::source::Pending;

mod claim;
mod job;
mod names;
mod poll;
mod prepare;
mod record;
mod report;
mod send;
mod unmarked;

pub(in crate::relay) use poll::{backlog, statements};
pub(in crate::relay) use prepare::due;

use claim::ClaimedRows;
use job::{PendingJob, SendOutcome};
use poll::PendingPoll;
use prepare::PreparedPending;

const REFUSED: &str = "See what a trigger or a constraint of the table says.";
const SLOW: &str = "PostgreSQL has not read this row within 3/5 of the longest turn.deadline: publish fewer columns, store what a cast or a \
    function makes of them, or raise turn.deadline. It is retried.";

/// One relay's due rows in this process.
struct PendingWork {
    source: Pending,
    /// So many more claims are for one row each, because one among several cannot be marked, or takes too long. The row may go away before it
    /// is found.
    narrow: usize,
    /// How far is looked for lanes; none where each row is on its own.
    reach: Option<Reach>,
    /// The topic of dead letters did not take a copy: when, and why.
    uncopied: Option<(Instant, Failure)>,
    /// When it was last read whether the table's columns are what they were.
    columns_read: Option<Instant>,
}

/// Runs the relay until the engine stops and what it has begun to send has ended.
pub(in crate::relay) async fn run(engine: Arc<Engine>, config: Config, source: Pending) {
    let reach =
        source.lanes.is_some().then(|| Reach::new(config.lanes, Instant::now()).tireless(engine.once().is_some()));
    runner::run(engine, config, PendingWork { source, narrow: 0, reach, uncopied: None, columns_read: None }).await;
}

impl Work for PendingWork {
    type Prepared = PreparedPending;
    type Found = PendingPoll;
    type Claimed = ClaimedRows;
    type Job = PendingJob;
    type Outcome = SendOutcome;

    /// Locked rows must not hold up others.
    const UNRECORDED_TAKE_ROOM: bool = false;

    async fn prepare(&self, engine: &Arc<Engine>, config: &Config) -> Result<Result<PreparedPending, Unready>, Error> {
        prepare::prepare(engine, config, &self.source).await
    }

    /// Casts each time where one may be created that a claim would call, else when what waits is measured, as the rest: a column may get
    /// another type, or lose its NOT NULL, and a label of its enum another name.
    async fn holds(&mut self, prepared: &PreparedPending, session: &Session) -> Result<bool, Error> {
        let due = &prepared.due;
        if self.columns_read.is_some_and(|read| read.elapsed() < SAMPLE) {
            return Ok(!due.may_get_casts() || due.has_same_casts(session).await?);
        }
        self.columns_read = Some(Instant::now());
        Ok(due.has_same_casts(session).await? && due.has_same_columns(session).await?)
    }

    async fn poll(
        &mut self,
        context: &Context<PreparedPending>,
        prepared: &PreparedPending,
        session: &Arc<Session>,
    ) -> Result<Poll<PendingPoll>, Error> {
        poll::poll(session, prepared, context.engine.once(), &mut self.reach).await
    }

    async fn sample(&self, prepared: &PreparedPending, session: &Session) -> Result<u64, Error> {
        poll::sample(session, prepared).await
    }

    fn has_lanes(&self) -> bool {
        self.reach.is_some()
    }

    /// A receiver that answers one by one gets some at the same time; others get one batch.
    fn room(&self, prepared: &PreparedPending, in_flight: usize) -> usize {
        let pending = &prepared.pending;
        match (prepared.config.sink.one_by_one(), in_flight) {
            (true, _) | (false, 0) if self.has_lanes() => prepared.config.lanes.in_flight,
            (true, _) => pending.in_flight.min(pending.limit),
            (false, 0) => pending.limit,
            (false, _) => 0,
        }
    }

    async fn claim(&mut self, claim: Claim<'_, Self>) -> Result<ClaimedRows, Error> {
        let is_narrow = self.narrow > 0;
        let room = if is_narrow { 1 } else { claim.room.min(claim.prepared.pending.limit) };
        let (more, probes) = (claim.found.more, claim.probes && !is_narrow);
        let (due, cursor) = (&claim.prepared.due, claim.cursor);
        let claimed = claim::claim(Claim { room, probes, ..claim }).await?;
        if !names::hold_for_claim(due, cursor).await? {
            self.columns_read = None;
            return Ok(ClaimedRows::default());
        }
        self.narrow = self.narrow.saturating_sub(1);
        if let Some(reach) = &mut self.reach {
            reach.claimed((claimed.jobs.len(), room), more, Instant::now());
        }
        Ok(claimed)
    }

    fn is_in_vain(claimed: &ClaimedRows) -> bool {
        claimed.jobs.is_empty() && !claimed.touched
    }

    fn is_durable(prepared: &PreparedPending) -> bool {
        prepared.marks_first()
    }

    async fn claimed(
        &mut self,
        context: &mut Context<PreparedPending>,
        prepared: &PreparedPending,
        claimed: ClaimedRows,
    ) -> Begun<PendingJob> {
        if let Some(key) = &claimed.unmarkable {
            report::mark_without_effect(context, prepared, key).await;
        }
        Begun { jobs: claimed.jobs, progressed: false }
    }

    /// One row cannot be marked, or takes too long to be read: claimed one by one, it stands alone, and is put off.
    async fn claim_refused(
        &mut self,
        context: &Context<PreparedPending>,
        prepared: &PreparedPending,
        found: &PendingPoll,
        error: Error,
    ) -> Result<(), Error> {
        // A key that was claimed may have a label that its enum has no more.
        self.columns_read = None;
        let is_too_slow = sqlstate::is_too_slow(&error) && prepared.size.allowed() == 1;
        if !is_too_slow && !sqlstate::is_of_application(&error) {
            return Err(error);
        }
        if self.narrow == 0 {
            self.narrow = prepared.pending.limit;
            return Ok(());
        }
        self.narrow = 0;
        let (code, hint) = (sqlstate::word(&error), if is_too_slow { SLOW } else { REFUSED });
        let failure = Failure::of(Class::Retry, &code, error.to_string(), hint);
        claim::put_off(&context.engine, prepared, found, &failure).await
    }

    fn unanswered(&mut self, claimed: ClaimedRows) -> Vec<AttemptOf<Self>> {
        claimed.jobs.into_iter().map(|job| Attempt::unanswered(job, SendOutcome::Untried)).collect()
    }

    fn groups(prepared: &PreparedPending, jobs: Vec<PendingJob>) -> Vec<Vec<PendingJob>> {
        if prepared.config.sink.one_by_one() { jobs.into_iter().map(|job| vec![job]).collect() } else { vec![jobs] }
    }

    async fn send(engine: Arc<Engine>, prepared: Arc<PreparedPending>, jobs: Vec<PendingJob>) -> Vec<AttemptOf<Self>> {
        send::send(&engine, &prepared, jobs).await
    }

    async fn ended(
        &mut self,
        context: &mut Context<PreparedPending>,
        prepared: &PreparedPending,
        attempt: &mut AttemptOf<Self>,
    ) {
        report::copy(context, prepared, attempt, &mut self.uncopied).await;
        report::report(context, prepared, attempt).await;
    }

    async fn record(
        &self,
        context: &Context<PreparedPending>,
        prepared: &PreparedPending,
        attempts: &[AttemptOf<Self>],
    ) -> Result<Vec<Recorded>, Error> {
        record::record(&context.engine, prepared, attempts).await
    }

    async fn recorded(
        &mut self,
        context: &mut Context<PreparedPending>,
        prepared: &PreparedPending,
        attempt: &AttemptOf<Self>,
        recorded: Recorded,
    ) {
        if recorded == Recorded::Ineffective {
            report::mark_without_effect(context, prepared, &attempt.job.key).await;
        }
        report::dead_lettered(&context.engine, prepared, attempt);
    }

    async fn refused(
        &mut self,
        context: &Context<PreparedPending>,
        prepared: &PreparedPending,
        attempt: &AttemptOf<Self>,
        error: &Error,
    ) -> Result<bool, Error> {
        // The key may have a label that its enum has no more: recorded when that is back.
        if !names::hold(&context.engine, &prepared.due).await? {
            return Ok(false);
        }
        unmarked::refused(&context.engine, prepared, attempt, error).await
    }

    fn renewal(config: &Config) -> Renewal {
        Renewal::WhileUnrecorded(config.turn.lock_kill())
    }

    async fn renew(
        &self,
        context: &Context<PreparedPending>,
        attempts: &[AttemptOf<Self>],
        lease: Duration,
    ) -> Result<Vec<Renewed>, Error> {
        let Single { connection, right: _right } = context.engine.single().await?;
        let renewing = async {
            let settlement = Settlement::begin(connection, false).await?;
            let all = attempts.iter().map(|attempt| settlement.keep(attempt.job.claim(), lease));
            let renewed = futures_util::future::try_join_all(all).await?;
            settlement.commit().await?;
            Ok(renewed.into_iter().map(|renewed| if renewed { Renewed::Yes } else { Renewed::Lost }).collect())
        };
        within(&context.engine, renewing).await
    }

    async fn give_up(
        &mut self,
        context: &Context<PreparedPending>,
        prepared: &PreparedPending,
        attempt: &AttemptOf<Self>,
    ) -> Result<(), Error> {
        unmarked::give_up(&context.engine, prepared, attempt).await
    }
}

/// When this `run --once` began, by the database's clock.
type Once = Option<Timestamp>;

impl PreparedPending {
    /// The claim marks a row before it is sent, and it is never sent again.
    fn marks_first(&self) -> bool {
        self.config.guarantee == Guarantee::AtMostOnce
    }
}
