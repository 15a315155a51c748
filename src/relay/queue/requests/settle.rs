//! Recording what became of claimed requests.
//!
//! Promise: a request is completed only when the receiver said so, and the record is on the disk before anybody is told.
//! What cannot be recorded is tried again until the claim has run out; then the policy for unknown outcomes decides.

use std::collections::HashSet;
use std::time::Duration;

use super::Clerk;
use super::ready::Ready;
use super::task::{Attempt, Outcome};
use crate::cursor::ErrorReport;
use crate::cursor::claims::Settlement;
use crate::cursor::ledger::{Accepted, End, Wait};
use crate::database::Error;
use crate::relay::engine::Slot;
use crate::relay::engine::deadline::within;
use crate::relay::engine::report;
use crate::relay::engine::report::counted;
use crate::relay::queue::failure_tracker::{is_unsent, pause};
use crate::relay::{OnPoison, OnUnknown};
use crate::sink::{Class, Failure, Subject};

/// What a failure does to its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is tried again.
    Waits,
    /// It ends.
    Ends(End),
    /// It is tried again when the relay runs again.
    Halts,
}

/// The one table of what follows from a failure. `doubted`: a try before may have been accepted, so that a refusal of this one
/// says nothing of the request.
pub(super) fn fate(failure: &Failure, doubted: bool, on_poison: OnPoison, on_unknown: OnUnknown) -> Fate {
    match (failure.class, on_poison, on_unknown) {
        _ if failure.ambiguous && on_unknown == OnUnknown::DeadLetter => Fate::Ends(End::Unknown),
        (Class::Retry, _, _) => Fate::Waits,
        // Its key is in use: the try before is still at work there.
        (Class::Poison, _, OnUnknown::Resend | OnUnknown::Ask) if doubted && failure.subject == Subject::KeyInUse => {
            Fate::Waits
        }
        (Class::Poison, OnPoison::DeadLetter, _) if doubted => Fate::Ends(End::Unknown),
        (Class::Poison, OnPoison::DeadLetter, _) => Fate::Ends(End::Failed),
        (Class::Poison, OnPoison::Halt, _) | (Class::Fatal, _, _) => Fate::Halts,
    }
}

impl Clerk {
    /// Records everything that has ended; what cannot be recorded yet stays for the next time.
    pub(super) async fn settle(&mut self) -> Result<(), Error> {
        let Some(ready) = self.checked.last().filter(|_| !self.unsettled.is_empty()) else { return Ok(()) };
        let mut attempts = std::mem::take(&mut self.unsettled);
        for attempt in attempts.iter_mut().filter(|attempt| !attempt.told) {
            self.tell(&ready, attempt).await;
            attempt.told = true;
        }
        match self.record(&ready, &attempts).await {
            Ok(lost) => {
                for attempt in attempts.iter().filter(|attempt| lost.contains(&attempt.task.id)) {
                    self.lost(attempt);
                }
                Ok(())
            }
            Err(error) => {
                attempts.iter_mut().for_each(|attempt| attempt.perhaps_recorded |= error.may_have_committed());
                // Whoever has claimed them meanwhile decides: recording would change nothing any more.
                let lease = ready.config.turn.lock_kill() * 2;
                let (expired, kept): (Vec<_>, Vec<_>) =
                    attempts.into_iter().partition(|attempt| attempt.task.claimed.elapsed() >= lease);
                if !expired.is_empty() {
                    let (cursor, requests) = (&self.config.name, expired.len());
                    let accepted = expired.iter().filter(|attempt| attempt.is_acknowledged()).count();
                    tracing::error!(
                        cursor,
                        requests,
                        accepted,
                        "what became of requests could not be recorded: their claims ran out"
                    );
                    self.engine.unrecorded.lost(cursor, accepted);
                }
                self.unsettled = kept;
                Err(error)
            }
        }
    }

