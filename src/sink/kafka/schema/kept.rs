//! What a registry has said of one question, and when it is asked again.
//!
//! Promise: once there is an answer, no row waits for the registry: a later schema is asked for beside the publications, and until it is
//! there, or while the registry is away, the known one counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::question::Question;
use super::registry::{Given, Registry};
use crate::sink::{Class, Failure};

/// Before a registry that was away is asked for a later schema again, or sooner where schemas are refreshed more often.
const PAUSE: Duration = Duration::from_secs(10);
/// For so long a question without an answer is not repeated, whatever number of rows need it.
const AWAY: Duration = Duration::from_secs(1);

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
    /// When the registry gave no answer, and why.
    away: Option<(Instant, Failure)>,
}

impl Kept {
    pub(super) fn new(question: Question) -> Self {
        Self { question, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an answer to what was asked then, unless one to a later question is held. The same answer stays the same object.
    fn take(&self, given: Given, asked_at: Instant, refresh: Duration) -> Arc<Given> {
        let mut state = self.state();
        state.away = None;
        let is_late = state.asked_at.is_some_and(|at| at > asked_at);
        if let Some(later) = state.given.as_ref().filter(|_| is_late) {
            return Arc::clone(later);
        }
        state.asked_at = Some(asked_at);
        state.due = Some(Instant::now() + refresh);
        match state.given.as_ref().filter(|held| ***held == given) {
            Some(held) => Arc::clone(held),
            None => {
                let (id, version) = (given.id, given.version.map(i64::from));
                let subject = &self.question.subject;
                tracing::info!(subject, id, version, "schema taken from the registry");
                Arc::clone(state.given.insert(Arc::new(given)))
            }
        }
    }

    /// Why there was no answer a moment ago.
    fn away(&self) -> Option<Failure> {
        let state = self.state();
        let (_, failure) = state.away.as_ref().filter(|(since, _)| since.elapsed() < AWAY)?;
        Some(failure.clone())
    }

    /// There is no answer now.
    fn failed(&self, failure: &Failure) {
        if failure.class == Class::Retry {
            self.state().away = Some((Instant::now(), failure.clone()));
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
        if let Some(failure) = kept.away() {
            return Err(failure);
        }
        let asked_at = Instant::now();
        let given = self.ask(&kept.question).await.inspect_err(|failure| kept.failed(failure))?;
        Ok(kept.take(given, asked_at, self.config.refresh))
    }

    /// Asks beside the publications.
    fn refresh(self: &Arc<Self>, kept: &Arc<Kept>) {
        let (registry, asking) = (Arc::clone(self), Asking { kept: Arc::clone(kept), refresh: self.config.refresh });
        tokio::spawn(async move { asking.ask(&registry).await });
    }
}

/// A question for a later schema: over when this is dropped, however its task ends.
struct Asking {
    kept: Arc<Kept>,
    refresh: Duration,
}

impl Asking {
    async fn ask(self, registry: &Registry) {
        if let Err(Failure { code, message, hint, .. }) = registry.asked_now(&self.kept).await {
            let subject = &self.kept.question.subject;
            tracing::warn!(subject, code, error = message, hint, "no later schema; the known one stays in use");
        }
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.kept.asked(self.refresh);
    }
}

#[cfg(test)]
mod tests {
    use super::super::question::Which;
    use super::*;

    #[test]
    fn answer_to_an_earlier_question_replaces_none_to_a_later_one() {
        let kept = Kept::new(Question { subject: "t-value".to_owned(), which: Which::Latest });
        let given = |id| Given {
            id,
            version: None,
            kind: "AVRO".to_owned(),
            text: "\"string\"".to_owned(),
            references: Vec::new(),
        };
        let (refresh, earlier) = (Duration::from_secs(600), Instant::now());
        let later = earlier + Duration::from_millis(1);
        assert_eq!(kept.take(given(2), later, refresh).id, 2);
        assert_eq!(kept.take(given(1), earlier, refresh).id, 2);
        assert_eq!(kept.since(later).map(|given| given.id), Some(2));
        assert_eq!(kept.take(given(3), later, refresh).id, 3);
    }
}
