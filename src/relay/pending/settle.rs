//! Recording what became of claimed rows.
//!
//! Promise: a row counts as sent only when the receiver said so, and is marked in a transaction that waits for nobody's
//! lock. A row that was sent and cannot be marked keeps its claim until it can, or until the claim's time is over; then it
//! will be sent again, and that is said.

use std::collections::HashSet;
use std::time::Duration;

use futures_util::future::try_join_all;
use tokio_postgres::types::ToSql;

use super::Desk;
use super::ready::Ready;
use super::task::{Attempt, Outcome, Task};
use crate::cursor::ErrorReport;
use crate::cursor::claims::{Settlement, Taking};
use crate::database::{Error, sqlstate};
use crate::metrics::PublishError;
use crate::relay::engine::Slot;
use crate::relay::turn::within;
use crate::relay::{Guarantee, OnPoison, dead_letter, report};
use crate::sink::{Class, Failure};
use crate::source::pending::Key;

/// The first pause of a row that failed; it doubles.
const FIRST: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST: Duration = Duration::from_secs(5 * 60);

impl Desk {
    /// Records everything that has ended; what cannot be recorded yet stays for the next time.
    pub(super) async fn settle(&mut self) -> Result<(), Error> {
        let Some(ready) = self.ready.clone().filter(|_| !self.unsettled.is_empty()) else { return Ok(()) };
        let mut attempts = std::mem::take(&mut self.unsettled);
        for attempt in attempts.iter_mut().filter(|attempt| !attempt.again) {
            self.tell(&ready, attempt).await;
            attempt.again = true;
        }
        match self.record(&ready, &attempts).await {
            Ok(locked) => {
                attempts.retain(|attempt| locked.contains(&attempt.task.key));
                self.unsettled = attempts;
                self.give_up_marking(&ready).await
            }
            // The server refuses to record one of them, a trigger of the application perhaps: not the others' fault.
            Err(Error::Statement(error)) if error.as_db_error().is_some() => self.one_by_one(&ready, attempts).await,
            Err(error) => {
                self.unsettled = attempts;
                // Whoever has claimed them meanwhile decides: recording would change nothing any more.
                let lease = ready.config.turn.lock_kill() * 2;
                self.unsettled.retain(|attempt| attempt.task.claimed.elapsed() < lease);
                Err(error)
            }
        }
    }

    /// Logs, counts and, where somebody must mend it, halts.
    async fn tell(&mut self, ready: &Ready, attempt: &Attempt) {
        let (task, id) = (&attempt.task, attempt.task.key.message_id());
        let failure = match &attempt.outcome {
            Outcome::Untried => return,
            Outcome::Sent => {
                ready.metrics.published(1);
                ready.numbers.sent(task.late + task.claimed.elapsed());
                self.recovered().await;
                return;
            }
            Outcome::Failed(failure) => failure,
        };
        ready.metrics.publish_failed(match (failure.class, failure.ambiguous) {
            (Class::Poison, _) => PublishError::Poison,
            (Class::Fatal, _) => PublishError::Fatal,
            (Class::Retry, true) => PublishError::Ambiguous,
            (Class::Retry, false) => PublishError::Retry,
        });
        ready.numbers.send_failed();
        let unknown = is_unknown(ready, failure);
        tracing::warn!(
            cursor = self.config.name,
            key = id,
            class = failure.class.as_str(),
            code = failure.code,
            error = failure.message,
            hint = failure.hint,
            attempt = task.attempts + 1,
            unknown,
            "send failed"
        );
        self.engine.progress(&self.config.name, |progress| progress.failed += 1);
        let buried = failure.class == Class::Poison && ready.config.on_poison == OnPoison::DeadLetter;
        if failure.class != Class::Retry && !buried {
            self.halt(&ready.fingerprint, failure, Some(&id)).await;
        } else if buried {
            ready.metrics.dead_lettered();
            tracing::error!(cursor = self.config.name, key = id, code = failure.code, "row put aside as a dead letter");
        } else if is_unsent(failure) {
            self.out(failure).await;
        } else {
            self.outages = 0;
        }
    }

