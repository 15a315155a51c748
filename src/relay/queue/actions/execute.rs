//! Executing claimed actions: no lock is held.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::job::{ActionJob, ActionOutcome};
use super::prepare::PreparedSchedule;
use crate::batch::Batch;
use crate::database::Error;
use crate::jobs::Settlement;
use crate::jobs::actions::{ActionEnd, RecordedAction};
use crate::relay::engine::deadline::within;
use crate::relay::engine::{Engine, Single};
use crate::relay::queue::work::Attempt;
use crate::sink::command::CommandSink;
use crate::sink::{Failure, Mode, Progress, Sink};
use crate::source::schedule::{self, Printed};
use failures::{commandless, locked, sinkless_command, unavailable, unprintable};
use query::QueryReport;

mod failures;
mod query;

/// How long a program that has taken too long may take to end, and more.
const GRACE: Duration = Duration::from_secs(5);

/// The execution of one action.
pub(super) struct ActionExecution {
    pub(super) engine: Arc<Engine>,
    pub(super) prepared: Arc<PreparedSchedule>,
}

/// Whether something may have happened already, for the code that stops it on the way.
#[derive(Default)]
struct ExecutionProgress {
    /// Something of it was run: its query at least.
    started: bool,
    /// Of a request or a mail.
    progress: Progress,
    /// Of what does not tell how far it has come.
    begun: bool,
    /// The commit that records it was not answered.
    unanswered: bool,
}

impl ExecutionProgress {
    fn is_doubtful(&self) -> bool {
        self.begun || self.progress.may_have_left()
    }
}

impl ActionExecution {
    /// Executes the action; its outcome.
    pub(super) async fn run(&self, job: ActionJob) -> Attempt<ActionJob, ActionOutcome> {
        let (mut stage, lost) = (ExecutionProgress::default(), job.claim.lost.clone());
        let outcome = tokio::select! {
            biased;
            outcome = self.execute(&job, &mut stage) => Some(outcome),
            () = lost.cancelled() => None,
            () = self.engine.cut.cancelled() => None,
        };
        let outcome = match outcome.unwrap_or_else(|| ActionOutcome::Cut { ambiguous: stage.is_doubtful() }) {
            ActionOutcome::Cut { .. } if !stage.started => ActionOutcome::NotBegun,
            outcome => outcome,
        };
        Attempt { may_be_recorded: stage.unanswered, ..Attempt::new(job, outcome) }
    }

    async fn execute(&self, job: &ActionJob, stage: &mut ExecutionProgress) -> ActionOutcome {
        let (reported, deadline) = match self.report(job, stage).await {
            Ok(reported) => reported,
            Err(outcome) => return outcome,
        };
        let rows = match reported {
            QueryReport::None => None,
            QueryReport::Rows(rows) => Some(rows),
            QueryReport::Nothing(why) => return ActionOutcome::Skipped(why),
        };
        let action = &job.action;
        if action.command.is_some() && !matches!(self.prepared.sink, Sink::Command(_)) {
            return ActionOutcome::Failed(sinkless_command());
        }
        let printed = Printed {
            id: action.id,
            schedule: &action.schedule.1,
            tenant: &action.tenant,
            planned_at: action.planned_at,
            payload: &action.payload,
            rows: rows.as_deref(),
        };
        match schedule::message(&printed, self.prepared.sink.fields()) {
            Ok(message) => self.perform(job, &printed, &message, deadline, stage).await,
            Err(error) => ActionOutcome::Failed(unprintable(&error)),
        }
    }

    /// What the action does once its query is answered, until the deadline.
    async fn perform(
        &self,
        job: &ActionJob,
        printed: &Printed<'_>,
        message: &Batch,
        deadline: Instant,
        stage: &mut ExecutionProgress,
    ) -> ActionOutcome {
        let left = deadline.saturating_duration_since(Instant::now());
        if !matches!(self.prepared.sink, Sink::Sql(_)) {
            self.starts(job, stage);
        }
        let done = match &self.prepared.sink {
            // A program is asked to end before it is killed.
            Sink::Command(sink) => until(deadline + GRACE, start(sink, job, printed, left, stage)).await,
            // The schedule's limit is kept outside, where it is told from the sink's own.
            Sink::Http(_) | Sink::Email(_) => {
                until(deadline, self.deliver(message, left + GRACE, &mut stage.progress)).await
            }
            // A sink of the user's own is told when it is given up, which must not be later than that.
            Sink::Custom(_) => until(deadline, self.deliver(message, left, &mut stage.progress)).await,
            Sink::Sql(_) => {
                let connection = match self.connection(job, false, job.action.timeout.saturating_sub(left)).await {
                    Ok(connection) => connection,
                    Err(outcome) => return outcome,
                };
                self.starts(job, stage);
                // Its time stood still while it waited.
                let deadline = Instant::now() + left;
                // Dropped before the commit, it leaves nothing behind; after it, the claim's token is gone.
                let changed = until(deadline, self.change(job, message, connection, deadline, stage)).await;
                changed.map(|changed| changed.unwrap_or_else(|error| ActionOutcome::Failed(unavailable(&error))))
            }
            Sink::Kafka(_) | Sink::Stdout(_) => {
                stage.begun = true;
                until(deadline, self.publish(message, deadline)).await
            }
        };
        done.unwrap_or_else(|| ActionOutcome::TimedOut { ambiguous: stage.is_doubtful() })
    }

