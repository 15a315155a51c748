//! Recording what became of claimed actions.
//!
//! Promise: what was done is recorded before anybody is told; what cannot be recorded is tried again until the claim has
//! run out, and then the schedule's `on_interrupted` decides.

use std::time::Duration;

use super::Runner;
use super::ready::Ready;
use super::task::{Attempt, Outcome};
use crate::cursor::ErrorReport;
use crate::cursor::actions::{End, Recorded};
use crate::cursor::claims::Settlement;
use crate::database::Error;
use crate::relay::engine::Slot;
use crate::relay::engine::deadline::within;
use crate::relay::engine::report::counted;
use crate::relay::queue::failure_tracker::{is_unsent, pause};
use crate::sink::{Class, Failure};
use crate::visible::bounded;

/// As much of a message or a hint as an action's error holds.
const LONGEST: usize = 1_500;
/// As much of a result as an action holds.
const RESULT: usize = 8_192;

/// The most attempts of one transaction: a large one would never end in a call's time.
const TOGETHER: usize = 100;

/// What follows from a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is tried again, this much later.
    Waits(Duration),
    /// It ends.
    Fails,
}

/// The one table of what follows from a failure. `retries`: what nobody knows the outcome of may be done again.
pub(super) fn fate(failure: &Failure, attempts: i32, retries: bool) -> Fate {
    match failure.class {
        // Another try could do it twice.
        _ if failure.ambiguous && !retries => Fate::Fails,
        Class::Poison => Fate::Fails,
        // Wrong credentials are mended for all actions at once: none of them is to blame, and none stops another tenant's.
        Class::Fatal => Fate::Waits(pause(attempts.max(4), failure)),
        Class::Retry => Fate::Waits(pause(if is_unsent(failure) { attempts.min(4) } else { attempts }, failure)),
    }
}

/// A failure that says what an end in the midst means.
fn failure_of(outcome: &Outcome) -> Option<Failure> {
    Some(match outcome {
        Outcome::Done(_) | Outcome::Recorded | Outcome::Skipped(_) => return None,
        Outcome::Failed(failure) => failure.clone(),
        Outcome::TimedOut { ambiguous } => Failure {
            ambiguous: *ambiguous,
            ..Failure::of(
                Class::Poison,
                "action_timeout",
                "it took longer than its schedule's timeout, and was stopped",
                "Find out why it takes so long, or give the schedule a longer timeout.",
            )
        },
        Outcome::Cut { ambiguous } => Failure {
            ambiguous: *ambiguous,
            ..Failure::of(
                Class::Retry,
                "interrupted",
                "the replica ended, or lost its claim, while it was at work",
                "on_interrupted of its schedule says whether it is tried again.",
            )
        },
    })
}

