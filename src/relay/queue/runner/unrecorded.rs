//! What has ended and is not recorded yet.
//!
//! Promise: while this replica reaches the database, no other sends such a job for as long as a record may be hoped for
//! ([`PATIENCE`]). One that is given up, that another has taken, or whose claim has expired, is logged.

use std::time::{Duration, Instant};

use super::Runner;
use crate::database::Error;
use crate::database::sqlstate::{is_about_a_row, is_lock_timeout, is_too_slow};
use crate::relay::queue::work::{Attempt, AttemptOf, Job, Outcome, Recorded, Renewal, Renewed, Work};

/// So many times as long as a claim of due work lasts, an outcome is kept that cannot be recorded: five minutes by default. A
/// row may be locked by a transaction of the application for long; what the server refuses for good must not take the place of
/// others indefinitely.
const PATIENCE: u32 = 25;

impl<W: Work> Runner<W> {
    /// Records everything that has ended; what cannot be recorded yet stays for the next time, with the relay as the last passed
    /// checks found it.
    pub(super) async fn record(&mut self) -> Result<(), Error> {
        let Some(prepared) = self.context.checked.last() else { return Ok(()) };
        let asked = self.ask_unanswered(&prepared).await;
        if self.unrecorded.is_empty() {
            return asked;
        }
        for attempt in self.unrecorded.iter_mut().filter(|attempt| !attempt.reported) {
            self.work.ended(&mut self.context, &prepared, attempt).await;
            attempt.reported = true;
        }
        // First: the server reports that it refuses a record before the transaction ends, and its locks with it.
        let renewed = self.renew().await;
        let recorded = self.record_together(&prepared).await;
        // What can be recorded all the same has been.
        self.forget_lost(renewed.is_err());
        // Also while nothing can be recorded: the limit holds whatever the reason.
        let given_up = self.give_up(&prepared, false).await;
        asked.and(renewed).and(recorded).and(given_up)
    }

    /// Until when records may begin that begin now: claims are to be renewed soon.
    fn time_to_record(&self) -> Instant {
        Instant::now() + self.renewal_pause().min(self.context.engine.call_deadline) / 2
    }

