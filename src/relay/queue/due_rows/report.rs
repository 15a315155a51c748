//! What is logged and counted of attempts to send due rows, and what halts the relay.

use std::time::Instant;

use super::job::{PendingJob, SendOutcome};
use super::prepare::PreparedPending;
use super::record::PendingAttempt;
use crate::relay::engine::Engine;
use crate::relay::engine::dead_letter;
use crate::relay::engine::disposition::{Disposition, ForMessage, Sender, disposition};
use crate::relay::engine::report::counted;
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
    let meaning = meaning(&context.engine, prepared, job, failure);
    tracing::warn!(
        cursor = context.config.name,
        key = id,
        class = failure.class.as_str(),
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        attempt = job.attempts + 1,
        ambiguous = failure.ambiguous,
        unknown = meaning.message == ForMessage::Unknown,
        "send failed"
    );
    context.engine.progress(&context.config.name, |progress| progress.failed += 1);
    context.failures.follow(meaning, failure, &prepared.seat.fingerprint, &id).await;
}

/// What a failure of this row means.
pub(super) fn meaning(engine: &Engine, prepared: &PreparedPending, job: &PendingJob, failure: &Failure) -> Disposition {
    let sender = Sender::Pending {
        on_poison: prepared.config.on_poison,
        several: false,
        passed: prepared.marks_first(),
        once: engine.once().is_some(),
        attempts: job.attempts,
    };
    disposition(sender, failure)
}

/// A row is dead-lettered only after the topic of the dead letters has its copy; before any transaction begins. While the topic is out,
/// what was sent must not wait for it once for each row: the claims of those would expire.
pub(super) async fn copy(
    context: &Context<PreparedPending>,
    prepared: &PreparedPending,
    attempt: &mut PendingAttempt,
    uncopied: &mut Option<(Instant, Failure)>,
) {
    let (SendOutcome::Failed(failure), Some(letters)) = (&attempt.outcome, &prepared.letters) else { return };
    if meaning(&context.engine, prepared, &attempt.job, failure).message != ForMessage::Fails {
        return;
    }
    let (relay, patience) = (&attempt.job.relay, context.engine.call_deadline);
    if let Some((_, why)) = uncopied.as_ref().filter(|(at, _)| at.elapsed() < patience) {
        attempt.outcome = SendOutcome::Failed(why.clone());
        return;
    }
    let letter = attempt.job.letter(prepared, failure);
    *uncopied = None;
    if let Err(why) = dead_letter::copy(relay, letters, failure, &letter, patience).await {
        *uncopied = Some((Instant::now(), why.clone()));
        attempt.outcome = SendOutcome::Failed(why);
    }
}

/// Tells of a row that has been dead-lettered.
pub(super) fn dead_lettered(engine: &Engine, prepared: &PreparedPending, attempt: &PendingAttempt) {
    let SendOutcome::Failed(failure) = &attempt.outcome else { return };
    if meaning(engine, prepared, &attempt.job, failure).message == ForMessage::Fails {
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
    let failure = unmarkable().of_relay(&context.config.name);
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
