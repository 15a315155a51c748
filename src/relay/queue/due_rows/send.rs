//! Sends claimed due rows: no lock is held, nothing of the database is waited for.

use std::time::{Duration, Instant};

use super::job::{PendingJob, SendOutcome};
use super::prepare::PreparedPending;
use super::record::PendingAttempt;
use crate::batch::Batch;
use crate::relay::engine::Engine;
use crate::relay::engine::disposition::{ForMessage, Sender, disposition};
use crate::relay::queue::work::Attempt;
use crate::sink::{Class, Mark, Mode, Published};

/// Sends rows that were claimed together, in order; what became of each.
///
/// A row that is refused holds no other up. When the receiver is out, the rest is not tried: it would fail, too.
pub(super) async fn send(engine: &Engine, prepared: &PreparedPending, jobs: Vec<PendingJob>) -> Vec<PendingAttempt> {
    let mut rest: std::collections::VecDeque<PendingJob> = jobs.into();
    let mut ended = Vec::with_capacity(rest.len());
    // What is never sent again must not be on its way behind a row that fails.
    let mut alone = prepared.marks_first();
    while let Some(first) = rest.front() {
        // A publication may take as long as a turn, and must end before the claim does.
        if first.claimed.elapsed() + prepared.config.turn.deadline >= prepared.config.turn.lock_kill() {
            break;
        }
        if let Some(failure) = first.refused(prepared.due.largest()) {
            ended.extend(rest.pop_front().map(|job| Attempt::new(job, SendOutcome::Failed(failure))));
            continue;
        }
        // A cluster that cannot be reached would cost the row under at_most_once; asking it costs nothing.
        if alone && let Err(failure) = prepared.sink.reach(&first.message.message(0), engine.call_deadline).await {
            ended.extend(rest.pop_front().map(|job| Attempt::new(job, SendOutcome::Failed(failure))));
            break;
        }
        let (replayed, first_attempts) = (first.replayed, first.attempts);
        let group = rest.iter().take_while(|job| job.replayed == replayed && job.too_large.is_none()).count();
        let published = publish(
            engine,
            prepared,
            rest.range(..group),
            Mode { alone, mark: replayed.then_some(Mark::Replayed), ..Mode::default() },
        )
        .await;
        ended.extend(rest.drain(..published.acknowledged).map(|job| Attempt::new(job, SendOutcome::Sent)));
        let Some(failure) = published.stopped else { if published.acknowledged < group { break } else { continue } };
        let sender = Sender::Pending {
            on_poison: prepared.config.on_poison,
            several: published.suspects > 1,
            passed: prepared.marks_first(),
            once: engine.once().is_some(),
            attempts: first_attempts,
        };
        if disposition(sender, &failure).message == ForMessage::Isolated {
            alone = true; // one of the next is to blame: each waits for the one before
            continue;
        }
        let goes_on = failure.class == Class::Poison;
        ended.extend(rest.pop_front().map(|job| Attempt::new(job, SendOutcome::Failed(failure))));
        if !goes_on {
            break;
        }
    }
    ended.extend(rest.into_iter().map(|job| Attempt::new(job, SendOutcome::Untried)));
    ended
}

/// One publication of some rows, bounded by the turn's deadline and the end of the grace period. A row that is never sent again
/// is handed over only while there is time for its answer.
async fn publish<'a>(
    engine: &Engine,
    prepared: &PreparedPending,
    jobs: impl Iterator<Item = &'a PendingJob>,
    mode: Mode,
) -> Published {
    let deadline = Instant::now() + prepared.config.turn.deadline;
    let answer = if prepared.marks_first() { prepared.config.turn.call_deadline() } else { Duration::ZERO };
    let until = deadline.checked_sub(answer).unwrap_or(deadline);
    let mut publication = match prepared.sink.begin(Mode { until: Some(until), cut: Some(deadline), ..mode }).await {
        Ok(publication) => publication,
        Err(failure) => return Published { acknowledged: 0, stopped: Some(failure), suspects: 1 },
    };
    let fields = prepared.sink.fields().len();
    let mut batch = Batch::of_due_rows(fields);
    for job in jobs {
        let message = job.message.message(0);
        batch.push(message.created_at, message.id, (0..fields).map(|field| message.value(field)));
    }
    tokio::select! {
        biased;
        () = tokio::time::sleep_until(deadline.into()) => {}
        () = engine.cut.cancelled() => {}
        () = async {
            publication.push(&batch).await;
            publication.settle().await;
        } => {}
    }
    publication.finish()
}
