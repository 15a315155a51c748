//! One claim: locks the relay's cursor, lets the kind of work claim its jobs (`claim.rs` of each), commits, which frees the lock.

use std::time::{Duration, Instant};

use super::{BUSY, Runner};
use crate::cursor::LockedCursor;
use crate::database::Error;
use crate::relay::engine::Single;
use crate::relay::engine::deadline::within;
use crate::relay::queue::checked::Seated as _;
use crate::relay::queue::work::{AttemptOf, Claim, Poll, Prepared, Work};

/// What was found while no more might be begun says enough for this long.
const FRESH: Duration = Duration::from_millis(300);

/// Why nothing may be claimed now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Another replica is claiming.
    Busy,
    /// The relay is paused, halted, or no longer this one's.
    NotNow,
    /// The rate allows none yet.
    Early(Duration),
}

impl<W: Work> Runner<W> {
    /// Claims at most `room` jobs.
    pub(super) async fn claim(
        &mut self,
        prepared: &W::Prepared,
        found: &W::Found,
        room: usize,
    ) -> Result<Result<W::Claimed, Refusal>, Error> {
        let engine = &self.context.engine;
        let Single { connection, right: _right } = engine.single().await?;
        let locking = LockedCursor::lock(connection, &self.context.config.name, &prepared.seat().identity, None);
        let Some(cursor) = within(engine, locking).await? else { return Ok(Err(Refusal::Busy)) };
        if let Some(refusal) = refusal(prepared, &cursor) {
            within(engine, cursor.release()).await?;
            return Ok(Err(refusal));
        }
        let probes = self.context.failures.is_out();
        let claim = Claim { engine, prepared, cursor: &cursor, found, room, probes };
        let claimed = within(engine, self.work.claim(claim)).await?;
        if W::is_in_vain(&claimed) {
            within(engine, cursor.release()).await?;
        } else if let Err(error) = within(engine, cursor.claimed(&engine.replica, W::is_durable(prepared))).await {
            if error.may_have_committed() {
                self.unanswered.extend(self.work.unanswered(claimed));
            }
            return Err(error);
        }
        Ok(Ok(claimed))
    }

    /// Keeps what a look has found to be due, of jobs in lanes, which wait for nothing but room: the next claim begins as soon as there is
    /// some. A process that runs once looks each time.
    pub(super) fn keep_found(&mut self, poll: Poll<W::Found>) {
        let keeps = poll.due && self.work.has_lanes() && self.context.engine.once().is_none();
        self.found = keeps.then(|| (poll, Instant::now()));
    }

    /// What was found to be due a moment ago, once. The claim reads it under the cursor's lock, with what has been sent since, and finds out
    /// there whether anything may be claimed at all.
    pub(super) fn found_before(&mut self, room: usize) -> Option<Poll<W::Found>> {
        let (poll, at) = self.found.take()?;
        let failures = &self.context.failures;
        let may_begin = room > 0 && !self.waits_for_claim() && !failures.is_out();
        (may_begin && failures.not_before <= Instant::now() && at.elapsed() < FRESH).then_some(poll)
    }

    /// Whether a claim was not answered, and what it may have claimed is not given back yet: the next claim would take that for what a
    /// replica had that ended. One that cannot be given back does not hold the others up: its claim is renewed.
    pub(super) fn waits_for_claim(&self) -> bool {
        let limit = self.context.config.turn.lock_kill();
        let soon = |attempt: &AttemptOf<W>| attempt.unanswered && !attempt.alone && attempt.ended.elapsed() < limit;
        !self.unanswered.is_empty() || self.unrecorded.iter().any(soon)
    }

    /// Finds out whether a claim whose commit was not answered has ended. A commit that waits for a standby takes place later: until then
    /// its transaction keeps the cursor locked, and what it has claimed cannot be seen. Once it has ended, that is given back with what
    /// is to be recorded.
    pub(super) async fn ask_unanswered(&mut self, prepared: &W::Prepared) -> Result<(), Error> {
        if self.unanswered.is_empty() {
            return Ok(());
        }
        let engine = &self.context.engine;
        let Single { connection, right: _right } = engine.single().await?;
        let locking = LockedCursor::lock(connection, &self.context.config.name, &prepared.seat().identity, None);
        if let Some(cursor) = within(engine, locking).await? {
            within(engine, cursor.release()).await?;
            // Only now can they be given back.
            self.unanswered.iter_mut().for_each(|attempt| attempt.ended = Instant::now());
            self.unrecorded.append(&mut self.unanswered);
        }
        Ok(())
    }

    /// How long to wait before the next claim.
    pub(super) fn not_claimed(&mut self, prepared: &W::Prepared, refusal: Refusal) -> Duration {
        match refusal {
            Refusal::Busy => BUSY.mul_f64(0.5 + fastrand::f64()),
            Refusal::NotNow => self.context.config.poll.max,
            Refusal::Early(pause) => {
                prepared.metrics().rate_limited(pause);
                self.context.failures.not_before = Instant::now() + pause;
                pause.min(self.work.longest_pause(&self.context.config))
            }
        }
    }
}

fn refusal<P: Prepared>(prepared: &P, cursor: &LockedCursor) -> Option<Refusal> {
    let halted = prepared.seat().stands_still(cursor.halted.as_ref());
    if cursor.foreign || cursor.paused || halted {
        return Some(Refusal::NotNow);
    }
    let (interval, rested) = prepared.sink().min_interval().zip(cursor.rested)?;
    (rested < interval).then(|| Refusal::Early(interval - rested))
}
