//! Claiming actions: one short transaction under the lock of the relay's cursor.

use std::time::{Duration, Instant};

use super::Runner;
use super::choose::Running;
use super::keep::LEASE;
use super::ready::Ready;
use super::task::Task;
use crate::cursor::LockedCursor;
use crate::cursor::actions::{Claimed, Interrupted};
use crate::database::Error;
use crate::relay::engine::Slot;
use crate::relay::engine::deadline::within;

/// How many of the oldest are looked at, whoever's they are.
const OLDEST: i64 = 200;
/// How many tenants are looked at when some of them hide the others.
const TENANTS: i32 = 200;

/// What came of it.
#[derive(Debug)]
pub(super) enum Claim {
    /// Another replica is claiming.
    Busy,
    /// The relay is paused, halted, or no longer this one's.
    NotNow,
    /// The rate allows none yet.
    Early(Duration),
    /// These are this replica's to carry out, at once.
    Actions(Vec<Task>),
}

impl Runner {
    /// Claims at most `most` actions, and takes up what others left.
    pub(super) async fn claim(&mut self, ready: &Ready, interrupted: bool, most: usize) -> Result<Claim, Error> {
        let Slot { lock, reader, permits } = self.engine.slot(false).await?;
        drop(reader);
        let locking = LockedCursor::lock(lock, &ready.config.name, &ready.seat.identity, None);
        let Some(cursor) = within(&self.engine, locking).await? else { return Ok(Claim::Busy) };
        let refused = match (ready.sink.min_interval(), cursor.rested) {
            _ if cursor.foreign
                || cursor.paused
                || cursor.halted.as_deref() == Some(ready.seat.fingerprint.as_str()) =>
            {
                Some(Claim::NotNow)
            }
            (Some(interval), Some(rested)) if rested < interval => Some(Claim::Early(interval - rested)),
            _ => None,
        };
        if let Some(refused) = refused {
            within(&self.engine, cursor.release()).await?;
            return Ok(refused);
        }
        let (token, asked) = (format!("{:032x}", fastrand::u128(..)), Instant::now());
        let mut after = self.after.clone();
        let claiming = async {
            let gone = if interrupted { cursor.expire_actions().await? } else { Vec::new() };
            let chosen = choose(&cursor, ready, most, &mut after).await?;
            let claimed = match chosen.is_empty() {
                true => Vec::new(),
                false => cursor.claim_actions(&token, &self.engine.replica, LEASE, &chosen).await?,
            };
            if claimed.is_empty() && gone.is_empty() {
                cursor.release().await?;
            } else {
                // What is begun must be on the disk before: after a crash of the database it could not be told from what was not.
                cursor.claimed(&self.engine.replica, true).await?;
            }
            Ok((gone, claimed))
        };
        let (gone, claimed) = within(&self.engine, claiming).await?;
        drop(permits);
        self.after = after;
        for action in &gone {
            self.took_up(ready, action);
        }
        Ok(Claim::Actions(claimed.into_iter().map(|action| self.task(ready, action, &token, asked)).collect()))
    }

    fn took_up(&self, ready: &Ready, action: &Interrupted) {
        ready.metrics.abandoned(1);
        if !action.again {
            ready.counters.failed();
        }
        let (cursor, id, schedule, again) = (&self.config.name, action.id, &action.schedule, action.again);
        tracing::warn!(cursor, id, schedule, again, "a replica ended or was cut off while it had the action");
    }

    fn task(&self, ready: &Ready, action: Claimed, token: &str, asked: Instant) -> Task {
        if action.attempts == 0 {
            ready.counters.begun(action.started_at.since(action.planned_at.max(action.due_at)));
        }
        let kept = self.keeper.add(action.id, token, asked);
        Task { action, token: token.to_owned(), kept, claimed: asked }
    }
}

/// The oldest first; and where a tenant has more waiting than it may run, the oldest of each tenant.
async fn choose(cursor: &LockedCursor, ready: &Ready, most: usize, after: &mut String) -> Result<Vec<i64>, Error> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let per_tenant = ready.schedules.per_tenant;
    let mut running = Running::new(cursor.running_actions().await?);
    let oldest = cursor.oldest_actions(OLDEST).await?;
    let hidden = oldest.len() >= usize::try_from(OLDEST).unwrap_or(usize::MAX);
    let mut chosen = running.choose(oldest, per_tenant, most);
    if hidden && chosen.len() < most {
        let each = i64::try_from(per_tenant).unwrap_or(i64::MAX);
        let nobodys = i64::try_from(most).unwrap_or(i64::MAX);
        let (others, next) = cursor.actions_by_tenant(after, TENANTS, each, nobodys).await?;
        *after = next;
        let others = others.into_iter().filter(|other| !chosen.contains(&other.id)).collect::<Vec<_>>();
        chosen.extend(running.choose(others, per_tenant, most - chosen.len()));
    }
    Ok(chosen)
}