impl Runner {
    /// Records everything that has ended; what cannot be recorded yet stays for the next time.
    pub(super) async fn settle(&mut self) -> Result<(), Error> {
        let Some(ready) = self.checked.last().filter(|_| !self.unsettled.is_empty()) else { return Ok(()) };
        let mut attempts = std::mem::take(&mut self.unsettled);
        while !attempts.is_empty() {
            let rest = attempts.split_off(attempts.len().min(TOGETHER));
            let recorded = self.record(&attempts).await;
            let unanswered = recorded.as_ref().is_err_and(Error::may_have_committed);
            attempts.iter_mut().for_each(|attempt| attempt.perhaps_recorded |= unanswered);
            let (closed, error) = match recorded {
                Ok(closed) => (closed, None),
                Err(error) => (attempts.iter().map(|_| Closed::NotYet).collect(), Some(error)),
            };
            for (attempt, closed) in attempts.into_iter().zip(closed) {
                self.closed(&ready, attempt, &closed).await;
            }
            attempts = rest;
            if let Some(error) = error {
                self.unsettled.append(&mut attempts);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Tells what is recorded, and keeps what is not.
    async fn closed(&mut self, ready: &Ready, attempt: Attempt, closed: &Closed) {
        let lost = attempt.task.kept.lost.is_cancelled();
        match closed {
            Closed::NotYet if !lost => return self.unsettled.push(attempt),
            // Who takes it up now decides.
            Closed::NotYet => {
                let (cursor, id, schedule) =
                    (&self.config.name, attempt.task.action.id, &attempt.task.action.schedule.1);
                tracing::error!(
                    cursor,
                    id,
                    schedule,
                    "what became of an action could not be recorded: its claim ran out"
                );
                self.engine.unrecorded.lost(cursor, usize::from(attempt.is_acknowledged()));
            }
            Closed::Lost => self.lost(&attempt),
            Closed::Ended(_) | Closed::Waits => self.tell(ready, &attempt).await,
        }
        self.keeper.remove(attempt.task.action.id, &attempt.task.token);
    }

    /// Logs and counts.
    async fn tell(&mut self, ready: &Ready, attempt: &Attempt) {
        let action = &attempt.task.action;
        let (cursor, id, schedule, tenant) = (&self.config.name, action.id, &action.schedule.1, &action.tenant);
        match &attempt.outcome {
            Outcome::Done(_) | Outcome::Recorded => {
                ready.metrics.published(1);
                ready.counters.completed();
                self.engine.progress(cursor, |progress| progress.sent += 1);
                self.setbacks.recovered().await;
                tracing::debug!(cursor, id, schedule, tenant, took = ?attempt.task.claimed.elapsed(), "action completed");
                return;
            }
            Outcome::Skipped(why) => {
                ready.counters.skipped(1);
                tracing::info!(cursor, id, schedule, tenant, why, "action skipped");
                return;
            }
            Outcome::Failed(_) | Outcome::TimedOut { .. } | Outcome::Cut { .. } => {}
        }
        let Some(failure) = failure_of(&attempt.outcome) else { return };
        ready.metrics.publish_failed(counted(&failure));
        self.engine.progress(cursor, |progress| progress.failed += 1);
        let again = fate(&failure, action.attempts, action.retries) != Fate::Fails;
        if !again {
            ready.counters.failed();
        }
        tracing::warn!(
            cursor,
            id,
            schedule,
            tenant,
            class = failure.class.as_str(),
            code = failure.code,
            error = failure.message,
            hint = failure.hint,
            attempt = action.attempts + 1,
            ambiguous = failure.ambiguous,
            again,
            "action failed"
        );
        if failure.class == Class::Fatal {
            self.setbacks.report(&failure).await;
            // Another secret may be there by then. Not sooner than it may be looked at: all other tenants would wait until then.
            self.checked.repeat_if_due();
        }
    }

    /// Records attempts in one transaction, and lets what was queued behind them go on; what each came to.
    async fn record(&self, attempts: &[Attempt]) -> Result<Vec<Closed>, Error> {
        if attempts.iter().all(|attempt| matches!(attempt.outcome, Outcome::Recorded)) {
            return Ok(attempts.iter().map(|_| Closed::Waits).collect());
        }
        let Slot { lock, reader, permits } = self.engine.slot(false).await?;
        drop(reader);
        let recording = async {
            let settlement = Settlement::begin(lock, true).await?;
            let (mut all, mut ended) = (Vec::with_capacity(attempts.len()), Vec::new());
            for attempt in attempts {
                let closed = close(&settlement, attempt).await?;
                if let Closed::Ended(of) = &closed {
                    ended.push(of.clone());
                }
                all.push(closed);
            }
            if !ended.is_empty() {
                settlement.promote_actions(&self.config.name, &ended).await?;
            }
            settlement.commit().await?;
            Ok(all)
        };
        let recorded = within(&self.engine, recording).await;
        drop(permits);
        recorded
    }

    /// Somebody else has the action, or what became of it is recorded already.
    fn lost(&self, attempt: &Attempt) {
        let action = &attempt.task.action;
        let done = attempt.is_acknowledged();
        let (cursor, id, schedule) = (&self.config.name, action.id, &action.schedule.1);
        self.engine.unrecorded.lost(cursor, usize::from(done && !attempt.perhaps_recorded));
        tracing::error!(cursor, id, schedule, done, "action was taken up by another, or is recorded already");
    }
}

/// What recording one attempt came to.
enum Closed {
    Ended((i64, String)),
    /// For its next try, or it was recorded already.
    Waits,
    /// Its row is locked, or the database failed.
    NotYet,
    Lost,
}

async fn close(settlement: &Settlement, attempt: &Attempt) -> Result<Closed, Error> {
    let (named, action) = (attempt.task.named(), &attempt.task.action);
    let ended = match &attempt.outcome {
        Outcome::Done(result) => settlement.end_action(named, End::Completed(&bounded(result, RESULT))).await?,
        Outcome::Skipped(why) => settlement.end_action(named, End::Skipped(&bounded(why, RESULT))).await?,
        outcome => {
            let Some(failure) = failure_of(outcome) else { return Ok(Closed::Waits) }; // recorded already
            let (message, hint) = (bounded(&failure.message, LONGEST), bounded(&failure.hint, LONGEST));
            let error = ErrorReport {
                class: failure.class.as_str(),
                code: &failure.code,
                message: &message,
                hint: &hint,
                message_id: None,
            };
            match fate(&failure, action.attempts, action.retries) {
                Fate::Fails => settlement.end_action(named, End::Failed(&error)).await?,
                Fate::Waits(pause) => {
                    // What was cut off is no try of its own.
                    let (tries, pause) = match outcome {
                        Outcome::Cut { .. } => (0, Duration::ZERO),
                        _ => (1, pause),
                    };
                    return Ok(match settlement.retry_action(named, &error, tries, pause).await? {
                        Recorded::Of(_) => Closed::Waits,
                        Recorded::Locked => Closed::NotYet,
                        Recorded::Lost => Closed::Lost,
                    });
                }
            }
        }
    };
    Ok(match ended {
        Recorded::Of(of) => Closed::Ended(of),
        Recorded::Locked => Closed::NotYet,
        Recorded::Lost => Closed::Lost,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: Class, ambiguous: bool) -> Failure {
        Failure { ambiguous, ..Failure::of(class, "x", "", "") }
    }

    #[test]
    fn what_nobody_knows_is_tried_again_only_where_the_schedule_says_so() {
        assert!(matches!(fate(&failure(Class::Retry, true), 0, true), Fate::Waits(_)));
        assert_eq!(fate(&failure(Class::Retry, true), 0, false), Fate::Fails);
    }

    #[test]
    fn an_outage_or_wrong_credentials_fail_no_action_and_a_refusal_does() {
        for retries in [true, false] {
            assert!(matches!(fate(&failure(Class::Retry, false), 100, retries), Fate::Waits(_)));
            assert!(matches!(fate(&failure(Class::Fatal, false), 0, retries), Fate::Waits(_)));
            assert_eq!(fate(&failure(Class::Poison, false), 0, retries), Fate::Fails);
        }
    }

    #[test]
    fn what_took_too_long_has_failed_and_what_was_cut_is_the_schedules_to_decide() {
        let timed_out = failure_of(&Outcome::TimedOut { ambiguous: true }).expect("a failure");
        assert_eq!(fate(&timed_out, 0, true), Fate::Fails);
        let cut = failure_of(&Outcome::Cut { ambiguous: true }).expect("a failure");
        assert_eq!(fate(&cut, 0, false), Fate::Fails);
        assert!(matches!(fate(&cut, 0, true), Fate::Waits(_)));
    }
}
