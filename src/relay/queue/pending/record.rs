//! One transaction that records what became of claimed rows.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Desk;
use super::ready::Ready;
use super::task::{Attempt, Outcome, Task};
use crate::cursor::ErrorReport;
use crate::cursor::claims::{Settlement, Taking};
use crate::database::Error;
use crate::position::Timestamp;
use crate::relay::engine::Slot;
use crate::relay::engine::deadline::within;
use crate::relay::engine::report;
use crate::relay::queue::failure_tracker::{is_unsent, pause};
use crate::relay::{Guarantee, OnPoison};
use crate::sink::{Class, Failure};
use crate::source::pending::Key;

/// Which of the rows that were sent are not marked.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    /// Somebody keeps them locked: they are marked when they are free.
    pub(super) locked: HashSet<Key>,
    /// They were free, and the mark has not stayed.
    pub(super) unmarkable: HashSet<Key>,
    /// They are marked, and their claim was another's, or recorded already.
    pub(super) unclaimed: HashSet<Key>,
}

impl Desk {
    /// Records attempts in one transaction.
    pub(super) async fn record(&self, ready: &Ready, attempts: &[Attempt]) -> Result<Recorded, Error> {
        let Slot { lock, reader, permits } = self.engine.slot(false).await?;
        drop(reader);
        let recording = async {
            let durable = ready.config.sink.one_by_one() || ready.config.guarantee == Guarantee::AtMostOnce;
            let settlement = Settlement::begin(lock, durable).await?;
            let sent: Vec<&Task> =
                attempts.iter().filter(|a| matches!(a.outcome, Outcome::Sent)).map(|a| &a.task).collect();
            let mut recorded = self.mark(ready, &settlement, &sent).await?;
            let is_done = |task: &Task| {
                !task.replayed && !recorded.locked.contains(&task.key) && !recorded.unmarkable.contains(&task.key)
            };
            let (done, _): (Vec<&Task>, Vec<&Task>) = sent.iter().partition(|task| is_done(task));
            let unclaimed = done_all(ready, &settlement, &done).await?;
            let is_open = |attempt: &&Attempt| !matches!(attempt.outcome, Outcome::Sent) || !is_done(&attempt.task);
            // Sent at once, answered together: a round trip for all, not for each.
            let closing = attempts.iter().filter(is_open).map(async |attempt| {
                if recorded.locked.contains(&attempt.task.key) {
                    Ok(()) // its claim is renewed apart
                } else if recorded.unmarkable.contains(&attempt.task.key) {
                    let (failure, id) = (unmarkable(), attempt.task.key.message_id());
                    let pause = pause(attempt.task.attempts, &failure);
                    settlement.wait(attempt.task.claim(), &report::error(&failure, Some(&id)), 1, pause).await
                } else {
                    self.close(ready, &settlement, attempt).await
                }
            });
            try_join_all(closing).await?;
            settlement.commit().await?;
            recorded.unclaimed = unclaimed;
            Ok(recorded)
        };
        let recorded = within(&self.engine, recording).await;
        drop(permits);
        recorded
    }

    /// Marks rows that were sent, unless they were marked first.
    async fn mark(&self, ready: &Ready, settlement: &Settlement, sent: &[&Task]) -> Result<Recorded, Error> {
        if sent.is_empty() || ready.config.guarantee == Guarantee::AtMostOnce {
            return Ok(Recorded::default());
        }
        let (columns, due) = columns(ready, sent);
        let mut parameters = listed(ready, &columns, &due);
        let unmarked = parameters.clone();
        parameters.push(&self.engine.replica);
        let rows = settlement.query(Taking { sql: &ready.due.mark_sql(), parameters: &parameters }).await?;
        let unmarkable = keys(&rows)?;
        if !ready.due.marks_rows() {
            return Ok(Recorded::default());
        }
        let rows = settlement.query(Taking { sql: &ready.due.unmarked_sql(), parameters: &unmarked }).await?;
        let locked = keys(&rows)?.difference(&unmarkable).cloned().collect();
        Ok(Recorded { locked, unmarkable, unclaimed: HashSet::new() })
    }

