//! What a registry has said of one question, and when it is asked again.
//!
//! Promise: once there is an answer, no row waits for the registry: a later schema is asked for beside the publications, and until it is
//! there, or while the registry is away, the known one counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::question::Question;
use super::registry::{Given, Registry};
use crate::sink::Failure;

/// Before a registry that was away is asked for a later schema again, or sooner where schemas are refreshed more often.
const PAUSE: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) question: Question,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    given: Option<Arc<Given>>,
    /// When that was asked for.
    asked_at: Option<Instant>,
    /// From when on it is asked for again.
    due: Option<Instant>,
    /// It is being asked for again.
    asking: bool,
}

impl Kept {
    pub(super) fn new(question: Question) -> Self {
        Self { question, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an answer to what was asked then. The same answer stays the same object.
    fn take(&self, given: Given, asked_at: Instant, refresh: Duration) -> Arc<Given> {
        let mut state = self.state();
        state.asked_at = Some(asked_at);
        state.due = Some(Instant::now() + refresh);
        match state.given.as_ref().filter(|held| ***held == given) {
            Some(held) => Arc::clone(held),
            None => {
                let (id, version) = (given.id, given.version.map(i64::from).unwrap_or_default());
                let subject = &self.question.subject;
                tracing::info!(subject, id, version, "schema taken from the registry");
                Arc::clone(state.given.insert(Arc::new(given)))
            }
        }
    }

    /// What is held, and whether it is to be asked for again: who hears that asks, and says when that is over.
    fn held(&self) -> Option<(Arc<Given>, bool)> {
        let mut state = self.state();
        let given = state.given.clone()?;
        let is_due = state.due.is_none_or(|due| due <= Instant::now());
        let asks = is_due && self.question.may_change() && !state.asking;
        state.asking |= asks;
        Some((given, asks))
    }

    /// The question for a later one is over; without an answer it is repeated after a pause.
    fn asked(&self, refresh: Duration) {
        let mut state = self.state();
        state.asking = false;
        if state.due.is_none_or(|due| due <= Instant::now()) {
            state.due = Some(Instant::now() + refresh.min(PAUSE));
        }
    }

    /// The answer if it was asked for no earlier than then, or cannot change.
    fn since(&self, since: Instant) -> Option<Arc<Given>> {
        let state = self.state();
        let is_recent = state.asked_at.is_some_and(|at| at >= since);
        state.given.clone().filter(|_| is_recent || !self.question.may_change())
    }
}

impl Registry {
    /// The schema to write by now. Waits only where none is known.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn current(self: &Arc<Self>, kept: &Arc<Kept>) -> Result<Arc<Given>, Failure> {
        match kept.held() {
            Some((given, asks)) => {
                if asks {
                    self.refresh(kept);
                }
                Ok(given)
            }
            None => self.asked_now(kept).await,
        }
    }

    /// The schema that the registry has, as of then or later.
    ///
    /// # Errors
    /// Why that is not known.
    pub(super) async fn confirmed(&self, kept: &Kept, since: Instant) -> Result<Arc<Given>, Failure> {
        match kept.since(since) {
            Some(given) => Ok(given),
            None => self.asked_now(kept).await,
        }
    }

    async fn asked_now(&self, kept: &Kept) -> Result<Arc<Given>, Failure> {
        let asked_at = Instant::now();
        Ok(kept.take(self.ask(&kept.question).await?, asked_at, self.config.refresh))
    }

    /// Asks beside the publications.
    fn refresh(self: &Arc<Self>, kept: &Arc<Kept>) {
        let (registry, kept) = (Arc::clone(self), Arc::clone(kept));
        tokio::spawn(async move {
            if let Err(Failure { code, message, hint, .. }) = registry.asked_now(&kept).await {
                let subject = &kept.question.subject;
                tracing::warn!(subject, code, error = message, hint, "no later schema; the known one stays in use");
            }
            kept.asked(registry.config.refresh);
        });
    }
}