    /// The receiver is out, or wants fewer requests: not this row's fault. Pauses grow while nothing gets through.
    async fn out(&mut self, failure: &Failure) {
        self.outages = self.outages.saturating_add(1);
        if self.outages < super::OUTAGE && failure.retry_after.is_none() {
            return;
        }
        let pause = self.backoff.failed(fastrand::f64()).max(failure.retry_after.unwrap_or_default());
        self.not_before = std::time::Instant::now() + pause;
        self.reported = true;
        let error = report::error(failure, None);
        report::write(&self.engine, &self.config.name, &error, None, None).await;
    }

    /// Records attempts in one transaction; the keys of rows that were sent and are locked by somebody.
    async fn record(&self, ready: &Ready, attempts: &[Attempt]) -> Result<HashSet<Key>, Error> {
        let Slot { lock, reader, permits } = self.engine.slot(false).await?;
        drop(reader);
        let recording = async {
            let durable = ready.config.sink.one_by_one() || ready.config.guarantee == Guarantee::AtMostOnce;
            let settlement = Settlement::begin(lock, durable).await?;
            let sent: Vec<&Task> =
                attempts.iter().filter(|a| matches!(a.outcome, Outcome::Sent)).map(|a| &a.task).collect();
            let locked = self.mark(ready, &settlement, &sent).await?;
            // Sent at once, answered together: a round trip for all, not for each.
            let closing = attempts.iter().map(async |attempt| {
                if locked.contains(&attempt.task.key) {
                    settlement.keep(attempt.task.claim(), ready.config.turn.lock_kill()).await
                } else {
                    self.close(ready, &settlement, attempt).await
                }
            });
            try_join_all(closing).await?;
            settlement.commit().await?;
            Ok(locked)
        };
        let locked = within(&self.engine, recording).await;
        drop(permits);
        locked
    }

