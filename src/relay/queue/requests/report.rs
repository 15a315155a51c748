//! What follows from a failure of a request, and what is logged and counted.

use super::job::RequestOutcome;
use super::prepare::PreparedRequests;
use super::record::RequestAttempt;
use crate::cursor::ledger::End;
use crate::position::Timestamp;
use crate::relay::engine::report::counted;
use crate::relay::queue::work::Context;
use crate::relay::{OnPoison, OnUnknown};
use crate::sink::{Class, Failure, Subject};

/// What a failure does to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestDisposition {
    /// It is retried.
    Waits,
    /// It ends.
    Ends(End),
    /// It is retried when the relay runs again.
    Halts,
}

/// What follows from a failure of a request. `doubted`: a try before may have been accepted, so that a refusal of this one
/// says nothing of the request.
pub(super) fn disposition(
    failure: &Failure,
    doubted: bool,
    on_poison: OnPoison,
    on_unknown: OnUnknown,
) -> RequestDisposition {
    match (failure.class, on_poison, on_unknown) {
        _ if failure.ambiguous && on_unknown == OnUnknown::DeadLetter => RequestDisposition::Ends(End::Unknown),
        (Class::Retry, _, _) => RequestDisposition::Waits,
        // Its key is in use: the try before is still at work there.
        (Class::Poison, _, OnUnknown::Resend | OnUnknown::Ask) if doubted && failure.subject == Subject::KeyInUse => {
            RequestDisposition::Waits
        }
        (Class::Poison, OnPoison::DeadLetter, _) if doubted => RequestDisposition::Ends(End::Unknown),
        (Class::Poison, OnPoison::DeadLetter, _) => RequestDisposition::Ends(End::Failed),
        (Class::Poison, OnPoison::Halt, _) | (Class::Fatal, _, _) => RequestDisposition::Halts,
    }
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
    let disposition = disposition(failure, job.again, prepared.config.on_poison, prepared.config.on_unknown);
    tracing::warn!(
        cursor = name,
        id = job.id,
        class = failure.class.as_str(),
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        attempt = job.attempts + 1,
        ambiguous = failure.ambiguous,
        ends = matches!(disposition, RequestDisposition::Ends(_)),
        "send failed"
    );
    context.engine.progress(name, |progress| progress.failed += 1);
    match disposition {
        RequestDisposition::Halts => {
            context.failures.halt(&prepared.seat.fingerprint, failure, Some(&job.id)).await;
        }
        // A `run --once` tries each request once: the next run begins with the same ones.
        RequestDisposition::Waits
            if context.engine.once().is_some() && failure.ambiguous && failure.retry_after.is_none() =>
        {
            context.failures.answered(failure).await;
        }
        // While the receiver does not answer, each attempt costs a request its certainty.
        _ if failure.is_outage() || failure.retry_after.is_some() => context.failures.out(failure).await,
        RequestDisposition::Ends(_) => context.failures.recovered().await,
        RequestDisposition::Waits => context.failures.answered(failure).await,
    }
    if disposition == RequestDisposition::Ends(End::Failed) {
        prepared.metrics.dead_lettered();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: Class, ambiguous: bool) -> Failure {
        Failure { ambiguous, ..Failure::of(class, "x", "", "") }
    }

    #[test]
    fn an_outcome_that_nobody_knows_ends_the_request_unless_it_may_be_sent_again() {
        let unknown = failure(Class::Retry, true);
        for (on_poison, doubted) in [(OnPoison::Halt, false), (OnPoison::DeadLetter, true)] {
            assert_eq!(
                disposition(&unknown, doubted, on_poison, OnUnknown::DeadLetter),
                RequestDisposition::Ends(End::Unknown)
            );
            assert_eq!(disposition(&unknown, doubted, on_poison, OnUnknown::Resend), RequestDisposition::Waits);
            assert_eq!(disposition(&unknown, doubted, on_poison, OnUnknown::Ask), RequestDisposition::Waits);
        }
    }

    // Guarantee: requests.silence
    #[test]
    fn what_was_certainly_not_sent_never_ends_as_unknown() {
        for on_unknown in [OnUnknown::DeadLetter, OnUnknown::Resend, OnUnknown::Ask] {
            assert_eq!(
                disposition(&failure(Class::Retry, false), false, OnPoison::Halt, on_unknown),
                RequestDisposition::Waits
            );
            let poison = failure(Class::Poison, false);
            assert_eq!(
                disposition(&poison, false, OnPoison::DeadLetter, on_unknown),
                RequestDisposition::Ends(End::Failed)
            );
            assert_eq!(disposition(&poison, false, OnPoison::Halt, on_unknown), RequestDisposition::Halts);
            assert_eq!(
                disposition(&failure(Class::Fatal, false), false, OnPoison::DeadLetter, on_unknown),
                RequestDisposition::Halts
            );
        }
    }

    #[test]
    fn a_refusal_after_a_doubt_does_not_say_that_nothing_was_sent() {
        for on_unknown in [OnUnknown::DeadLetter, OnUnknown::Resend, OnUnknown::Ask] {
            let refused = disposition(&failure(Class::Poison, false), true, OnPoison::DeadLetter, on_unknown);
            assert_eq!(refused, RequestDisposition::Ends(End::Unknown));
        }
        let in_use = failure(Class::Poison, false).about(Subject::KeyInUse);
        assert_eq!(disposition(&in_use, true, OnPoison::DeadLetter, OnUnknown::Resend), RequestDisposition::Waits);
        assert_eq!(
            disposition(&in_use, false, OnPoison::DeadLetter, OnUnknown::Resend),
            RequestDisposition::Ends(End::Failed)
        );
    }
}
