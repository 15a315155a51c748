//! Renews the claims of actions that this process executes.
//!
//! Promise: a replica that cannot renew its claims in time stops its actions before another may take them up. A claim whose job
//! is gone, after a panic too, is not renewed any more: it expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::database::Error;
use crate::jobs::actions::{self, Kept};
use crate::relay::engine::Engine;

/// How long a claim lasts that is not renewed.
pub(super) const LEASE: Duration = Duration::from_secs(10);
/// How often it is renewed, and for how long an answer is waited for.
const EVERY: Duration = Duration::from_secs(2);
/// Without an answer for this long, the actions are stopped: another replica takes them up at [`LEASE`].
const GIVE_UP: Duration = Duration::from_secs(7);

/// Since when an action has been running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum RunState {
    /// Since its claim, or since when the database says.
    #[default]
    Recorded,
    /// It waits for a connection, and has been running for so long before.
    Waits(Duration),
    /// Since then, and for so long before.
    Since(Instant, Duration),
}

/// One claim that is renewed while its job is there.
#[derive(Debug)]
pub(super) struct RenewedClaim {
    token: String,
    /// When it was last asked for with success: as claimed, or renewed.
    since: Mutex<Instant>,
    /// Ends when the claim is lost, or cannot be renewed.
    pub(super) lost: CancellationToken,
    progress: Mutex<Option<String>>,
    running: Mutex<RunState>,
}

impl RenewedClaim {
    fn age(&self) -> Duration {
        lock(&self.since).elapsed()
    }

    /// What the action reported last, for people.
    pub(super) fn report(&self, line: &str) {
        *lock(&self.progress) = Some(line.to_owned());
    }

    /// The action waits for a connection, having run for so long.
    pub(super) fn waits(&self, ran: Duration) {
        *lock(&self.running) = RunState::Waits(ran);
    }

    /// The action runs from here on.
    pub(super) fn runs(&self) {
        let mut running = lock(&self.running);
        if let RunState::Waits(ran) = *running {
            *running = RunState::Since(Instant::now(), ran);
        }
    }

    /// For how long the action has been running; none when the database knows since when.
    pub(super) fn ran(&self) -> Option<Duration> {
        match *lock(&self.running) {
            RunState::Recorded => None,
            RunState::Waits(ran) => Some(ran),
            RunState::Since(begun, ran) => Some(begun.elapsed() + ran),
        }
    }

    /// It is renewed with what was said of it at `asked`.
    fn renewed(&self, asked: Instant) {
        *lock(&self.since) = asked;
        let mut running = lock(&self.running);
        if matches!(*running, RunState::Since(begun, _) if begun < asked) {
            *running = RunState::Recorded;
        }
    }

    fn kept(&self, id: i64) -> Kept {
        Kept { id, token: self.token.clone(), progress: lock(&self.progress).clone(), ran: self.ran() }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct ClaimRenewer {
    claims: Mutex<HashMap<i64, Weak<RenewedClaim>>>,
}

impl ClaimRenewer {
    /// Renews a claim that was requested at `asked`, until it is dropped.
    pub(super) fn add(&self, id: i64, token: &str, asked: Instant) -> Arc<RenewedClaim> {
        let claim = Arc::new(RenewedClaim {
            token: token.to_owned(),
            since: Mutex::new(asked),
            lost: CancellationToken::new(),
            progress: Mutex::default(),
            running: Mutex::default(),
        });
        lock(&self.claims).insert(id, Arc::downgrade(&claim));
        claim
    }

    /// The claims whose jobs are still there.
    fn current(&self) -> Vec<(i64, Arc<RenewedClaim>)> {
        let mut claims = lock(&self.claims);
        claims.retain(|_, claim| claim.strong_count() > 0);
        claims.iter().filter_map(|(id, claim)| Some((*id, claim.upgrade()?))).collect()
    }

    /// Renews all claims until it is dropped.
    pub(super) async fn run(&self, engine: &Engine) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.renew(engine).await;
        }
    }

