//! The checks of a relay that sends its rows individually, and what they found.
//!
//! Promise: an outcome can be recorded with what the last passed checks found, also while the checks fail.

use std::sync::Arc;
use std::time::Instant;

use crate::database::Error;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::intervals::RECHECK;
use crate::relay::engine::not_ready::Unready;
use crate::relay::queue::failure_tracker::FailureTracker;
use crate::relay::setup::prepare::{self, Seat};
use crate::relay::setup::sinks;

/// What passed checks give to a relay.
pub(in crate::relay) trait Seated {
    /// What its cursor says of it.
    fn seat(&self) -> &Seat;
}

/// What the checks found, now and when they last passed.
#[derive(Debug)]
pub(in crate::relay) struct Checked<R> {
    /// The relay, while more may be begun.
    ready: Option<Arc<R>>,
    /// The relay as the last passed checks found it.
    last: Option<Arc<R>>,
    /// Why the last checks failed; logged again only when it changes.
    unready: Option<Unready>,
    at: Option<Instant>,
    /// The relay was halted when its cursor was last read.
    halted: bool,
}

impl<R> Default for Checked<R> {
    fn default() -> Self {
        Self { ready: None, last: None, unready: None, at: None, halted: false }
    }
}

impl<R: Seated> Checked<R> {
    /// What outcomes are recorded with; none before the checks have passed once.
    pub(in crate::relay) fn last(&self) -> Option<Arc<R>> {
        self.last.clone()
    }

    /// The fingerprint under which the relay is ready; none while it is not.
    pub(in crate::relay) fn fingerprint(&self) -> Option<String> {
        self.ready.as_ref().map(|ready| ready.seat().fingerprint.clone())
    }

    /// Nothing more is begun before the checks have passed again.
    pub(in crate::relay) fn repeat(&mut self) {
        self.ready = None;
    }

    /// The same, unless the last checks are younger than [`RECHECK`].
    pub(in crate::relay) fn repeat_if_due(&mut self) {
        if self.is_due() {
            self.repeat();
        }
    }

    /// Notes whether the relay is halted; while it is, its checks run from time to time, because another secret ends the halt.
    /// True when the halt has just ended: the checks run before anything is begun, because what they read, a topic's limits
    /// for example, may be what the operator has corrected.
    pub(in crate::relay) fn has_resumed(&mut self, engine: &Engine, config: &Config, halted: bool) -> bool {
        let resumed = std::mem::replace(&mut self.halted, halted) && !halted;
        if resumed {
            sinks::forget_topics(engine, config);
            self.at = None;
            self.repeat();
        } else if halted {
            self.repeat_if_due();
        }
        resumed
    }

    /// The relay, once `checks` have passed; they run only when they are due.
    ///
    /// # Errors
    /// The database's.
    pub(in crate::relay) async fn ready(
        &mut self,
        engine: &Engine,
        config: &Config,
        failures: &mut FailureTracker,
        checks: impl Future<Output = Result<Result<R, Unready>, Error>>,
    ) -> Result<Option<Arc<R>>, Error> {
        if self.ready.is_some() || !self.is_due() {
            return Ok(self.ready.clone());
        }
        self.at = Some(Instant::now());
        match checks.await? {
            Ok(ready) => {
                tracing::info!(cursor = config.name, "relay ready");
                self.unready = None;
                self.halted = false;
                failures.reported = ready.seat().reported;
                engine.set_ready(&config.name);
                self.last = Some(Arc::new(ready));
                self.ready.clone_from(&self.last);
            }
            Err(unready) => {
                let news = self.unready.as_ref() != Some(&unready);
                prepare::not_ready(engine, config, &unready, None, news).await;
                self.unready = Some(unready);
            }
        }
        Ok(self.ready.clone())
    }

    fn is_due(&self) -> bool {
        self.at.is_none_or(|at| at.elapsed() >= RECHECK)
    }
}