    /// Something of the action is run from here on: the first time that this is so, it has begun.
    fn starts(&self, job: &ActionJob, stage: &mut ExecutionProgress) {
        let action = &job.action;
        if !std::mem::replace(&mut stage.started, true) && action.attempts == 0 {
            let waited = action.started_at.since(action.planned_at.max(action.due_at));
            self.prepared.counters.begun(waited + job.claimed.elapsed());
        }
    }

    /// Waits for a connection, for as long as others need them; the action has run for so long. Not in a process that stops: the action
    /// has changed nothing yet, and another replica does it.
    async fn connection(&self, job: &ActionJob, slow: bool, ran: Duration) -> Result<Single, ActionOutcome> {
        job.claim.waits(ran);
        let connection = tokio::select! {
            biased;
            connection = self.engine.for_action(slow) => connection,
            () = self.engine.stop.cancelled() => return Err(ActionOutcome::Cut { ambiguous: false }),
        };
        job.claim.runs();
        connection.map_err(|error| ActionOutcome::Failed(unavailable(&error)))
    }

    /// A message of a receiver that answers each.
    async fn deliver(&self, message: &Batch, patience: Duration, progress: &mut Progress) -> ActionOutcome {
        let message = message.message(0);
        let pinned = match self.prepared.sink.pin(&message) {
            Ok(pinned) => pinned,
            Err(failure) => return ActionOutcome::Failed(failure),
        };
        match self.prepared.sink.deliver(message.id, &pinned, patience, progress).await {
            Ok(receipt) => ActionOutcome::Done(receipt.reply),
            Err(failure) => ActionOutcome::Failed(failure),
        }
    }

    /// A record, or a line.
    async fn publish(&self, message: &Batch, deadline: Instant) -> ActionOutcome {
        let mode = Mode { alone: true, until: Some(deadline), ..Mode::default() };
        let mut publication = match self.prepared.sink.begin(mode).await {
            Ok(publication) => publication,
            Err(failure) => return ActionOutcome::Failed(failure),
        };
        let patience = Instant::now() + self.prepared.config.turn.deadline;
        let all = async {
            publication.push(message).await;
            publication.settle().await;
        };
        // What is still queued at the turn's deadline is purged, as in every turn.
        let _ended_in_time = tokio::time::timeout_at(patience.min(deadline).into(), all).await;
        let published = publication.finish();
        match published.stopped {
            _ if published.acknowledged == 1 => ActionOutcome::Done(String::new()),
            Some(failure) => ActionOutcome::Failed(failure),
            None => ActionOutcome::Failed(Failure { ambiguous: true, ..Failure::deadline() }),
        }
    }

    /// A statement, in the transaction that records that the action is done. A commit that is not answered leaves no doubt: its
    /// row is locked until it has ended, and while the claim's token stands there then, nothing was changed.
    async fn change(
        &self,
        job: &ActionJob,
        message: &Batch,
        single: Single,
        deadline: Instant,
        stage: &mut ExecutionProgress,
    ) -> Result<ActionOutcome, Error> {
        // Kept until the transaction has ended.
        let Single { connection, right: _right } = single;
        let settlement = within(&self.engine, Settlement::begin(connection, true)).await?;
        let mode = Mode { alone: true, until: Some(deadline), ..Mode::default() };
        let published = match self.prepared.sink.begin_within(mode, settlement.transaction()).await {
            Ok(mut publication) => {
                publication.push(message).await;
                publication.finish()
            }
            Err(failure) => return Ok(ActionOutcome::Failed(failure)),
        };
        if published.acknowledged == 0 {
            return Ok(ActionOutcome::Failed(published.stopped.unwrap_or_else(Failure::deadline)));
        }
        let ended = within(&self.engine, settlement.end_action(job.named(), ActionEnd::Completed(""))).await?;
        let of = match ended {
            RecordedAction::Of(of) => of,
            // Nothing of this may stay.
            RecordedAction::Lost => return Ok(ActionOutcome::Cut { ambiguous: false }),
            RecordedAction::Locked => return Ok(ActionOutcome::Failed(locked())),
        };
        within(&self.engine, settlement.promote_actions(&self.prepared.config.name, &[of])).await?;
        stage.unanswered = true;
        within(&self.engine, settlement.commit()).await?;
        stage.unanswered = false;
        Ok(ActionOutcome::Recorded)
    }
}

/// What this answers by then, if it does.
async fn until<T>(deadline: Instant, work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout_at(deadline.into(), work).await.ok()
}

/// A program; it is asked to end when the time that is left is over.
async fn start(
    sink: &CommandSink,
    job: &ActionJob,
    printed: &Printed<'_>,
    left: Duration,
    stage: &mut ExecutionProgress,
) -> ActionOutcome {
    let Some(name) = &job.action.command else { return ActionOutcome::Failed(commandless()) };
    let stdin = match schedule::data(printed).and_then(|data| serde_json::to_vec(&data)) {
        Ok(stdin) => stdin,
        Err(error) => return ActionOutcome::Failed(unprintable(&error)),
    };
    stage.begun = true;
    let told = |line: &str| job.claim.report(line);
    match sink.run(name, &stdin, left, &told).await {
        Ok(result) => ActionOutcome::Done(result),
        Err(failure) => ActionOutcome::Failed(failure),
    }
}