    async fn renew(&self, engine: &Engine) {
        let claims = self.current();
        let asked = Instant::now();
        if claims.is_empty() {
            return;
        }
        let named: Vec<Kept> = claims.iter().map(|(id, claim)| claim.kept(*id)).collect();
        let renewed = tokio::time::timeout(EVERY, async {
            let session = engine.claims.session().await?;
            actions::keep(&session, LEASE, &named).await
        });
        match renewed.await.unwrap_or(Err(Error::Timeout(EVERY))) {
            Ok(kept) => settle(&claims, &kept, asked),
            Err(error) => {
                let oldest = claims.iter().map(|(_, claim)| claim.age()).max().unwrap_or_default();
                tracing::warn!(%error, ?oldest, actions = claims.len(), "cannot renew action claims");
                give_up(&claims);
            }
        }
    }
}

/// Notes which claims are still this replica's.
fn settle(claims: &[(i64, Arc<RenewedClaim>)], kept: &HashMap<i64, bool>, asked: Instant) {
    for (id, claim) in claims {
        match kept.get(id) {
            Some(true) => claim.renewed(asked),
            // Its row is locked. When that ends, its claim may have expired, and another replica may be the first.
            Some(false) => {}
            None => claim.lost.cancel(),
        }
    }
    give_up(claims);
}

/// Stops the actions whose claims could not be renewed for [`GIVE_UP`].
fn give_up(claims: &[(i64, Arc<RenewedClaim>)]) {
    for (_, claim) in claims {
        if claim.age() >= GIVE_UP {
            claim.lost.cancel();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Guarantee: pending.runner
    #[tokio::test]
    async fn claim_of_a_panicked_job_is_not_renewed() {
        let renewer = ClaimRenewer::default();
        let (kept, lost) = (renewer.add(1, "a", Instant::now()), renewer.add(2, "b", Instant::now()));
        let job = tokio::spawn(async move {
            let _claim = lost;
            panic!("a send that panics");
        });
        assert!(job.await.is_err());
        let renewed: Vec<i64> = renewer.current().into_iter().map(|(id, _)| id).collect();
        assert_eq!(renewed, [1]);
        drop(kept);
        assert!(renewer.current().is_empty());
    }

    // Guarantee: schedules.waiting
    #[test]
    fn action_that_waits_for_a_connection_does_not_run() {
        let renewer = ClaimRenewer::default();
        let claim = renewer.add(1, "a", Instant::now());
        let renew = |asked| settle(&renewer.current(), &HashMap::from([(1, true)]), asked);
        assert_eq!(claim.ran(), None, "since its claim");
        claim.waits(Duration::from_secs(5));
        renew(Instant::now());
        assert_eq!(claim.ran(), Some(Duration::from_secs(5)), "also after a renewal");
        let asked = Instant::now();
        claim.runs();
        renew(asked);
        assert!(claim.ran() >= Some(Duration::from_secs(5)), "the renewal was asked for before");
        renew(Instant::now());
        assert_eq!(claim.ran(), None, "the database knows");
    }

    // Guarantee: schedules.claims
    #[test]
    fn claim_is_given_up_by_its_own_age() {
        let renewer = ClaimRenewer::default();
        let long_ago = Instant::now().checked_sub(GIVE_UP).expect("the machine has run for some seconds");
        let (old, new) = (renewer.add(1, "a", long_ago), renewer.add(2, "b", Instant::now()));
        give_up(&renewer.current());
        assert!(old.lost.is_cancelled() && !new.lost.is_cancelled());
        // What is renewed is young again; what the server does not name has another replica.
        let old = renewer.add(3, "c", long_ago);
        settle(&renewer.current(), &HashMap::from([(3, true)]), Instant::now());
        assert!(!old.lost.is_cancelled() && new.lost.is_cancelled());
        // One that could not be renewed because its row is locked only becomes older.
        let (old, new) = (renewer.add(4, "d", long_ago), renewer.add(5, "e", Instant::now()));
        settle(&renewer.current(), &HashMap::from([(4, false), (5, false)]), Instant::now());
        assert!(old.lost.is_cancelled() && !new.lost.is_cancelled());
    }
}
