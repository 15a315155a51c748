//! Sending claimed requests: no lock is held, nothing of the database is waited for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::ready::Ready;
use super::task::{Attempt, Outcome, Plan, Task};
use crate::relay::engine::Engine;
use crate::sink::{Failure, Progress};

/// Sends one request, or asks for it; what became of it.
pub(super) async fn send(engine: Arc<Engine>, ready: Arc<Ready>, task: Task) -> Attempt {
    let turn = ready.config.turn;
    // The answer must be here before the claim ends.
    let room = turn.lock_kill().saturating_sub(task.claimed.elapsed());
    if room <= turn.deadline || engine.cut.is_cancelled() {
        return task.ended(Outcome::Untried);
    }
    let deadline = Instant::now() + turn.deadline;
    let mut progress = Progress::default();
    let ended = tokio::select! {
        biased;
        outcome = carry_out(&ready, &task, deadline, &mut progress) => Some(outcome),
        () = engine.cut.cancelled() => None,
    };
    let cut = || Outcome::Failed(Failure { ambiguous: progress.may_have_left(), ..Failure::deadline() });
    let outcome = ended.unwrap_or_else(cut);
    task.ended(outcome)
}

async fn carry_out(ready: &Ready, task: &Task, deadline: Instant, progress: &mut Progress) -> Outcome {
    let left = || deadline.saturating_duration_since(Instant::now());
    let body = match &task.plan {
        Plan::Refused(failure) => return Outcome::Failed(failure.clone()),
        Plan::Send(body) => body,
        Plan::Ask(body) => match ready.sink.ask(&task.message.message(0), left()).await {
            Ok(Some(receipt)) => return Outcome::Accepted(receipt),
            Ok(None) if left() < Duration::from_millis(100) => return Outcome::Untried,
            Ok(None) => body,
            // Nothing was sent by this try, and what was before is as unknown as it was.
            Err(failure) => return Outcome::Failed(Failure { ambiguous: false, ..failure }),
        },
    };
    match ready.sink.deliver(&task.id, body, left(), progress).await {
        Ok(receipt) => Outcome::Accepted(receipt),
        Err(failure) => Outcome::Failed(failure),
    }
}
