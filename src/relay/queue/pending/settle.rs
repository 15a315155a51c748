//! Recording what became of claimed rows.
//!
//! Promise: a row counts as sent only when the receiver said so, and is marked in a transaction that waits for nobody's
//! lock. A row that was sent and cannot be marked keeps its claim, renewed, until it can be, for five minutes at the most;
//! then it will be sent again, and that is said.

use std::time::Duration;

use super::Desk;
use super::ready::Ready;
use super::record::{Recorded, is_unknown, unmarkable};
use super::task::{Attempt, Outcome, Task};
use crate::cursor::claims::Settlement;
use crate::database::{Error, sqlstate};
use crate::relay::engine::Slot;
use crate::relay::engine::dead_letter;
use crate::relay::engine::deadline::within;
use crate::relay::engine::report;
use crate::relay::engine::report::counted;
use crate::relay::queue::failure_tracker::{is_unsent, pause};
use crate::relay::{Guarantee, OnPoison};
use crate::sink::{Class, Failure};
use crate::source::pending::Key;

/// How long a row that was sent is kept claimed until it can be marked.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

impl Desk {
    /// Records everything that has ended; what cannot be recorded yet stays for the next time.
    pub(super) async fn settle(&mut self) -> Result<(), Error> {
        let Some(ready) = self.checked.last().filter(|_| !self.unsettled.is_empty()) else { return Ok(()) };
        let mut attempts = std::mem::take(&mut self.unsettled);
        for attempt in attempts.iter_mut().filter(|attempt| !attempt.again) {
            self.copy(&ready, attempt).await;
            self.tell(&ready, attempt).await;
            attempt.again = true;
        }
        let recorded = match self.record(&ready, &attempts).await {
            Ok(recorded) => {
                for key in &recorded.unmarkable {
                    self.unmarked(&ready, key).await;
                }
                for attempt in &attempts {
                    self.buried(&ready, attempt);
                    self.recorded(attempt, &recorded);
                }
                attempts.retain(|attempt| recorded.locked.contains(&attempt.task.key));
                self.unsettled = attempts;
                Ok(())
            }
            // The server refuses to record one of them, a trigger of the application perhaps: not the others' fault.
            Err(error) if is_about_a_row(&error) => self.one_by_one(&ready, attempts).await,
            Err(error) => {
                attempts.iter_mut().for_each(|attempt| attempt.perhaps_recorded |= error.may_have_committed());
                self.unsettled = attempts;
                Err(error)
            }
        };
        self.renew(&ready).await?;
        // Also while nothing can be recorded: the limit holds whatever the reason.
        let given_up = self.give_up_marking(&ready, true).await;
        recorded.and(given_up)
    }

