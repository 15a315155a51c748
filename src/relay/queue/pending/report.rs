//! What is logged and counted of attempts to send due rows, and what halts the relay.

use std::time::Instant;

use super::job::SendOutcome;
use super::prepare::PreparedPending;
use super::record::PendingAttempt;
use crate::relay::OnPoison;
use crate::relay::engine::dead_letter;
use crate::relay::engine::report::counted;
use crate::relay::queue::failure_tracker::is_unsent;
use crate::relay::queue::work::Context;
use crate::sink::{Class, Failure};
use crate::source::pending::Key;

/// Logs, counts and, where an operator must correct something, halts.
pub(super) async fn report(
    context: &mut Context<PreparedPending>,
    prepared: &PreparedPending,
    attempt: &PendingAttempt,
) {
    let (job, id) = (&attempt.job, attempt.job.key.message_id());
    let failure = match &attempt.outcome {
        SendOutcome::Untried => return,
        SendOutcome::Sent => {
            prepared.metrics.published(1);
            context.engine.progress(&context.config.name, |progress| progress.sent += 1);
            prepared.numbers.sent(job.late + job.claimed.elapsed());
            context.failures.recovered().await;
            return;
        }
        SendOutcome::Failed(failure) => failure,
    };
    prepared.metrics.publish_failed(counted(failure));
    prepared.numbers.send_failed();
    let unknown = is_unknown(prepared, failure);
    tracing::warn!(
        cursor = context.config.name,
        key = id,
        class = failure.class.as_str(),
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        attempt = job.attempts + 1,
        unknown,
        "send failed"
    );
    context.engine.progress(&context.config.name, |progress| progress.failed += 1);
    let buried = failure.class == Class::Poison && prepared.config.on_poison == OnPoison::DeadLetter;
    if failure.class != Class::Retry && !buried {
        context.failures.halt(&prepared.seat.fingerprint, failure, Some(&id)).await;
    } else if failure.class == Class::Retry && (is_out(context, failure) || is_unsent(failure) || unknown) {
        // Each try that is not answered may be received twice; under at_most_once it costs a row.
        context.failures.out(failure).await;
    } else if buried {
        // It has answered: whatever stood between is over.
        context.failures.recovered().await;
    } else {
        context.failures.answered(failure).await;
    }
}

/// The receiver may have the row without having said so, and would not take another. A `run --once` tries each row once all the
/// same: the next run begins with the same rows, and those that always fail would be all that is ever tried.
fn is_out(context: &Context<PreparedPending>, failure: &Failure) -> bool {
    failure.is_outage() && context.engine.once().is_none()
}

/// A row is put aside only after the topic of the dead letters has its copy; before any transaction begins. While the topic is out,
/// what was sent must not wait for it once for each row: the claims of those would expire.
pub(super) async fn copy(
    context: &Context<PreparedPending>,
    prepared: &PreparedPending,
    attempt: &mut PendingAttempt,
    uncopied: &mut Option<(Instant, Failure)>,
) {
    let (SendOutcome::Failed(failure), Some(letters)) = (&attempt.outcome, &prepared.letters) else { return };
    if is_unknown(prepared, failure)
        || failure.class != Class::Poison
        || prepared.config.on_poison != OnPoison::DeadLetter
    {
        return;
    }
    let (relay, patience) = (&attempt.job.relay, context.engine.call_deadline);
    if let Some((_, why)) = uncopied.as_ref().filter(|(at, _)| at.elapsed() < patience) {
        attempt.outcome = SendOutcome::Failed(why.clone());
        return;
    }
    let letter = attempt.job.letter(prepared);
    *uncopied = None;
    if let Err(why) = dead_letter::copy(relay, letters, failure, &letter, patience).await {
        *uncopied = Some((Instant::now(), why.clone()));
        attempt.outcome = SendOutcome::Failed(why);
    }
}

/// Tells of a row that has been put aside.
pub(super) fn dead_lettered(prepared: &PreparedPending, attempt: &PendingAttempt) {
    let SendOutcome::Failed(failure) = &attempt.outcome else { return };
    if failure.class == Class::Poison
        && prepared.config.on_poison == OnPoison::DeadLetter
        && !is_unknown(prepared, failure)
    {
        prepared.metrics.dead_lettered();
        let (key, code) = (attempt.job.key.message_id(), &failure.code);
        tracing::error!(cursor = prepared.config.name, key, code, "row dead-lettered");
    }
}

/// The row's mark does not stay: going on would send it indefinitely, or never.
pub(super) async fn mark_without_effect(context: &mut Context<PreparedPending>, prepared: &PreparedPending, key: &Key) {
    // What is marked first has not been sent.
    if !prepared.marks_first() {
        prepared.numbers.sent_not_marked();
        context.engine.unrecorded.lost(&context.config.name, 1);
    }
    context.engine.progress(&context.config.name, |progress| progress.failed += 1);
    let mut failure = unmarkable();
    failure.hint = failure.hint.replace("NAME", &context.config.name);
    context.failures.halt(&prepared.seat.fingerprint, &failure, Some(&key.message_id())).await;
}

/// A row whose mark has not stayed.
pub(super) fn unmarkable() -> Failure {
    Failure::of(
        Class::Fatal,
        "mark_without_effect",
        "setting the row's mark changes nothing: going on, it would be sent again and again, or at most once never",
        "A trigger or a rule of the table takes the mark back: fix it, then `outbox-relay cursor resume NAME`.",
    )
}

/// Under at_most_once, what the receiver may have is never sent again.
pub(super) fn is_unknown(prepared: &PreparedPending, failure: &Failure) -> bool {
    prepared.marks_first() && failure.ambiguous
}
