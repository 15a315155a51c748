//! What follows from a failure of an action, and what is logged and counted.

use super::job::ActionOutcome;
use super::prepare::PreparedSchedule;
use super::record::ActionAttempt;
use crate::relay::engine::disposition::{Disposition, ForMessage, ForRelay, Sender, disposition};
use crate::relay::engine::report::counted;
use crate::relay::queue::work::Context;
use crate::sink::{Class, Failure};

/// What this failure of the action means.
pub(super) fn meaning(attempt: &ActionAttempt, failure: &Failure) -> Disposition {
    let interrupted = matches!(attempt.outcome, ActionOutcome::Cut { .. });
    let action = &attempt.job.action;
    disposition(Sender::Action { retries: action.retries, interrupted, attempts: action.attempts }, failure)
}

/// A failure that says what an end during the work means.
pub(super) fn failure_of(outcome: &ActionOutcome) -> Option<Failure> {
    Some(match outcome {
        ActionOutcome::Done(_) | ActionOutcome::Recorded | ActionOutcome::Skipped(_) | ActionOutcome::NotBegun => {
            return None;
        }
        ActionOutcome::Failed(failure) => failure.clone(),
        ActionOutcome::TimedOut { ambiguous } => Failure {
            ambiguous: *ambiguous,
            ..Failure::of(
                Class::Poison,
                "action_timeout",
                "it took longer than its schedule's timeout, and was stopped",
                "Find out why it takes so long, or give the schedule a longer timeout.",
            )
        },
        ActionOutcome::Cut { ambiguous } => Failure {
            ambiguous: *ambiguous,
            ..Failure::of(
                Class::Retry,
                "interrupted",
                "the replica ended, or lost its claim, while it was at work",
                "on_interrupted of its schedule says whether it is retried.",
            )
        },
    })
}

/// Logs and counts.
pub(super) async fn report(
    context: &mut Context<PreparedSchedule>,
    prepared: &PreparedSchedule,
    attempt: &ActionAttempt,
) {
    let action = &attempt.job.action;
    let (cursor, id, schedule, tenant) = (&context.config.name, action.id, &action.schedule.1, &action.tenant);
    match &attempt.outcome {
        ActionOutcome::Done(_) | ActionOutcome::Recorded => {
            prepared.metrics.published(1);
            prepared.counters.completed();
            context.engine.progress(cursor, |progress| progress.sent += 1);
            context.failures.recovered().await;
            tracing::debug!(cursor, id, schedule, tenant, took = ?attempt.job.claimed.elapsed(), "action completed");
            return;
        }
        ActionOutcome::Skipped(why) => {
            prepared.counters.skipped(1);
            tracing::info!(cursor, id, schedule, tenant, why, "action skipped");
            return;
        }
        ActionOutcome::NotBegun => {
            tracing::info!(cursor, id, schedule, tenant, "action was not begun; it runs later");
            return;
        }
        ActionOutcome::Failed(_) | ActionOutcome::TimedOut { .. } | ActionOutcome::Cut { .. } => {}
    }
    let Some(failure) = failure_of(&attempt.outcome) else { return };
    prepared.metrics.publish_failed(counted(&failure));
    context.engine.progress(cursor, |progress| progress.failed += 1);
    let meaning = meaning(attempt, &failure);
    let again = meaning.message != ForMessage::Fails;
    if !again {
        prepared.counters.failed();
    }
    tracing::warn!(
        cursor,
        id,
        schedule,
        tenant,
        class = failure.class.as_str(),
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        attempt = action.attempts + 1,
        ambiguous = failure.ambiguous,
        again,
        "action failed"
    );
    context.failures.follow(meaning, &failure, &prepared.seat.fingerprint, &id.to_string()).await;
    if meaning.relay == ForRelay::Rechecks {
        // Another secret may be there by then. Not sooner than it may be looked at: all other tenants would wait until then.
        context.checked.repeat_if_due();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_is_poison_and_an_interruption_is_not() {
        let timed_out = failure_of(&ActionOutcome::TimedOut { ambiguous: true }).expect("a failure");
        assert_eq!((timed_out.class, timed_out.ambiguous), (Class::Poison, true));
        let cut = failure_of(&ActionOutcome::Cut { ambiguous: true }).expect("a failure");
        assert_eq!((cut.class, cut.ambiguous), (Class::Retry, true));
    }
}