    /// Logs, counts and, where somebody must mend it, halts.
    async fn tell(&mut self, ready: &Ready, attempt: &Attempt) {
        let (task, id) = (&attempt.task, attempt.task.key.message_id());
        let failure = match &attempt.outcome {
            Outcome::Untried => return,
            Outcome::Sent => {
                ready.metrics.published(1);
                self.engine.progress(&self.config.name, |progress| progress.sent += 1);
                ready.numbers.sent(task.late + task.claimed.elapsed());
                self.setbacks.recovered().await;
                return;
            }
            Outcome::Failed(failure) => failure,
        };
        ready.metrics.publish_failed(counted(failure));
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
            self.setbacks.halt(&ready.seat.fingerprint, failure, Some(&id)).await;
        } else if failure.class == Class::Retry && (is_unsent(failure) || unknown) {
            // Under at_most_once each try that is not answered costs a row.
            self.setbacks.out(failure).await;
        } else {
            // It has answered: whatever stood between is over.
            self.setbacks.recovered().await;
        }
    }

    /// A row is put aside only after the topic of the dead letters has its copy; before any transaction begins.
    async fn copy(&self, ready: &Ready, attempt: &mut Attempt) {
        let (Outcome::Failed(failure), Some(letters)) = (&attempt.outcome, &ready.letters) else { return };
        if is_unknown(ready, failure)
            || failure.class != Class::Poison
            || ready.config.on_poison != OnPoison::DeadLetter
        {
            return;
        }
        let (relay, patience) = (&attempt.task.relay, self.engine.call_deadline);
        let letter = attempt.task.letter(ready);
        if let Err(uncopied) = dead_letter::copy(relay, letters, failure, &letter, patience).await {
            attempt.outcome = Outcome::Failed(uncopied);
        }
    }

    /// Logs a row that was sent and whose claim was gone when that was recorded.
    fn recorded(&self, attempt: &Attempt, recorded: &Recorded) {
        if recorded.unclaimed.contains(&attempt.task.key) {
            // What is marked after it was sent is marked now, also when another has the claim.
            let first = self.config.guarantee == Guarantee::AtMostOnce;
            self.taken(attempt, first && attempt.is_acknowledged());
        }
    }

    /// Tells of a row that has been put aside.
    fn buried(&self, ready: &Ready, attempt: &Attempt) {
        let Outcome::Failed(failure) = &attempt.outcome else { return };
        if failure.class == Class::Poison
            && ready.config.on_poison == OnPoison::DeadLetter
            && !is_unknown(ready, failure)
        {
            ready.metrics.dead_lettered();
            let (key, code) = (attempt.task.key.message_id(), &failure.code);
            tracing::error!(cursor = self.config.name, key, code, "row put aside as a dead letter");
        }
    }

    /// Records each alone; a row that was sent and that the server refuses to mark waits, and will be sent again.
    async fn one_by_one(&mut self, ready: &Ready, attempts: Vec<Attempt>) -> Result<(), Error> {
        let mut attempts = attempts.into_iter();
        while let Some(attempt) = attempts.next() {
            let recorded = match self.record(ready, std::slice::from_ref(&attempt)).await {
                Ok(recorded) if recorded.unmarkable.contains(&attempt.task.key) => {
                    self.unmarked(ready, &attempt.task.key).await;
                    Ok(())
                }
                Ok(recorded) if recorded.locked.is_empty() => {
                    self.buried(ready, &attempt);
                    self.recorded(&attempt, &recorded);
                    Ok(())
                }
                Ok(_) => {
                    self.unsettled.push(attempt.clone());
                    Ok(())
                }
                Err(error) if is_about_a_row(&error) => self.refused(ready, &attempt, error).await,
                Err(error) => Err(error),
            };
            if let Err(error) = recorded {
                self.unsettled.push(attempt);
                self.unsettled.extend(attempts);
                return Err(error);
            }
        }
        Ok(())
    }

    /// The server refuses to record what became of this row.
    async fn refused(&mut self, ready: &Ready, attempt: &Attempt, error: Error) -> Result<(), Error> {
        let first = ready.config.guarantee == Guarantee::AtMostOnce;
        if !is_of_application(&error) || first || !matches!(attempt.outcome, Outcome::Sent) {
            // Perhaps the table has changed: recorded when its checks pass again.
            if !attempt.refused {
                let key = attempt.task.key.message_id();
                tracing::warn!(cursor = self.config.name, key, %error, "cannot record the outcome of a row yet; retrying");
            }
            self.unsettled.push(Attempt { refused: true, ..attempt.clone() });
            self.checked.repeat();
            return Ok(());
        }
        let failure = Failure::of(
            Class::Retry,
            &sqlstate::word(&error),
            format!("the row was sent, and the server refuses to mark it: {error}"),
            "See what a trigger or a constraint of the table says to setting the mark.",
        );
        self.not_marked(ready, &attempt.task, &failure).await?;
        self.engine.unrecorded.lost(&self.config.name, 1);
        Ok(())
    }

    /// The row's mark does not stay: going on would send it for ever, or never.
    pub(super) async fn unmarked(&mut self, ready: &Ready, key: &Key) {
        // What is marked first has not been sent.
        if ready.config.guarantee == Guarantee::AtLeastOnce {
            ready.numbers.sent_not_marked();
            self.engine.unrecorded.lost(&self.config.name, 1);
        }
        self.engine.progress(&self.config.name, |progress| progress.failed += 1);
        let mut failure = unmarkable();
        failure.hint = failure.hint.replace("NAME", &self.config.name);
        self.setbacks.halt(&ready.seat.fingerprint, &failure, Some(&key.message_id())).await;
    }

    /// Rows that could not be marked for long are given up: those that somebody keeps locked, above all. Meanwhile their
    /// claims are renewed, so that nobody sends them again. At the end of the process all are given up.
    pub(super) async fn give_up_marking(&mut self, ready: &Ready, patient: bool) -> Result<(), Error> {
        let patience = if patient { PATIENCE } else { Duration::ZERO };
        let (late, kept) = std::mem::take(&mut self.unsettled)
            .into_iter()
            .partition(|attempt| attempt.task.claimed.elapsed() >= patience);
        self.unsettled = kept;
        let late: Vec<Attempt> = late;
        let mut late = Vec::into_iter(late);
        while let Some(attempt) = late.next() {
            // At the end of the process the caller has counted all.
            let lost = usize::from(patient && attempt.is_acknowledged());
            if ready.config.guarantee == Guarantee::AtMostOnce {
                self.engine.unrecorded.lost(&self.config.name, lost);
                let (cursor, key) = (&self.config.name, attempt.task.key.message_id());
                tracing::error!(
                    cursor,
                    key,
                    "cannot record the outcome of a row: listed as unknown when its claim expires"
                );
                continue;
            }
            if !matches!(attempt.outcome, Outcome::Sent) {
                continue; // it is due again when its claim expires
            }
            let failure = Failure::of(
                Class::Retry,
                "row_locked",
                "the row was sent, and could not be marked for too long: a transaction of the application has kept \
                 it locked, or the server refuses, as lines above say",
                "End that transaction, or mend what is refused; the mark is set in an instant.",
            );
            if let Err(error) = self.not_marked(ready, &attempt.task, &failure).await {
                self.unsettled.push(attempt);
                self.unsettled.extend(late);
                return Err(error);
            }
            self.engine.unrecorded.lost(&self.config.name, lost);
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

/// The server refuses for what a row or the table is; everything else passes, and is the same for all rows.
fn is_about_a_row(error: &Error) -> bool {
    is_of_application(error) || ["22", "42"].contains(&error.state_class())
}

/// A constraint or a trigger of the application refuses.
pub(super) fn is_of_application(error: &Error) -> bool {
    ["23", "27", "44", "P0"].contains(&error.state_class())
}
