//! What follows from a failure of a request, and what is logged and counted.

use super::job::{RequestJob, RequestOutcome};
use super::prepare::PreparedRequests;
use super::record::RequestAttempt;
use crate::position::Timestamp;
use crate::relay::engine::Engine;
use crate::relay::engine::disposition::{Disposition, ForMessage, Sender, disposition};
use crate::relay::engine::report::counted;
use crate::relay::queue::work::Context;
use crate::sink::Failure;

/// What a failure of this request means.
pub(super) fn meaning(
    engine: &Engine,
    prepared: &PreparedRequests,
    job: &RequestJob,
    failure: &Failure,
) -> Disposition {
    let sender = Sender::Request {
        on_poison: prepared.config.on_poison,
        on_unknown: prepared.config.on_unknown,
        ambiguous_before: job.again,
        once: engine.once().is_some(),
        attempts: job.attempts,
    };
    disposition(sender, failure)
}

/// Logs, counts and, where an operator must correct something, halts.
pub(super) async fn report(
    now: Timestamp,
    context: &mut Context<PreparedRequests>,
    prepared: &PreparedRequests,
    attempt: &RequestAttempt,
) {
    let (job, name) = (&attempt.job, &context.config.name);
    let failure = match &attempt.outcome {
        RequestOutcome::Untried => return,
        RequestOutcome::Accepted(_) => {
            prepared.metrics.published(1);
            prepared.metrics.redelivered(u64::from(job.again));
            context.engine.progress(name, |progress| progress.sent += 1);
            prepared.numbers.sent(now.since(job.due_at) + job.claimed.elapsed());
            context.failures.recovered().await;
            return;
        }
        RequestOutcome::Failed(failure) => failure,
    };
    prepared.metrics.publish_failed(counted(failure));
    prepared.numbers.send_failed();
    let meaning = meaning(&context.engine, prepared, job, failure);
    tracing::warn!(
        cursor = name,
        id = job.id,
        class = failure.class.as_str(),
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        attempt = job.attempts + 1,
        ambiguous = failure.ambiguous,
        ends = matches!(meaning.message, ForMessage::Fails | ForMessage::Unknown),
        "send failed"
    );
    context.engine.progress(name, |progress| progress.failed += 1);
    context.failures.follow(meaning, failure, &prepared.seat.fingerprint, &job.id).await;
    if meaning.message == ForMessage::Fails {
        prepared.metrics.dead_lettered();
    }
}
