//! One transaction that records what became of claimed due rows.
//!
//! Promise: a row counts as sent only when the receiver said so, and is marked in a transaction that waits for nobody's lock.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::job::{PendingJob, SendOutcome};
use super::names;
use super::prepare::PreparedPending;
use super::report::{meaning, unmarkable};
use crate::cursor::{ErrorReport, Taking};
use crate::database::Error;
use crate::jobs::Settlement;
use crate::position::Timestamp;
use crate::relay::engine::deadline::within;
use crate::relay::engine::disposition::{ForMessage, pause};
use crate::relay::engine::report;
use crate::relay::engine::{Engine, Single};
use crate::relay::queue::work::{Attempt, Recorded};
use crate::sink::Class;
use crate::source::pending::Key;

pub(super) type PendingAttempt = Attempt<PendingJob, SendOutcome>;

/// Which of the rows that were sent are not marked.
#[derive(Debug, Default)]
struct Marks {
    /// Somebody keeps them locked: they are marked when they are free.
    locked: HashSet<Key>,
    /// They were free, and the mark has not stayed.
    unmarkable: HashSet<Key>,
}

impl Marks {
    /// The outcome of this one; of the rows that were sent, the `unclaimed` had no claim of their own any more.
    fn of(&self, prepared: &PreparedPending, attempt: &PendingAttempt, unclaimed: &HashSet<Key>) -> Recorded {
        let key = &attempt.job.key;
        if self.locked.contains(key) {
            Recorded::NotYet
        } else if self.unmarkable.contains(key) {
            Recorded::Ineffective
        } else if unclaimed.contains(key) {
            // What is marked after it was sent is marked now, also when another has the claim.
            Recorded::Taken { marked: !prepared.marks_first() }
        } else {
            Recorded::Done
        }
    }
}

/// Records attempts in one transaction; the outcome of each.
pub(super) async fn record(
    engine: &Engine,
    prepared: &PreparedPending,
    attempts: &[PendingAttempt],
) -> Result<Vec<Recorded>, Error> {
    let Single { connection, right: _right } = engine.single().await?;
    let recording = async {
        let durable = prepared.config.sink.one_by_one() || prepared.marks_first();
        let settlement = Settlement::begin(connection, durable).await?;
        let sent: Vec<&PendingJob> =
            attempts.iter().filter(|a| matches!(a.outcome, SendOutcome::Sent)).map(|a| &a.job).collect();
        let marks = mark(engine, prepared, &settlement, &sent).await?;
        let is_done = |job: &PendingJob| {
            !job.replayed && !marks.locked.contains(&job.key) && !marks.unmarkable.contains(&job.key)
        };
        let (done, _): (Vec<&PendingJob>, Vec<&PendingJob>) = sent.iter().partition(|job| is_done(job));
        let unclaimed = done_all(prepared, &settlement, &done).await?;
        let is_open =
            |attempt: &&PendingAttempt| !matches!(attempt.outcome, SendOutcome::Sent) || !is_done(&attempt.job);
        // Sent at once, answered together: a round trip for all, not for each.
        let closing = attempts.iter().filter(is_open).map(async |attempt| {
            if marks.locked.contains(&attempt.job.key) {
                Ok(()) // its claim is renewed apart
            } else if marks.unmarkable.contains(&attempt.job.key) {
                let (failure, id) = (unmarkable(), attempt.job.key.message_id());
                let pause = pause(attempt.job.attempts, &failure);
                settlement.wait(attempt.job.claim(), &report::error(&failure, Some(&id)), 1, pause).await
            } else {
                close(engine, prepared, &settlement, attempt).await
            }
        });
        try_join_all(closing).await?;
        if !names::hold_for_record(&prepared.due, &settlement).await? {
            // Their keys may name other rows now: recorded when the labels are back, or given up as what stays locked.
            settlement.abandon().await?;
            return Ok(attempts.iter().map(|_| Recorded::NotYet).collect());
        }
        settlement.commit().await?;
        Ok(attempts.iter().map(|attempt| marks.of(prepared, attempt, &unclaimed)).collect())
    };
    within(engine, recording).await
}

