//! What follows from a failure of an action, and what is logged and counted.

use std::time::Duration;

use super::job::ActionOutcome;
use super::prepare::PreparedSchedule;
use super::record::ActionAttempt;
use crate::relay::engine::report::counted;
use crate::relay::queue::failure_tracker::{is_unsent, pause};
use crate::relay::queue::work::Context;
use crate::sink::{Class, Failure};

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActionDisposition {
    /// It is retried, this much later.
    Waits(Duration),
    /// It ends.
    Fails,
}

/// What follows from a failure of an action. `retries`: what nobody knows the outcome of may be done again.
pub(super) fn disposition(failure: &Failure, attempts: i32, retries: bool) -> ActionDisposition {
    match failure.class {
        // Another try could do it twice.
        _ if failure.ambiguous && !retries => ActionDisposition::Fails,
        Class::Poison => ActionDisposition::Fails,
        // Wrong credentials are fixed for all actions at once: none of them is to blame, and none stops another tenant's.
        Class::Fatal => ActionDisposition::Waits(pause(attempts.max(4), failure)),
        Class::Retry => {
            ActionDisposition::Waits(pause(if is_unsent(failure) { attempts.min(4) } else { attempts }, failure))
        }
    }
}

/// A failure that says what an end in the midst means.
pub(super) fn failure_of(outcome: &ActionOutcome) -> Option<Failure> {
    Some(match outcome {
        ActionOutcome::Done(_) | ActionOutcome::Recorded | ActionOutcome::Skipped(_) => return None,
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
        ActionOutcome::Failed(_) | ActionOutcome::TimedOut { .. } | ActionOutcome::Cut { .. } => {}
    }
    let Some(failure) = failure_of(&attempt.outcome) else { return };
    prepared.metrics.publish_failed(counted(&failure));
    context.engine.progress(cursor, |progress| progress.failed += 1);
    let again = disposition(&failure, action.attempts, action.retries) != ActionDisposition::Fails;
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
    if !matches!(attempt.outcome, ActionOutcome::Cut { .. }) {
        context.failures.unsuccessful(&failure).await;
    }
    if failure.class == Class::Fatal {
        context.failures.report(&failure).await;
        // Another secret may be there by then. Not sooner than it may be looked at: all other tenants would wait until then.
        context.checked.repeat_if_due();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: Class, ambiguous: bool) -> Failure {
        Failure { ambiguous, ..Failure::of(class, "x", "", "") }
    }

    #[test]
    fn what_nobody_knows_is_tried_again_only_where_the_schedule_says_so() {
        assert!(matches!(disposition(&failure(Class::Retry, true), 0, true), ActionDisposition::Waits(_)));
        assert_eq!(disposition(&failure(Class::Retry, true), 0, false), ActionDisposition::Fails);
    }

    // Guarantee: schedules.outage
    #[test]
    fn an_outage_or_wrong_credentials_fail_no_action_and_a_refusal_does() {
        for retries in [true, false] {
            assert!(matches!(disposition(&failure(Class::Retry, false), 100, retries), ActionDisposition::Waits(_)));
            assert!(matches!(disposition(&failure(Class::Fatal, false), 0, retries), ActionDisposition::Waits(_)));
            assert_eq!(disposition(&failure(Class::Poison, false), 0, retries), ActionDisposition::Fails);
        }
    }

    #[test]
    fn what_took_too_long_has_failed_and_what_was_cut_is_the_schedules_to_decide() {
        let timed_out = failure_of(&ActionOutcome::TimedOut { ambiguous: true }).expect("a failure");
        assert_eq!(disposition(&timed_out, 0, true), ActionDisposition::Fails);
        let cut = failure_of(&ActionOutcome::Cut { ambiguous: true }).expect("a failure");
        assert_eq!(disposition(&cut, 0, false), ActionDisposition::Fails);
        assert!(matches!(disposition(&cut, 0, true), ActionDisposition::Waits(_)));
    }
}
