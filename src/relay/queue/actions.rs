//! Scheduled actions: the kind of work of a relay of `[relay.source.schedule]`.
//!
//! A poll also makes the occurrences of schedules that are due. Replicas share schedules and actions: schedules row by row,
//! actions by claims, which are renewed from their beginning to their record. A replica that is gone no longer renews its claims,
//! and what it had is taken up as its schedule's `on_interrupted` says.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::database::{Error, Session};
use crate::jobs::actions;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::queue::runner;
use crate::relay::queue::work::{Attempt, AttemptOf, Begun, Claim, Context, Poll, Recorded, Renewal, Work};
use crate::source::Schedules;

mod claim;
mod execute;
mod job;
mod measure;
mod plan;
mod prepare;
mod record;
mod renew;
mod report;
mod select;
mod watch;

use claim::ClaimedActions;
use execute::ActionExecution;
use job::{ActionJob, ActionOutcome};
use prepare::PreparedSchedule;
use renew::ClaimRenewer;
use watch::Watch;

pub(in crate::relay) use measure::{backlog, findings, orphans};

/// A schedule that was written or edited is computed this soon, at the latest.
const EDITED: Duration = Duration::from_millis(250);

/// One relay's schedules in this process.
struct ScheduleWork {
    source: Schedules,
    watch: Watch,
    /// When schedules were last looked for whose relay has never been started.
    strays: Option<Instant>,
    renewer: Arc<ClaimRenewer>,
    /// After which tenant to look next.
    after: String,
}

/// Runs the relay's schedules until the engine stops and what has begun has ended.
pub(in crate::relay) async fn run(engine: Arc<Engine>, config: Config, source: Schedules) {
    let work =
        ScheduleWork { source, watch: Watch::default(), strays: None, renewer: Arc::default(), after: String::new() };
    runner::run(engine, config, work).await;
}

impl Work for ScheduleWork {
    type Prepared = PreparedSchedule;
    /// Whether another replica's claims have expired.
    type Found = bool;
    type Claimed = ClaimedActions;
    type Job = ActionJob;
    type Outcome = ActionOutcome;

    /// A large transaction would never end in a call's time.
    const TOGETHER: usize = 100;
    // Alerts of failures lead to `status`, which is all that tells of them; and the next occurrence may fail, too.
    const LINGER: Duration = Duration::from_secs(5 * 60);

    fn longest_pause(&self, config: &Config) -> Duration {
        config.poll.max.min(EDITED)
    }

    fn background(&self, engine: Arc<Engine>) -> impl Future<Output = ()> + Send + 'static {
        let renewer = Arc::clone(&self.renewer);
        async move { renewer.run(&engine).await }
    }

    async fn prepare(&self, engine: &Arc<Engine>, config: &Config) -> Result<Result<PreparedSchedule, Unready>, Error> {
        prepare::prepare(engine, config, &self.source).await
    }

    async fn unprepared(&mut self, context: &Context<PreparedSchedule>) {
        if self.watch.is_broken() {
            self.unwatch(context).await;
        }
    }

    async fn stopped(&mut self, context: &Context<PreparedSchedule>) {
        self.unwatch(context).await;
    }

    async fn poll(
        &mut self,
        context: &Context<PreparedSchedule>,
        prepared: &PreparedSchedule,
        session: &Arc<Session>,
    ) -> Result<Poll<bool>, Error> {
        let plan = self.plan(context, prepared, session).await?;
        let looked = actions::look(session, &context.config.name).await?;
        let due = looked.first.is_some_and(|first| first <= looked.now);
        let mut under_way = plan.more || plan.elsewhere || looked.running;
        // A process that runs once does not end before what is queued behind nothing. Others find that in their next plans.
        if context.engine.once().is_some() && !(due || looked.interrupted || under_way) {
            under_way = actions::release_left(session, &context.config.name).await?;
        }
        let next = plan.next.map(|next| next.since(plan.now));
        let first = looked.first.filter(|_| !due).map(|first| first.since(looked.now));
        Ok(Poll {
            due: due || looked.interrupted,
            next_in: if plan.more { Some(Duration::ZERO) } else { next.into_iter().chain(first).min() },
            under_way,
            detail: looked.interrupted,
        })
    }

    async fn sample(&self, prepared: &PreparedSchedule, session: &Session) -> Result<u64, Error> {
        measure::sample(prepared, session).await
    }

    fn room(&self, prepared: &PreparedSchedule, _in_flight: usize) -> usize {
        prepared.schedules.in_flight
    }

    async fn claim(&mut self, claim: Claim<'_, Self>) -> Result<ClaimedActions, Error> {
        claim::claim(claim, &self.after).await
    }

    fn is_in_vain(claimed: &ClaimedActions) -> bool {
        claimed.actions.is_empty() && claimed.interrupted.is_empty()
    }

    fn is_durable(_prepared: &PreparedSchedule) -> bool {
        true
    }

    async fn claimed(
        &mut self,
        context: &mut Context<PreparedSchedule>,
        prepared: &PreparedSchedule,
        claimed: ClaimedActions,
    ) -> Begun<ActionJob> {
        Begun { jobs: self.begun(&context.config.name, prepared, claimed), progressed: false }
    }

    fn unanswered(&mut self, claimed: ClaimedActions) -> Vec<AttemptOf<Self>> {
        let jobs = self.jobs(claimed.actions, &claimed.token, claimed.asked);
        jobs.into_iter().map(|job| Attempt::unanswered(job, ActionOutcome::NotBegun)).collect()
    }

    async fn send(engine: Arc<Engine>, prepared: Arc<PreparedSchedule>, jobs: Vec<ActionJob>) -> Vec<AttemptOf<Self>> {
        let execution = ActionExecution { engine, prepared };
        let mut attempts = Vec::with_capacity(jobs.len());
        for job in jobs {
            attempts.push(execution.run(job).await);
        }
        attempts
    }

    async fn record(
        &self,
        context: &Context<PreparedSchedule>,
        _prepared: &PreparedSchedule,
        attempts: &[AttemptOf<Self>],
    ) -> Result<Vec<Recorded>, Error> {
        record::record(&context.engine, &context.config.name, attempts).await
    }

    async fn recorded(
        &mut self,
        context: &mut Context<PreparedSchedule>,
        prepared: &PreparedSchedule,
        attempt: &AttemptOf<Self>,
        _recorded: Recorded,
    ) {
        report::report(context, prepared, attempt).await;
    }

    fn renewal(_config: &Config) -> Renewal {
        Renewal::Always
    }

    fn has_lost_claim(job: &ActionJob) -> bool {
        job.claim.lost.is_cancelled()
    }
    async fn give_up(
        &mut self,
        context: &Context<PreparedSchedule>,
        _prepared: &PreparedSchedule,
        attempt: &AttemptOf<Self>,
    ) -> Result<(), Error> {
        runner::log_given_up(&context.config.name, attempt, "an action", "on_interrupted of its schedule decides");
        Ok(())
    }
}

impl ScheduleWork {
    /// The schedules are not watched from here on. What cannot be recorded is known by the process's sessions.
    async fn unwatch(&mut self, context: &Context<PreparedSchedule>) {
        let (engine, cursor) = (&context.engine, &context.config.name);
        let ended = self.watch.end(engine);
        match tokio::time::timeout(engine.call_deadline, ended).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(cursor, %error, "cannot record that schedules are not watched"),
            Err(_) => tracing::warn!(cursor, "cannot record in time that schedules are not watched"),
        }
    }
}