    /// Somebody else has the request, or what became of it is recorded already.
    fn lost(&self, attempt: &Attempt) {
        let (cursor, id) = (&self.config.name, &attempt.task.id);
        let accepted = attempt.is_acknowledged();
        self.engine.unrecorded.lost(cursor, usize::from(accepted && !attempt.perhaps_recorded));
        if attempt.perhaps_recorded {
            tracing::warn!(cursor, id, accepted, "recorded by a commit that was not answered, or taken up by another");
        } else {
            tracing::error!(cursor, id, accepted, "request was taken up by another: what became of it is not recorded");
        }
    }

    /// Logs, counts and, where somebody must mend it, halts.
    async fn tell(&mut self, ready: &Ready, attempt: &Attempt) {
        let task = &attempt.task;
        let failure = match &attempt.outcome {
            Outcome::Untried => return,
            Outcome::Accepted(_) => {
                ready.metrics.published(1);
                ready.metrics.redelivered(u64::from(task.again));
                self.engine.progress(&self.config.name, |progress| progress.sent += 1);
                ready.numbers.sent(self.now.since(task.due_at) + task.claimed.elapsed());
                self.setbacks.recovered().await;
                return;
            }
            Outcome::Failed(failure) => failure,
        };
        ready.metrics.publish_failed(counted(failure));
        ready.numbers.send_failed();
        let fate = fate(failure, attempt.doubted, ready.config.on_poison, ready.config.on_unknown);
        tracing::warn!(
            cursor = self.config.name,
            id = task.id,
            class = failure.class.as_str(),
            code = failure.code,
            error = failure.message,
            hint = failure.hint,
            attempt = task.attempts + 1,
            ambiguous = failure.ambiguous,
            ends = matches!(fate, Fate::Ends(_)),
            "send failed"
        );
        self.engine.progress(&self.config.name, |progress| progress.failed += 1);
        match fate {
            Fate::Halts => self.setbacks.halt(&ready.seat.fingerprint, failure, Some(&task.id)).await,
            // While nobody answers, each try costs a request its certainty.
            _ if failure.is_outage() || failure.retry_after.is_some() => self.setbacks.out(failure).await,
            Fate::Ends(_) | Fate::Waits => self.setbacks.recovered().await,
        }
        if fate == Fate::Ends(End::Failed) {
            ready.metrics.dead_lettered();
        }
    }

    /// Records attempts in one transaction; the ids of those that somebody else has taken up.
    async fn record(&self, ready: &Ready, attempts: &[Attempt]) -> Result<HashSet<String>, Error> {
        let Slot { lock, reader, permits } = self.engine.slot(false).await?;
        drop(reader);
        let recording = async {
            let settlement = Settlement::begin(lock, true).await?;
            let mut lost = HashSet::new();
            let accepted: Vec<Accepted<'_>> = attempts.iter().filter_map(accepted).collect();
            if !accepted.is_empty() {
                let recorded = settlement.complete(&accepted).await?;
                let ids = accepted.iter().map(|accepted| accepted.request.id.to_owned());
                lost.extend(ids.filter(|id| !recorded.contains(id)));
            }
            for attempt in attempts {
                if !close(ready, &settlement, attempt).await? {
                    lost.insert(attempt.task.id.clone());
                }
            }
            settlement.commit().await?;
            Ok(lost)
        };
        let recorded = within(&self.engine, recording).await;
        drop(permits);
        recorded
    }
}

fn accepted(attempt: &Attempt) -> Option<Accepted<'_>> {
    let Outcome::Accepted(receipt) = &attempt.outcome else { return None };
    Some(Accepted { request: attempt.task.named(), provider_id: receipt.id.as_deref(), reply: &receipt.reply })
}