    /// Those together that have held up no others; in parts, of which no more begins when its time is over.
    async fn record_together(&mut self, prepared: &W::Prepared) -> Result<(), Error> {
        let until = self.time_to_record();
        let (lasting, mut attempts): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unrecorded).into_iter().partition(|attempt| attempt.alone);
        let (mut alone, mut waiting) = (Vec::new(), Vec::new());
        while !attempts.is_empty() && Instant::now() < until {
            let allowed = self.size.allowed();
            let rest = attempts.split_off(self.size.begin(attempts.len().min(W::TOGETHER)));
            let recorded = self.work.record(&self.context, prepared, &attempts).await;
            if !recorded.as_ref().is_err_and(is_too_slow) {
                self.size.succeeded(attempts.len(), allowed);
            }
            match recorded {
                Ok(recorded) => self.settle(prepared, attempts, &recorded).await,
                // The server refuses to record one of them, a trigger of the application perhaps: not the others' fault.
                Err(error) if is_about_a_row(&error) || is_lock_timeout(&error) => alone.extend(attempts),
                Err(error) if attempts.len() == 1 && is_too_slow(&error) => {
                    for attempt in attempts {
                        waiting.push(self.waits(attempt, &error).await);
                    }
                }
                Err(error) => {
                    // Those that were not tried come first the next time: these may be what takes too long.
                    self.unrecorded.extend(rest);
                    self.unrecorded.extend(alone.into_iter().chain(lasting).chain(waiting));
                    self.keep(attempts, &error);
                    return Err(error);
                }
            }
            attempts = rest;
        }
        // One of these has held the others up, which it does once; those that do so again wait for them.
        alone.extend(lasting);
        let mut recorded = Ok(());
        if attempts.is_empty() {
            recorded = self.record_alone(prepared, alone).await;
        } else {
            self.unrecorded.extend(attempts.into_iter().chain(alone));
        }
        self.unrecorded.extend(waiting);
        recorded
    }

    /// Records each alone, of which no more begins when its time is over.
    async fn record_alone(&mut self, prepared: &W::Prepared, attempts: Vec<AttemptOf<W>>) -> Result<(), Error> {
        let until = self.time_to_record();
        let mut attempts = attempts.into_iter();
        let mut waiting = Vec::new();
        while let Some(attempt) = attempts.next() {
            match self.work.record(&self.context, prepared, std::slice::from_ref(&attempt)).await {
                Ok(recorded) => self.settle(prepared, vec![attempt], &recorded).await,
                Err(error) if is_about_a_row(&error) => {
                    if let Err(error) = self.refused(prepared, attempt, &error).await {
                        self.unrecorded.extend(attempts);
                        self.unrecorded.extend(waiting);
                        return Err(error);
                    }
                }
                // Its row is free, and what a trigger writes beside it is not, or takes too long.
                Err(error) if is_lock_timeout(&error) || is_too_slow(&error) => {
                    waiting.push(self.waits(attempt, &error).await);
                }
                Err(error) => {
                    self.unrecorded.extend(attempts);
                    self.unrecorded.extend(waiting);
                    self.keep(vec![attempt], &error);
                    return Err(error);
                }
            }
            if Instant::now() >= until {
                break;
            }
        }
        // Those that were not tried come first the next time.
        self.unrecorded.extend(attempts);
        self.unrecorded.extend(waiting);
        Ok(())
    }

    /// One alone has waited for a lock, or taken too long, which says nothing of others.
    async fn waits(&mut self, mut attempt: AttemptOf<W>, error: &Error) -> AttemptOf<W> {
        self.context.failures.record_refused(&attempt.job.id(), error).await;
        attempt.alone = true;
        attempt.refused |= is_too_slow(error);
        attempt.may_be_recorded |= error.may_have_committed();
        attempt
    }

    /// The server refuses to record this one.
    async fn refused(&mut self, prepared: &W::Prepared, mut attempt: AttemptOf<W>, error: &Error) -> Result<(), Error> {
        let done = match self.work.refused(&self.context, prepared, &attempt, error).await {
            Ok(done) => done,
            Err(error) => {
                self.unrecorded.push(attempt);
                return Err(error);
            }
        };
        if done {
            self.lose(usize::from(attempt.is_acknowledged()));
            return Ok(());
        }
        // Perhaps a table has changed: recorded when its checks pass again.
        if !attempt.refused {
            let (cursor, id) = (&self.context.config.name, attempt.job.id());
            tracing::warn!(cursor, id, %error, "cannot record the outcome of a job yet; retrying");
        }
        self.context.failures.record_refused(&attempt.job.id(), error).await;
        (attempt.refused, attempt.alone) = (true, true);
        self.unrecorded.push(attempt);
        // No sooner than they are due: all other jobs would wait for the checks.
        self.context.checked.repeat_if_due();
        Ok(())
    }

    /// The outcomes of a transaction that is committed.
    async fn settle(&mut self, prepared: &W::Prepared, attempts: Vec<AttemptOf<W>>, recorded: &[Recorded]) {
        for (attempt, recorded) in attempts.into_iter().zip(recorded) {
            match recorded {
                Recorded::NotYet => self.unrecorded.push(attempt),
                Recorded::Taken { marked } => self.taken(&attempt, *marked),
                Recorded::Done | Recorded::Ineffective => {
                    self.work.recorded(&mut self.context, prepared, &attempt, *recorded).await;
                }
            }
        }
    }

    /// They could not be recorded.
    fn keep(&mut self, attempts: Vec<AttemptOf<W>>, error: &Error) {
        let unanswered = error.may_have_committed();
        self.unrecorded.extend(attempts.into_iter().map(|mut attempt| {
            attempt.may_be_recorded |= unanswered;
            attempt
        }));
    }

    /// Renews the claims of everything that is still to be recorded, once the oldest renewal is old enough.
    async fn renew(&mut self) -> Result<(), Error> {
        let Renewal::WhileUnrecorded(lease) = W::renewal(&self.context.config) else { return Ok(()) };
        let pause = self.renewal_pause();
        if self.unrecorded.iter().all(|attempt| attempt.renewed.elapsed() < pause) {
            return Ok(());
        }
        let asked = Instant::now();
        let renewed = self.work.renew(&self.context, &self.unrecorded, lease).await?;
        for (attempt, renewed) in self.unrecorded.iter_mut().zip(renewed) {
            match renewed {
                Renewed::Yes => attempt.renewed = asked,
                Renewed::Locked => {}
                Renewed::Lost => attempt.lost = true,
            }
        }
        Ok(())
    }

    /// Forgets what another replica decides about; `unanswered` when claims could not be renewed just now.
    fn forget_lost(&mut self, unanswered: bool) {
        let (lost, kept): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.unrecorded).into_iter().partition(|attempt| attempt.lost);
        self.unrecorded = kept;
        for attempt in lost {
            self.taken(&attempt, false);
        }
        match W::renewal(&self.context.config) {
            Renewal::Always => self.expire(|attempt| W::has_lost_claim(&attempt.job)),
            Renewal::WhileUnrecorded(lease) if unanswered => {
                self.expire(|attempt| attempt.renewed.elapsed() >= lease * 2);
            }
            Renewal::WhileUnrecorded(_) => {}
        }
    }

    /// Forgets those that another replica decides about: their claims ended some time ago. What was done, or not begun, is kept: unless
    /// another has taken it, its token still counts.
    fn expire(&mut self, has_expired: impl Fn(&AttemptOf<W>) -> bool) {
        let (expired, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unrecorded).into_iter().partition(|attempt| {
            has_expired(attempt) && !attempt.is_acknowledged() && attempt.outcome.was_begun() && !attempt.unanswered
        });
        self.unrecorded = kept;
        if !expired.is_empty() {
            let (cursor, jobs) = (&self.context.config.name, expired.len());
            tracing::error!(cursor, jobs, "cannot record failures: their claims have expired");
        }
    }

    /// Logs a job whose claim is another replica's before its outcome was recorded. When it is `marked` as done all the same,
    /// nothing is lost.
    fn taken(&self, attempt: &AttemptOf<W>, marked: bool) {
        let (cursor, id, acknowledged) = (&self.context.config.name, attempt.job.id(), attempt.is_acknowledged());
        self.lose(usize::from(acknowledged && !marked && !attempt.may_be_recorded));
        if attempt.unanswered {
            tracing::debug!(cursor, id, "given back: a claim that was not answered did not take place, or is over");
        } else if attempt.may_be_recorded {
            tracing::warn!(
                cursor,
                id,
                acknowledged,
                "recorded by a commit that was not answered, or taken by another replica"
            );
        } else if !attempt.outcome.was_begun() {
            // Only actions are left so. One that has failed by it stays failed: what was queued behind it may be running.
            let hint = "If it expired, on_interrupted of its schedule has decided: `outbox-relay action list`";
            tracing::warn!(cursor, id, hint, "nothing of the job was run here: its claim expired or was taken");
        } else {
            tracing::error!(cursor, id, acknowledged, "claim lost before the outcome was recorded");
        }
    }

    /// Outcomes that could not be recorded for long are given up; at the end of the process all are, which the caller has
    /// counted.
    pub(super) async fn give_up(&mut self, prepared: &W::Prepared, ending: bool) -> Result<(), Error> {
        let patience = if ending { Duration::ZERO } else { self.context.config.turn.lock_kill() * PATIENCE };
        // A claim that is always renewed costs nothing while a row is only locked; what was claimed without an answer is given back, however
        // late that is.
        let is_always_renewed = W::renewal(&self.context.config) == Renewal::Always;
        let stays = |attempt: &AttemptOf<W>| !ending && (attempt.unanswered || is_always_renewed && !attempt.refused);
        let (late, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.unrecorded)
            .into_iter()
            .partition(|attempt| attempt.ended.elapsed() >= patience && !stays(attempt));
        self.unrecorded = kept;
        let mut late = late.into_iter();
        while let Some(attempt) = late.next() {
            if let Err(error) = self.work.give_up(&self.context, prepared, &attempt).await {
                self.unrecorded.push(attempt);
                self.unrecorded.extend(late);
                return Err(error);
            }
            self.lose(usize::from(!ending && attempt.is_acknowledged()));
        }
        Ok(())
    }
}

/// Logs that the outcome of `what` is given up, and what `decides` about it then.
pub(in crate::relay::queue) fn log_given_up<J: Job, O: Outcome>(
    cursor: &str,
    attempt: &Attempt<J, O>,
    what: &str,
    decides: &str,
) {
    let (id, acknowledged) = (attempt.job.id(), attempt.is_acknowledged());
    tracing::error!(cursor, id, acknowledged, "cannot record the outcome of {what}: {decides} when its claim expires");
}
