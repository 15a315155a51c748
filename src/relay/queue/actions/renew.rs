//! Renews the claims of actions that this process executes.
//!
//! Promise: a replica that cannot renew its claims in time stops its actions before another may take them up. A claim whose job
//! is gone, after a panic too, is not renewed any more: it expires.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::cursor::actions;
use crate::database::Error;
use crate::relay::engine::Engine;

/// How long a claim lasts when nobody renews it.
pub(super) const LEASE: Duration = Duration::from_secs(10);
/// How often it is renewed, and for how long an answer is waited for.
const EVERY: Duration = Duration::from_secs(2);
/// Without an answer for this long, the actions are stopped: another replica takes them up at [`LEASE`].
const GIVE_UP: Duration = Duration::from_secs(7);

/// One claim that is renewed while its job is there.
#[derive(Debug)]
pub(super) struct RenewedClaim {
    token: String,
    /// Ends when the claim is lost, or cannot be renewed.
    pub(super) lost: CancellationToken,
    progress: Mutex<Option<String>>,
}

impl RenewedClaim {
    /// What the action reported last, for people.
    pub(super) fn report(&self, line: &str) {
        *lock(&self.progress) = Some(line.to_owned());
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct ClaimRenewer {
    claims: Mutex<HashMap<i64, Weak<RenewedClaim>>>,
    /// When the last answer came, or the first claim was made.
    since: Mutex<Instant>,
}

impl Default for ClaimRenewer {
    fn default() -> Self {
        Self { claims: Mutex::default(), since: Mutex::new(Instant::now()) }
    }
}

impl ClaimRenewer {
    /// Renews a claim that was requested at `asked`, until it is dropped.
    pub(super) fn add(&self, id: i64, token: &str, asked: Instant) -> Arc<RenewedClaim> {
        let claim = Arc::new(RenewedClaim {
            token: token.to_owned(),
            lost: CancellationToken::new(),
            progress: Mutex::default(),
        });
        if self.current().is_empty() {
            *lock(&self.since) = asked;
        }
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
        let claims: Vec<(i64, String, Option<String>)> = self
            .current()
            .into_iter()
            .map(|(id, claim)| (id, claim.token.clone(), lock(&claim.progress).clone()))
            .collect();
        let asked = Instant::now();
        if claims.is_empty() {
            return;
        }
        let renewed = tokio::time::timeout(EVERY, async {
            let session = engine.probe.session().await?;
            actions::keep(&session, LEASE, &claims).await
        });
        match renewed.await.unwrap_or(Err(Error::Timeout(EVERY))) {
            Ok(renewed) => {
                *lock(&self.since) = asked;
                self.lose(claims.iter().map(|(id, token, _)| (*id, token)).filter(|(id, _)| !renewed.contains(id)));
            }
            Err(error) => {
                let since = lock(&self.since).elapsed();
                tracing::warn!(%error, ?since, actions = claims.len(), "cannot renew action claims");
                if since >= GIVE_UP {
                    self.lose(claims.iter().map(|(id, token, _)| (*id, token)));
                }
            }
        }
    }

    fn lose<'a>(&self, lost: impl Iterator<Item = (i64, &'a String)>) {
        let claims: HashMap<i64, Arc<RenewedClaim>> = self.current().into_iter().collect();
        for (id, token) in lost {
            if let Some(claim) = claims.get(&id).filter(|claim| claim.token == *token) {
                claim.lost.cancel();
            }
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
}
