//! What the status page shows of the database: asked for while someone looks, and never else.
//!
//! One look at a time, whatever many ask; its result counts for all of them. A look that takes long is made the less often,
//! so that looking takes at most a third of one session's time. A database that does not answer delays no page: what was seen
//! last is shown, with its age.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use tokio::sync::{Notify, watch};

use crate::database;
use crate::relay::inspect::overview::Overview;

/// A look that is younger than this is not repeated.
const FRESH: Duration = Duration::from_secs(1);
/// A look that usually takes no longer than this is waited for.
const QUICK: Duration = Duration::from_millis(500);
/// What was seen longer ago than this is worth waiting for.
const STALE: Duration = Duration::from_secs(15);
/// A failure that is older than this may be over: it is worth waiting for another look before it is shown.
const OUTDATED: Duration = Duration::from_secs(5);
/// The longest that a page waits for a look.
const PATIENCE: Duration = Duration::from_secs(2);
/// The database that has not answered a look for this long does not answer.
const SILENCE: Duration = Duration::from_secs(5);
/// A look that takes longer has failed.
const DEADLINE: Duration = Duration::from_secs(30);
/// The session is closed when nothing was asked for this long.
const IDLE: Duration = Duration::from_secs(20);

/// Whom to ask.
#[async_trait]
pub trait Source: std::fmt::Debug + Send + Sync {
    /// Looks once.
    async fn look(&self) -> anyhow::Result<Overview>;
    /// Nothing is asked for a while: closes what is open.
    async fn rest(&self);
}

/// What was seen, and when.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) overview: Arc<Overview>,
    pub(super) at: Instant,
    /// How long the look took.
    took: Duration,
}

/// Why there is nothing newer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trouble {
    /// Whether the database did not answer at all.
    pub(super) silent: bool,
    /// A code, or what is wrong; without server and user.
    pub(super) what: String,
    /// What to do.
    pub(super) fix: String,
}

/// What can be shown now.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    pub(super) seen: Option<Seen>,
    pub(super) trouble: Option<Trouble>,
}

#[cfg(test)]
impl Seen {
    pub(super) fn now(overview: Overview) -> Self {
        Self { overview: Arc::new(overview), at: Instant::now(), took: Duration::ZERO }
    }
}

impl Standing {
    /// Whether both say the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        let at = |standing: &Self| standing.seen.as_ref().map(|seen| seen.at);
        at(self) == at(other) && self.trouble == other.trouble
    }
}

#[derive(Debug, Default)]
struct State {
    standing: Standing,
    /// When the look that is under way began.
    begun: Option<Instant>,
    /// When the last look failed; none after one that did not.
    failed: Option<Instant>,
    /// When it was last asked for.
    asked: Option<Instant>,
    works: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Board {
    source: Box<dyn Source>,
    state: Mutex<State>,
    asked: Notify,
    news: watch::Sender<u64>,
}

impl Board {
    /// A board that has not looked yet.
    pub(super) fn new(source: Box<dyn Source>) -> Arc<Self> {
        let (news, _) = watch::channel(0);
        Arc::new(Self { source, state: Mutex::default(), asked: Notify::new(), news })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What can be shown now, after a look if that is quick.
    pub(super) async fn standing(self: &Arc<Self>) -> Standing {
        let mut news = self.news.subscribe();
        let waits = {
            let mut state = self.state();
            state.asked = Some(Instant::now());
            if !state.works {
                state.works = true;
                tokio::spawn(Arc::clone(self).work());
            }
            state.is_worth_waiting()
        };
        self.asked.notify_one();
        if waits {
            news.mark_unchanged();
            // When none comes in time, what was seen before is shown.
            let _ = tokio::time::timeout(PATIENCE, news.changed()).await;
        }
        self.state().shown()
    }

    /// Looks again and again while it is asked for.
    async fn work(self: Arc<Self>) {
        loop {
            let begun = Instant::now();
            self.state().begun = Some(begun);
            let looked = tokio::time::timeout(DEADLINE, self.source.look()).await;
            let took = begun.elapsed();
            let looked = looked.map_err(|_| Trouble::late(DEADLINE)).and_then(Trouble::of);
            let failed = looked.is_err();
            self.state().looked(looked, took);
            if failed {
                self.source.rest().await;
            }
            self.news.send_modify(|number| *number += 1);
            tokio::time::sleep(FRESH.max(took * 2)).await;
            while !self.state().was_asked_since(begun) {
                if tokio::time::timeout(IDLE, self.asked.notified()).await.is_err() && self.ends(begun) {
                    self.source.rest().await;
                    return;
                }
            }
        }
    }

    /// Whether nothing was asked since then: then the next to ask begins again.
    fn ends(&self, begun: Instant) -> bool {
        let mut state = self.state();
        state.works = state.was_asked_since(begun);
        !state.works
    }
}

impl State {
    fn was_asked_since(&self, begun: Instant) -> bool {
        self.asked.is_some_and(|asked| asked > begun)
    }

    fn is_worth_waiting(&self) -> bool {
        match &self.standing {
            Standing { trouble: Some(_), .. } => {
                self.failed.is_some_and(|at| at.elapsed() > OUTDATED) && self.has_just_begun()
            }
            Standing { seen: None, .. } => self.has_just_begun(),
            Standing { seen: Some(seen), .. } if seen.at.elapsed() <= FRESH => false,
            Standing { seen: Some(seen), .. } => seen.took <= QUICK && !self.hangs() || seen.at.elapsed() > STALE,
        }
    }

    /// Whether no look is under way, or one that a page may still wait for.
    fn has_just_begun(&self) -> bool {
        self.begun.is_none_or(|begun| begun.elapsed() < PATIENCE)
    }

    /// Whether the look that is under way takes far longer than the one before.
    fn hangs(&self) -> bool {
        let usual = self.standing.seen.as_ref().map_or(Duration::ZERO, |seen| seen.took);
        self.begun.is_some_and(|begun| begun.elapsed() > SILENCE.max(usual * 3))
    }

    fn looked(&mut self, looked: Result<Overview, Trouble>, took: Duration) {
        self.begun = None;
        self.failed = looked.is_err().then(Instant::now);
        match looked {
            Ok(overview) => {
                let seen = Seen { overview: Arc::new(overview), at: Instant::now(), took };
                self.standing = Standing { seen: Some(seen), trouble: None };
            }
            Err(trouble) => self.standing.trouble = Some(trouble),
        }
    }

    fn shown(&self) -> Standing {
        let mut standing = self.standing.clone();
        if standing.trouble.is_none() && self.hangs() {
            let since = self.begun.map_or(Duration::ZERO, |begun| begun.elapsed());
            standing.trouble = Some(Trouble::late(since));
        }
        standing
    }
}

impl Trouble {
    fn late(after: Duration) -> Self {
        Self {
            silent: true,
            what: format!("no answer within {} s", after.as_secs()),
            fix: "See whether the server runs and can be reached; the relay's log names it.".to_owned(),
        }
    }

    fn of(looked: anyhow::Result<Overview>) -> Result<Overview, Self> {
        looked.map_err(|error| match error.downcast_ref::<database::Error>() {
            Some(error) => Self {
                silent: error.state().is_none() || matches!(error.state_class(), "08" | "57"),
                what: error.public_code(),
                fix: error.fix().to_owned(),
            },
            None => Self { silent: false, what: error.to_string(), fix: "See `outbox-relay check`.".to_owned() },
        })
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