/// Records one attempt that did not end with the receiver's acceptance; false when somebody else has taken it up.
async fn close(ready: &Ready, settlement: &Settlement, attempt: &Attempt) -> Result<bool, Error> {
    let request = attempt.task.named();
    let failure = match &attempt.outcome {
        Outcome::Accepted(_) => return Ok(true),
        Outcome::Untried => {
            let wait = Wait { attempts: 0, ambiguous: false, pause: Duration::ZERO };
            return settlement.postpone(request, &untried(), wait).await;
        }
        Outcome::Failed(failure) => failure,
    };
    let error = report::error(failure, None);
    match fate(failure, attempt.doubted, ready.config.on_poison, ready.config.on_unknown) {
        Fate::Ends(end) => settlement.end(request, &error, end, failure.ambiguous).await,
        Fate::Halts => {
            let wait = Wait { attempts: 0, ambiguous: failure.ambiguous, pause: Duration::ZERO };
            settlement.postpone(request, &error, wait).await
        }
        Fate::Waits => {
            let tries = i32::from(!is_unsent(failure));
            // At least one, so that a `run --once` does not try it twice.
            let attempts = tries.max(i32::from(attempt.task.attempts == 0));
            let pause = pause(if tries == 0 { 0 } else { attempt.task.attempts }, failure);
            // A receiver that is only slow must be done with the last try before it is asked for it.
            let asks = failure.ambiguous && ready.config.on_unknown == OnUnknown::Ask;
            let pause = if asks { pause.max(ready.config.turn.lock_kill()) } else { pause };
            settlement.postpone(request, &error, Wait { attempts, ambiguous: failure.ambiguous, pause }).await
        }
    }
}

fn untried() -> ErrorReport<'static> {
    ErrorReport {
        class: Class::Retry.as_str(),
        code: "not_tried",
        message: "The request was claimed and not sent: time was up",
        hint: "It is tried again at once.",
        message_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(class: Class, ambiguous: bool) -> Failure {
        Failure { ambiguous, ..Failure::of(class, "x", "", "") }
    }

    #[test]
    fn an_outcome_that_nobody_knows_ends_the_request_unless_it_may_be_sent_again() {
        let unknown = failure(Class::Retry, true);
        for (on_poison, doubted) in [(OnPoison::Halt, false), (OnPoison::DeadLetter, true)] {
            assert_eq!(fate(&unknown, doubted, on_poison, OnUnknown::DeadLetter), Fate::Ends(End::Unknown));
            assert_eq!(fate(&unknown, doubted, on_poison, OnUnknown::Resend), Fate::Waits);
            assert_eq!(fate(&unknown, doubted, on_poison, OnUnknown::Ask), Fate::Waits);
        }
    }

    #[test]
    fn what_was_certainly_not_sent_never_ends_as_unknown() {
        for on_unknown in [OnUnknown::DeadLetter, OnUnknown::Resend, OnUnknown::Ask] {
            assert_eq!(fate(&failure(Class::Retry, false), false, OnPoison::Halt, on_unknown), Fate::Waits);
            let poison = failure(Class::Poison, false);
            assert_eq!(fate(&poison, false, OnPoison::DeadLetter, on_unknown), Fate::Ends(End::Failed));
            assert_eq!(fate(&poison, false, OnPoison::Halt, on_unknown), Fate::Halts);
            assert_eq!(fate(&failure(Class::Fatal, false), false, OnPoison::DeadLetter, on_unknown), Fate::Halts);
        }
    }

    #[test]
    fn a_refusal_after_a_doubt_does_not_say_that_nothing_was_sent() {
        for on_unknown in [OnUnknown::DeadLetter, OnUnknown::Resend, OnUnknown::Ask] {
            let refused = fate(&failure(Class::Poison, false), true, OnPoison::DeadLetter, on_unknown);
            assert_eq!(refused, Fate::Ends(End::Unknown));
        }
        let in_use = failure(Class::Poison, false).about(Subject::KeyInUse);
        assert_eq!(fate(&in_use, true, OnPoison::DeadLetter, OnUnknown::Resend), Fate::Waits);
        assert_eq!(fate(&in_use, false, OnPoison::DeadLetter, OnUnknown::Resend), Fate::Ends(End::Failed));
    }
}