/// Marks rows that were sent, unless they were marked first.
async fn mark(
    engine: &Engine,
    prepared: &PreparedPending,
    settlement: &Settlement,
    sent: &[&PendingJob],
) -> Result<Marks, Error> {
    if sent.is_empty() || prepared.marks_first() {
        return Ok(Marks::default());
    }
    let (columns, due) = columns(prepared, sent);
    let mut parameters = listed(prepared, &columns, &due);
    let unmarked = parameters.clone();
    parameters.push(&engine.replica);
    let rows = settlement.query(Taking { sql: &prepared.due.mark_sql(), parameters: &parameters }).await?;
    let unmarkable = keys(&rows)?;
    if !prepared.due.marks_rows() {
        return Ok(Marks::default());
    }
    let rows = settlement.query(Taking { sql: &prepared.due.unmarked_sql(), parameters: &unmarked }).await?;
    let locked = keys(&rows)?.difference(&unmarkable).cloned().collect();
    Ok(Marks { locked, unmarkable })
}

/// Records one attempt, all but the mark.
async fn close(
    engine: &Engine,
    prepared: &PreparedPending,
    settlement: &Settlement,
    attempt: &PendingAttempt,
) -> Result<(), Error> {
    let job = &attempt.job;
    let id = job.key.message_id();
    let failure = match &attempt.outcome {
        SendOutcome::Sent => {
            if job.replayed {
                settlement.redriven(&job.relay, &id, job.due_at, &engine.replica).await?;
            }
            return settlement.done(job.claim()).await;
        }
        SendOutcome::Untried => {
            let error = report_untried();
            return settlement.wait(job.claim(), &error, 0, Duration::ZERO).await;
        }
        SendOutcome::Failed(failure) => failure,
    };
    let error = report::error(failure, Some(&id));
    match meaning(engine, prepared, job, failure).message {
        ForMessage::Unknown => {
            if job.replayed {
                settlement.redriven(&job.relay, &id, job.due_at, &engine.replica).await?;
            }
            settlement.unknown(job.claim(), &error).await
        }
        ForMessage::Fails => {
            let letter = job.letter(prepared, failure);
            settlement.bury(job.claim(), &letter, &error, &engine.replica).await
        }
        ForMessage::Waits(wait) => {
            let pause = wait.pause(failure, prepared.config.turn.lock_kill());
            settlement.wait(job.claim(), &error, wait.attempts(), pause).await
        }
        ForMessage::Blocks | ForMessage::Isolated => settlement.wait(job.claim(), &error, 0, Duration::ZERO).await,
    }
}

/// Ends the claims of rows that were sent; the keys of those that had none with their token any more.
async fn done_all(
    prepared: &PreparedPending,
    settlement: &Settlement,
    done: &[&PendingJob],
) -> Result<HashSet<Key>, Error> {
    if done.is_empty() {
        return Ok(HashSet::new());
    }
    let (columns, due) = columns(prepared, done);
    let tokens: Vec<&str> = done.iter().map(|job| job.token.as_str()).collect();
    let mut parameters = listed(prepared, &columns, &due);
    parameters.push(&tokens);
    let ended = keys(&settlement.query(Taking { sql: &prepared.due.done_sql(), parameters: &parameters }).await?)?;
    Ok(done.iter().map(|job| &job.key).filter(|key| !ended.contains(*key)).cloned().collect())
}

/// The rows' keys column by column, and when they were due.
fn columns<'a>(prepared: &PreparedPending, tasks: &[&'a PendingJob]) -> (Vec<Vec<&'a str>>, Vec<Timestamp>) {
    let keys = (0..prepared.pending.key.len())
        .map(|column| tasks.iter().map(|job| job.key.0[column].as_str()).collect())
        .collect();
    (keys, tasks.iter().map(|job| job.due_at).collect())
}

fn listed<'a>(
    prepared: &'a PreparedPending,
    columns: &'a [Vec<&'a str>],
    due: &'a Vec<Timestamp>,
) -> Vec<&'a (dyn ToSql + Sync)> {
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&prepared.config.name];
    parameters.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
    parameters.push(due);
    parameters
}

fn keys(rows: &[Row]) -> Result<HashSet<Key>, Error> {
    Ok(rows.iter().map(|row| row.try_get(0).map(Key)).collect::<Result<_, _>>()?)
}

fn report_untried() -> ErrorReport<'static> {
    ErrorReport {
        class: Class::Retry.as_str(),
        code: "not_tried",
        message: "The row was claimed and not sent: the one before it failed, time was up, or PostgreSQL did not answer the claim's commit",
        hint: "It is retried at once.",
        message_id: None,
    }
}
