//! Keeps the claims of actions that this process is at work on: it says so again and again.
//!
//! Promise: whoever cannot say so in time stops its actions before another replica may take them up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::cursor::actions;
use crate::database::Error;
use crate::relay::engine::Engine;

/// How long a claim lasts when nobody keeps it.
pub(super) const LEASE: Duration = Duration::from_secs(10);
/// How often it is kept, and for how long an answer is waited for.
const EVERY: Duration = Duration::from_secs(2);
/// Without an answer for this long, the actions are stopped: another replica takes them up at [`LEASE`].
const GIVE_UP: Duration = Duration::from_secs(7);

/// One claim that is kept.
#[derive(Debug)]
pub(super) struct Kept {
    token: String,
    /// Ends when the claim is lost, or cannot be kept.
    pub(super) lost: CancellationToken,
    said: Mutex<Option<String>>,
}

impl Kept {
    /// What the action said last, for people.
    pub(super) fn say(&self, line: &str) {
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Some(line.to_owned());
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Keeper {
    claims: Mutex<HashMap<i64, Arc<Kept>>>,
    /// When the last answer came, or the first claim was made.
    since: Mutex<Instant>,
}

impl Default for Keeper {
    fn default() -> Self {
        Self { claims: Mutex::default(), since: Mutex::new(Instant::now()) }
    }
}

impl Keeper {
    /// Keeps a claim that was asked for at `asked`.
    pub(super) fn add(&self, id: i64, token: &str, asked: Instant) -> Arc<Kept> {
        let kept = Arc::new(Kept { token: token.to_owned(), lost: CancellationToken::new(), said: Mutex::default() });
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.is_empty() {
            *self.since.lock().unwrap_or_else(PoisonError::into_inner) = asked;
        }
        claims.insert(id, Arc::clone(&kept));
        kept
    }

    /// What became of the action is recorded, or somebody else has it.
    pub(super) fn remove(&self, id: i64, token: &str) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.get(&id).is_some_and(|kept| kept.token == token) {
            claims.remove(&id);
        }
    }

    /// Keeps all claims until it is dropped.
    pub(super) async fn run(&self, engine: &Engine) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.keep(engine).await;
        }
    }

    async fn keep(&self, engine: &Engine) {
        let claims: Vec<(i64, String, Option<String>)> = {
            let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
            let said = |kept: &Kept| kept.said.lock().unwrap_or_else(PoisonError::into_inner).clone();
            claims.iter().map(|(id, kept)| (*id, kept.token.clone(), said(kept))).collect()
        };
        let asked = Instant::now();
        if claims.is_empty() {
            return;
        }
        let kept = tokio::time::timeout(EVERY, async {
            let session = engine.probe.session().await?;
            actions::keep(&session, LEASE, &claims).await
        });
        match kept.await.unwrap_or(Err(Error::Timeout(EVERY))) {
            Ok(kept) => {
                *self.since.lock().unwrap_or_else(PoisonError::into_inner) = asked;
                self.lose(claims.iter().map(|(id, token, _)| (*id, token)).filter(|(id, _)| !kept.contains(id)));
            }
            Err(error) => {
                let since = self.since.lock().unwrap_or_else(PoisonError::into_inner).elapsed();
                tracing::warn!(%error, ?since, actions = claims.len(), "cannot say that actions are being carried out");
                if since >= GIVE_UP {
                    self.lose(claims.iter().map(|(id, token, _)| (*id, token)));
                }
            }
        }
    }

    fn lose<'a>(&self, lost: impl Iterator<Item = (i64, &'a String)>) {
        let claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, token) in lost {
            if let Some(kept) = claims.get(&id).filter(|kept| kept.token == *token) {
                kept.lost.cancel();
            }
        }
    }
}
