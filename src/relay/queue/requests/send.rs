//! Sending claimed requests: no lock is held, nothing of the database is waited for.

use std::time::{Duration, Instant};

use super::job::{RequestJob, RequestOutcome, RequestPlan};
use super::prepare::PreparedRequests;
use crate::relay::engine::Engine;
use crate::relay::queue::work::Attempt;
use crate::sink::{Failure, Progress};

/// Sends one request, or asks for it; what became of it.
pub(super) async fn send(
    engine: &Engine,
    prepared: &PreparedRequests,
    job: RequestJob,
) -> Attempt<RequestJob, RequestOutcome> {
    let turn = prepared.config.turn;
    // The answer must be here before the claim ends.
    let room = turn.lock_kill().saturating_sub(job.claimed.elapsed());
    if room <= turn.deadline || engine.cut.is_cancelled() {
        return Attempt::new(job, RequestOutcome::Untried);
    }
    let deadline = Instant::now() + turn.deadline;
    let mut progress = Progress::default();
    let ended = tokio::select! {
        biased;
        outcome = deliver(prepared, &job, deadline, &mut progress) => Some(outcome),
        () = engine.cut.cancelled() => None,
    };
    let cut = || RequestOutcome::Failed(Failure { ambiguous: progress.may_have_left(), ..Failure::deadline() });
    let outcome = ended.unwrap_or_else(cut);
    Attempt::new(job, outcome)
}

async fn deliver(
    prepared: &PreparedRequests,
    job: &RequestJob,
    deadline: Instant,
    progress: &mut Progress,
) -> RequestOutcome {
    let left = || deadline.saturating_duration_since(Instant::now());
    let body = match &job.plan {
        RequestPlan::Refused(failure) => return RequestOutcome::Failed(failure.clone()),
        RequestPlan::Send(body) => body,
        RequestPlan::Ask(body) => match prepared.sink.ask(&job.message.message(0), left()).await {
            Ok(Some(receipt)) => return RequestOutcome::Accepted(receipt),
            Ok(None) if left() < Duration::from_millis(100) => return RequestOutcome::Untried,
            Ok(None) => body,
            // Nothing was sent by this try, and what was before is as unknown as it was.
            Err(failure) => return RequestOutcome::Failed(Failure { ambiguous: false, ..failure }),
        },
    };
    match prepared.sink.deliver(&job.id, body, left(), progress).await {
        Ok(receipt) => RequestOutcome::Accepted(receipt),
        Err(failure) => RequestOutcome::Failed(failure),
    }
}