    /// Marks rows that were sent, unless they were marked first; the keys of those that are locked.
    async fn mark(&self, ready: &Ready, settlement: &Settlement, sent: &[&Task]) -> Result<HashSet<Key>, Error> {
        if sent.is_empty() || ready.config.guarantee == Guarantee::AtMostOnce {
            return Ok(HashSet::new());
        }
        let columns: Vec<Vec<&str>> = (0..ready.pending.key.len())
            .map(|column| sent.iter().map(|task| task.key.0[column].as_str()).collect())
            .collect();
        let due: Vec<_> = sent.iter().map(|task| task.due_at).collect();
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&ready.config.name];
        parameters.extend(columns.iter().map(|column| column as &(dyn ToSql + Sync)));
        parameters.push(&due);
        let unmarked = parameters.clone();
        parameters.push(&self.engine.replica);
        settlement.query(Taking { sql: &ready.due.mark_sql(), parameters: &parameters }).await?;
        if !ready.due.marks_rows() {
            return Ok(HashSet::new());
        }
        let rows = settlement.query(Taking { sql: &ready.due.unmarked_sql(), parameters: &unmarked }).await?;
        Ok(rows.iter().map(|row| row.try_get(0).map(Key)).collect::<Result<_, _>>()?)
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
            (Class::Poison, OnPoison::DeadLetter) => {
                let letter = dead_letter::letter(&ready.config, &ready.sink, &task.message.message(0));
                if let Some(letters) = &ready.letters
                    && let Err(failure) =
                        dead_letter::copy(&task.relay, letters, failure, &letter, self.engine.call_deadline).await
                {
                    let error = report::error(&failure, Some(&id));
                    return settlement.wait(task.claim(), &error, 1, pause(task.attempts, &failure)).await;
                }
                settlement.bury(task.claim(), &letter, &error, &self.engine.replica).await
            }
            _ if is_unknown(ready, failure) => settlement.unknown(task.claim(), &error).await,
            (Class::Fatal, _) => settlement.wait(task.claim(), &error, 0, Duration::ZERO).await,
            _ if is_unsent(failure) => settlement.wait(task.claim(), &error, 0, pause(0, failure)).await,
            _ => settlement.wait(task.claim(), &error, 1, pause(task.attempts, failure)).await,
        }
    }

    /// Records each alone; a row that was sent and that the server refuses to mark waits, and will be sent again.
    async fn one_by_one(&mut self, ready: &Ready, attempts: Vec<Attempt>) -> Result<(), Error> {
        let mut attempts = attempts.into_iter();
        while let Some(attempt) = attempts.next() {
            match self.record(ready, std::slice::from_ref(&attempt)).await {
                Ok(locked) if locked.is_empty() => {}
                Ok(_) => self.unsettled.push(attempt),
                Err(Error::Statement(error)) if error.as_db_error().is_some() => {
                    let failure = Failure::of(
                        Class::Retry,
                        &sqlstate::word(&Error::Statement(error)),
                        "the row was sent, and the server refuses to mark it",
                        "See what a trigger or a constraint of the table says to setting the mark.",
                    );
                    self.not_marked(ready, &attempt.task, &failure).await?;
                }
                Err(error) => {
                    self.unsettled.push(attempt);
                    self.unsettled.extend(attempts);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Rows that somebody has kept locked for as long as a claim lives are given up.
    async fn give_up_marking(&mut self, ready: &Ready) -> Result<(), Error> {
        let lease = ready.config.turn.lock_kill();
        let (late, kept) = std::mem::take(&mut self.unsettled)
            .into_iter()
            .partition(|attempt| attempt.task.claimed.elapsed() >= lease);
        self.unsettled = kept;
        let late: Vec<Attempt> = late;
        for attempt in late {
            let failure = Failure::of(
                Class::Retry,
                "row_locked",
                "the row was sent, and a transaction of the application has kept it locked ever since",
                "End that transaction; the mark is set in an instant.",
            );
            self.not_marked(ready, &attempt.task, &failure).await?;
        }
        Ok(())
    }

    /// The row was sent and is not marked: it will be sent again.
    async fn not_marked(&self, ready: &Ready, task: &Task, failure: &Failure) -> Result<(), Error> {
        ready.numbers.sent_not_marked();
        self.engine.progress(&self.config.name, |progress| progress.failed += 1);
        let id = task.key.message_id();
        tracing::warn!(
            cursor = self.config.name,
            key = id,
            code = failure.code,
            error = failure.message,
            hint = failure.hint,
            "sent, not marked: it will be sent again"
        );
        let Slot { lock, reader, permits } = self.engine.slot(false).await?;
        drop(reader);
        let recording = async {
            let settlement = Settlement::begin(lock, true).await?;
            settlement.wait(task.claim(), &report::error(failure, Some(&id)), 1, pause(task.attempts, failure)).await?;
            settlement.commit().await
        };
        let recorded = within(&self.engine, recording).await;
        drop(permits);
        recorded
    }
}

/// Under at_most_once, what the receiver may have is never sent again.
fn is_unknown(ready: &Ready, failure: &Failure) -> bool {
    ready.config.guarantee == Guarantee::AtMostOnce && failure.ambiguous && failure.class == Class::Retry
}

/// The receiver could not be reached at all, or was too busy: another row would have fared no better.
fn is_unsent(failure: &Failure) -> bool {
    failure.class == Class::Retry && !failure.ambiguous
}

/// How long a row waits after one more failure: longer each time, with jitter, and as long as the receiver wishes.
fn pause(attempts: i32, failure: &Failure) -> Duration {
    let doublings = u32::try_from(attempts.clamp(0, 20)).unwrap_or(0);
    let whole = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    whole.mul_f64(0.5 + fastrand::f64() / 2.0).max(failure.retry_after.unwrap_or_default())
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