    /// Records one attempt, all but the mark.
    async fn close(&self, ready: &Ready, settlement: &Settlement, attempt: &Attempt) -> Result<(), Error> {
        let task = &attempt.task;
        let id = task.key.message_id();
        let failure = match &attempt.outcome {
            Outcome::Sent => {
                if task.replayed {
                    settlement.redriven(&task.relay, &id, &self.engine.replica).await?;
                }
                return settlement.done(task.claim()).await;
            }
            Outcome::Untried => {
                let error = report_untried();
                return settlement.wait(task.claim(), &error, 0, Duration::ZERO).await;
            }
            Outcome::Failed(failure) => failure,
        };
        let error = report::error(failure, Some(&id));
        match (failure.class, ready.config.on_poison) {
            _ if is_unknown(ready, failure) => {
                if task.replayed {
                    settlement.redriven(&task.relay, &id, &self.engine.replica).await?;
                }
                settlement.unknown(task.claim(), &error).await
            }
            (Class::Poison, OnPoison::DeadLetter) => {
                let letter = task.letter(ready);
                settlement.bury(task.claim(), &letter, &error, &self.engine.replica).await
            }
            (Class::Fatal, _) => settlement.wait(task.claim(), &error, 0, Duration::ZERO).await,
            _ if is_unsent(failure) => settlement.wait(task.claim(), &error, 0, pause(0, failure)).await,
            _ => settlement.wait(task.claim(), &error, 1, pause(task.attempts, failure)).await,
        }
    }
}

/// Ends the claims of rows that were sent; the keys of those that had none with their token any more.
async fn done_all(ready: &Ready, settlement: &Settlement, done: &[&Task]) -> Result<HashSet<Key>, Error> {
    if done.is_empty() {
        return Ok(HashSet::new());
    }
    let (columns, due) = columns(ready, done);
    let tokens: Vec<&str> = done.iter().map(|task| task.token.as_str()).collect();
    let mut parameters = listed(ready, &columns, &due);
    parameters.push(&tokens);
    let ended = keys(&settlement.query(Taking { sql: &ready.due.done_sql(), parameters: &parameters }).await?)?;
    Ok(done.iter().map(|task| &task.key).filter(|key| !ended.contains(*key)).cloned().collect())
}

/// The rows' keys column by column, and when they were due.
fn columns<'a>(ready: &Ready, tasks: &[&'a Task]) -> (Vec<Vec<&'a str>>, Vec<Timestamp>) {
    let keys = (0..ready.pending.key.len())
        .map(|column| tasks.iter().map(|task| task.key.0[column].as_str()).collect())
        .collect();
    (keys, tasks.iter().map(|task| task.due_at).collect())
}

fn listed<'a>(ready: &'a Ready, columns: &'a [Vec<&'a str>], due: &'a Vec<Timestamp>) -> Vec<&'a (dyn ToSql + Sync)> {
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&ready.config.name];
    parameters.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
    parameters.push(due);
    parameters
}

fn keys(rows: &[Row]) -> Result<HashSet<Key>, Error> {
    Ok(rows.iter().map(|row| row.try_get(0).map(Key)).collect::<Result<_, _>>()?)
}

/// A row whose mark has not stayed.
pub(super) fn unmarkable() -> Failure {
    Failure::of(
        Class::Fatal,
        "mark_without_effect",
        "setting the row's mark changes nothing: going on, it would be sent again and again, or at most once never",
        "A trigger or a rule of the table takes the mark back: mend it, then `outbox-relay cursor resume NAME`.",
    )
}

/// Under at_most_once, what the receiver may have is never sent again.
pub(super) fn is_unknown(ready: &Ready, failure: &Failure) -> bool {
    ready.config.guarantee == Guarantee::AtMostOnce && failure.ambiguous
}

fn report_untried() -> ErrorReport<'static> {
    ErrorReport {
        class: Class::Retry.as_str(),
        code: "not_tried",
        message: "The row was claimed and not sent: the one before it failed, or time was up",
        hint: "It is tried again at once.",
        message_id: None,
    }
}
