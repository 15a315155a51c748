//! Due rows that were sent and cannot be marked: they will be sent again, and that is logged.

use super::job::{PendingJob, SendOutcome};
use super::prepare::PreparedPending;
use super::record::PendingAttempt;
use crate::database::{Error, sqlstate};
use crate::jobs::Settlement;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::pause;
use crate::relay::engine::report;
use crate::relay::engine::{Engine, Single};
use crate::relay::queue::work::Job as _;
use crate::sink::{Class, Failure};

/// The server refuses to record what became of this row. Whether it waits now, and is sent again; otherwise its table may have
/// changed.
pub(super) async fn refused(
    engine: &Engine,
    prepared: &PreparedPending,
    attempt: &PendingAttempt,
    error: &Error,
) -> Result<bool, Error> {
    if !sqlstate::is_of_application(error) || prepared.marks_first() || !attempt.is_acknowledged() {
        return Ok(false);
    }
    let failure = Failure::of(
        Class::Retry,
        &sqlstate::word(error),
        format!("the row was sent, and the server refuses to mark it: {error}"),
        "See what a trigger or a constraint of the table says to setting the mark.",
    );
    not_marked(engine, prepared, &attempt.job, &failure).await?;
    Ok(true)
}

/// The row could not be marked for long, or the process ends.
pub(super) async fn give_up(
    engine: &Engine,
    prepared: &PreparedPending,
    attempt: &PendingAttempt,
) -> Result<(), Error> {
    if prepared.marks_first() {
        let (cursor, key) = (&prepared.config.name, attempt.job.id());
        tracing::error!(cursor, key, "cannot record the outcome of a row: listed as unknown when its claim expires");
        return Ok(());
    }
    if !matches!(attempt.outcome, SendOutcome::Sent) {
        return Ok(()); // it is due again when its claim expires
    }
    let failure = Failure::of(
        Class::Retry,
        "row_locked",
        "the row was sent, and could not be marked for too long: a transaction of the application has kept it locked, or the \
         server refuses, as lines above say",
        "End that transaction, or correct what is refused; the mark is set in an instant.",
    );
    not_marked(engine, prepared, &attempt.job, &failure).await
}

/// The row was sent and is not marked: it will be sent again.
async fn not_marked(
    engine: &Engine,
    prepared: &PreparedPending,
    job: &PendingJob,
    failure: &Failure,
) -> Result<(), Error> {
    prepared.numbers.sent_not_marked();
    engine.progress(&prepared.config.name, |progress| progress.failed += 1);
    let id = job.key.message_id();
    tracing::warn!(
        cursor = prepared.config.name,
        key = id,
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        "sent, not marked: it will be sent again"
    );
    let Single { connection, right: _right } = engine.single().await?;
    let recording = async {
        let settlement = Settlement::begin(connection, true).await?;
        settlement.wait(job.claim(), &report::error(failure, Some(&id)), 1, pause(job.attempts, failure)).await?;
        settlement.commit().await
    };
    within(engine, recording).await
}
