//! Sending claimed rows: no lock is held, nothing of the database is waited for.

use std::sync::Arc;
use std::time::Instant;

use super::ready::Ready;
use super::task::{Attempt, Outcome, Task};
use crate::batch::Batch;
use crate::relay::Guarantee;
use crate::relay::engine::Engine;
use crate::sink::{Class, Mode, Published};

/// Sends rows that were claimed together, in order; what became of each.
///
/// A row that is refused holds no other up. When the receiver is out, the rest is not tried: it would fail, too.
pub(super) async fn send(engine: Arc<Engine>, ready: Arc<Ready>, tasks: Vec<Task>) -> Vec<Attempt> {
    let mut rest: std::collections::VecDeque<Task> = tasks.into();
    let mut ended = Vec::with_capacity(rest.len());
    // What is never sent again must not be on its way behind a row that fails.
    let mut alone = ready.config.guarantee == Guarantee::AtMostOnce;
    while let Some(first) = rest.front() {
        // A publication may take as long as a turn, and must end before the claim does.
        if first.claimed.elapsed() + ready.config.turn.deadline >= ready.config.turn.lock_kill() {
            break;
        }
        if let Some(failure) = first.refused(ready.due.largest()) {
            ended.extend(rest.pop_front().map(|task| task.ended(Outcome::Failed(failure))));
            continue;
        }
        // A cluster that cannot be reached would cost the row under at_most_once; asking it costs nothing.
        if alone && let Err(failure) = ready.sink.reach(&first.message.message(0), engine.call_deadline).await {
            ended.extend(rest.pop_front().map(|task| task.ended(Outcome::Failed(failure))));
            break;
        }
        let replayed = first.replayed;
        let group = rest.iter().take_while(|task| task.replayed == replayed && task.too_large.is_none()).count();
        let published =
            publish(&engine, &ready, rest.range(..group), Mode { alone, replayed, ..Mode::default() }).await;
        ended.extend(rest.drain(..published.acknowledged).map(|task| task.ended(Outcome::Sent)));
        let Some(failure) = published.stopped else { if published.acknowledged < group { break } else { continue } };
        if published.suspects > 1 && failure.class == Class::Poison {
            alone = true; // one of the next is to blame: each waits for the one before
            continue;
        }
        let goes_on = failure.class == Class::Poison;
        ended.extend(rest.pop_front().map(|task| task.ended(Outcome::Failed(failure))));
        if !goes_on {
            break;
        }
    }
    ended.extend(rest.into_iter().map(|task| task.ended(Outcome::Untried)));
    ended
}

/// One publication of some rows, bounded by the turn's deadline and the end of the grace period.
async fn publish<'a>(engine: &Engine, ready: &Ready, tasks: impl Iterator<Item = &'a Task>, mode: Mode) -> Published {
    let deadline = Instant::now() + ready.config.turn.deadline;
    let mut publication = match ready.sink.begin(Mode { until: Some(deadline), ..mode }).await {
        Ok(publication) => publication,
        Err(failure) => return Published { acknowledged: 0, stopped: Some(failure), suspects: 1 },
    };
    let fields = ready.sink.fields().len();
    let mut batch = Batch::of_due_rows(fields);
    for task in tasks {
        let message = task.message.message(0);
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
