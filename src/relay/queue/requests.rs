//! Requests, which are sent once: the kind of work of a relay of `[relay.source.requests]`.
//!
//! A claim renders and pins what is sent before the first try. It finds requests that another replica had when it ended, and
//! does with them what the relay's policy for unknown outcomes says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::database::{Error, Session};
use crate::jobs::ledger;
use crate::position::Timestamp;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::deadline::within;
use crate::relay::engine::not_ready::Unready;
use crate::relay::queue::reach::Reach;
use crate::relay::queue::runner;
use crate::relay::queue::work::{Attempt, AttemptOf, Begun, Claim, Context, Poll, Recorded, Renewal, Renewed, Work};
use crate::source::Requests;

mod claim;
mod job;
mod poll;
mod prepare;
mod record;
mod rendering;
mod report;
mod send;

pub(in crate::relay) use poll::backlog;
pub(in crate::relay) use prepare::{findings, orphans, statements};

use claim::ClaimedRequests;
use job::{RequestJob, RequestOutcome};
use poll::RequestPoll;
use prepare::PreparedRequests;
use rendering::Rendering;

/// One relay's requests in this process.
struct RequestWork {
    source: Requests,
    /// How far is looked for lanes; none where each request is on its own.
    reach: Option<Reach>,
    /// The database's clock at the last poll.
    now: Timestamp,
    /// Of a claim that has failed.
    slowest: Option<Rendering>,
}

/// Runs the relay until the engine stops and what it has begun to send has ended.
pub(in crate::relay) async fn run(engine: Arc<Engine>, config: Config, source: Requests) {
    let reach =
        source.lanes.is_some().then(|| Reach::new(config.lanes, Instant::now()).tireless(engine.once().is_some()));
    let now = Timestamp::from_pg_micros(0);
    runner::run(engine, config, RequestWork { source, reach, now, slowest: None }).await;
}

impl Work for RequestWork {
    type Prepared = PreparedRequests;
    type Found = RequestPoll;
    type Claimed = ClaimedRequests;
    type Job = RequestJob;
    type Outcome = RequestOutcome;

    async fn prepare(&self, engine: &Arc<Engine>, config: &Config) -> Result<Result<PreparedRequests, Unready>, Error> {
        prepare::prepare(engine, config, &self.source).await
    }

    async fn poll(
        &mut self,
        context: &Context<PreparedRequests>,
        prepared: &PreparedRequests,
        session: &Arc<Session>,
    ) -> Result<Poll<RequestPoll>, Error> {
        let (now, poll) = poll::poll(session, prepared, context.engine.once(), &mut self.reach).await?;
        self.now = now;
        Ok(poll)
    }

    async fn sample(&self, prepared: &PreparedRequests, session: &Session) -> Result<u64, Error> {
        poll::sample(session, prepared).await
    }

    fn room(&self, prepared: &PreparedRequests, _in_flight: usize) -> usize {
        match self.reach {
            Some(_) => prepared.config.lanes.in_flight,
            None => prepared.requests.in_flight.min(prepared.requests.limit),
        }
    }

    fn has_lanes(&self) -> bool {
        self.reach.is_some()
    }

    async fn claim(&mut self, claim: Claim<'_, Self>) -> Result<ClaimedRequests, Error> {
        let (room, more) = (claim.room.min(claim.prepared.requests.limit), claim.found.more);
        let claimed = claim::claim(Claim { room, ..claim }, &mut self.slowest).await?;
        if let Some(reach) = &mut self.reach {
            reach.claimed((claimed.jobs.len(), room), more, Instant::now());
        }
        Ok(claimed)
    }

    fn is_in_vain(claimed: &ClaimedRequests) -> bool {
        claimed.jobs.is_empty() && claimed.given_up == 0
    }

    fn is_durable(_prepared: &PreparedRequests) -> bool {
        true
    }

    async fn claimed(
        &mut self,
        context: &mut Context<PreparedRequests>,
        prepared: &PreparedRequests,
        claimed: ClaimedRequests,
    ) -> Begun<RequestJob> {
        prepared.metrics.abandoned(u64::try_from(claimed.interrupted).unwrap_or(0));
        context.engine.progress(&context.config.name, |progress| progress.failed += claimed.given_up);
        Begun { jobs: claimed.jobs, progressed: claimed.given_up > 0 }
    }

    fn unanswered(&mut self, claimed: ClaimedRequests) -> Vec<AttemptOf<Self>> {
        claimed.jobs.into_iter().map(|job| Attempt::unanswered(job, RequestOutcome::Untried)).collect()
    }

    /// A request that takes too long to be rendered waits by itself.
    async fn claim_refused(
        &mut self,
        context: &Context<PreparedRequests>,
        prepared: &PreparedRequests,
        _found: &RequestPoll,
        error: Error,
    ) -> Result<(), Error> {
        let slowest = self.slowest.take();
        match slowest.filter(|slowest| slowest.is_to_blame(&error, context.engine.call_deadline)) {
            Some(slow) => rendering::put_off(&context.engine, prepared, &slow).await,
            None => Err(error),
        }
    }

    async fn send(engine: Arc<Engine>, prepared: Arc<PreparedRequests>, jobs: Vec<RequestJob>) -> Vec<AttemptOf<Self>> {
        let mut attempts = Vec::with_capacity(jobs.len());
        for job in jobs {
            attempts.push(send::send(&engine, &prepared, job).await);
        }
        attempts
    }

    async fn ended(
        &mut self,
        context: &mut Context<PreparedRequests>,
        prepared: &PreparedRequests,
        attempt: &mut AttemptOf<Self>,
    ) {
        report::report(self.now, context, prepared, attempt).await;
    }

    async fn record(
        &self,
        context: &Context<PreparedRequests>,
        prepared: &PreparedRequests,
        attempts: &[AttemptOf<Self>],
    ) -> Result<Vec<Recorded>, Error> {
        record::record(&context.engine, prepared, attempts).await
    }

    fn renewal(config: &Config) -> Renewal {
        Renewal::WhileUnrecorded(config.turn.lock_kill())
    }

    async fn renew(
        &self,
        context: &Context<PreparedRequests>,
        attempts: &[AttemptOf<Self>],
        lease: Duration,
    ) -> Result<Vec<Renewed>, Error> {
        let claims: Vec<ledger::NamedRequest<'_>> = attempts.iter().map(|attempt| attempt.job.named()).collect();
        let keeping = async { ledger::keep(context.engine.probe.session().await?.as_ref(), lease, &claims).await };
        let kept = within(&context.engine, keeping).await?;
        let renewed = |claim: &ledger::NamedRequest<'_>| match kept.get(claim.id) {
            Some(true) => Renewed::Yes,
            Some(false) => Renewed::Locked,
            None => Renewed::Lost,
        };
        Ok(claims.iter().map(renewed).collect())
    }
    async fn give_up(
        &mut self,
        context: &Context<PreparedRequests>,
        _prepared: &PreparedRequests,
        attempt: &AttemptOf<Self>,
    ) -> Result<(), Error> {
        runner::log_given_up(&context.config.name, attempt, "a request", "on_unknown decides");
        Ok(())
    }
}
