//! Claims due actions of schedules, in the transaction that locks the relay's cursor.

use std::time::Instant;

use super::ScheduleWork;
use super::job::ActionJob;
use super::prepare::PreparedSchedule;
use super::renew::LEASE;
use super::select::Running;
use crate::cursor::LockedCursor;
use crate::database::Error;
use crate::jobs::actions::{ClaimedAction, Interrupted};
use crate::relay::queue::work::Claim;

/// How many of the oldest are looked at, whoever's they are.
const OLDEST: i64 = 200;
/// How many tenants are looked at when some of them hide the others.
const TENANTS: i32 = 200;

/// What a claim came to.
#[derive(Debug)]
pub(super) struct ClaimedActions {
    /// Begun by replicas that are gone.
    pub(super) interrupted: Vec<Interrupted>,
    pub(super) actions: Vec<ClaimedAction>,
    pub(super) token: String,
    /// When they were asked for.
    pub(super) asked: Instant,
    /// After which tenant to look next.
    pub(super) after: String,
}

/// Claims actions, and takes up what others left.
pub(super) async fn claim(claim: Claim<'_, ScheduleWork>, after: &str) -> Result<ClaimedActions, Error> {
    let Claim { engine, prepared, cursor, found, room, .. } = claim;
    let (token, asked) = (format!("{:032x}", fastrand::u128(..)), Instant::now());
    let mut after = after.to_owned();
    let interrupted = if *found { cursor.expire_actions().await? } else { Vec::new() };
    let selected = select(cursor, prepared, room, &mut after).await?;
    let actions = match selected.is_empty() {
        true => Vec::new(),
        false => cursor.claim_actions(&token, &engine.replica, LEASE, &selected).await?,
    };
    Ok(ClaimedActions { interrupted, actions, token, asked, after })
}

impl ScheduleWork {
    /// The claim is committed: reports what others left, and begins to renew what is claimed.
    pub(super) fn begun(&mut self, name: &str, prepared: &PreparedSchedule, claimed: ClaimedActions) -> Vec<ActionJob> {
        self.after = claimed.after;
        for action in &claimed.interrupted {
            prepared.metrics.abandoned(1);
            if !action.again {
                prepared.counters.failed();
            }
            let (id, schedule, again) = (action.id, &action.schedule, action.again);
            tracing::warn!(
                cursor = name,
                id,
                schedule,
                again,
                "a replica ended or was cut off while it had the action"
            );
        }
        self.jobs(claimed.actions, &claimed.token, claimed.asked)
    }

    /// What was claimed with this token, and is renewed from now on.
    pub(super) fn jobs(&self, actions: Vec<ClaimedAction>, token: &str, asked: Instant) -> Vec<ActionJob> {
        let job = |action: ClaimedAction| {
            let claim = self.renewer.add(action.id, token, asked);
            ActionJob { action, token: token.to_owned(), claim, claimed: asked }
        };
        actions.into_iter().map(job).collect()
    }
}

/// The oldest first; and where a tenant has more waiting than it may run, the oldest of each tenant.
async fn select(
    cursor: &LockedCursor,
    prepared: &PreparedSchedule,
    most: usize,
    after: &mut String,
) -> Result<Vec<i64>, Error> {
    if most == 0 {
        return Ok(Vec::new());
    }
    let per_tenant = prepared.schedules.per_tenant;
    let mut running = Running::new(cursor.running_actions().await?);
    let oldest = cursor.oldest_actions(OLDEST).await?;
    let hidden = oldest.len() >= usize::try_from(OLDEST).unwrap_or(usize::MAX);
    let mut selected = running.select(oldest, per_tenant, most);
    if hidden && selected.len() < most {
        let each = i64::try_from(per_tenant).unwrap_or(i64::MAX);
        let nobodys = i64::try_from(most).unwrap_or(i64::MAX);
        let (others, next) = cursor.actions_by_tenant(after, TENANTS, each, nobodys).await?;
        *after = next;
        let others = others.into_iter().filter(|other| !selected.contains(&other.id)).collect::<Vec<_>>();
        selected.extend(running.select(others, per_tenant, most - selected.len()));
    }
    Ok(selected)
}
