//! One relay of a group: whether it is ready, busy, waiting or quiet.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tokio::task::JoinError;

use crate::cursor::Standing;
use crate::pace::Backoff;
use crate::position::Position;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::circuit;
use crate::relay::engine::intervals::SAMPLE;
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::begin::FirstLook;
use crate::relay::setup::deleted::LastSeen;
use crate::relay::setup::fingerprint::fingerprint;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::setup::sinks;
use crate::relay::stream::changed_order;
use crate::relay::stream::clock_watch::ClockWatch;
use crate::relay::stream::learned::Learned;
use crate::relay::stream::poll::Look;
use crate::relay::stream::shards;
use crate::relay::stream::standby::Standby;
use crate::source::watcher::Sighting;

mod checks;
mod quiet;
mod work;

pub(in crate::relay) use checks::Prepared;
pub(in crate::relay) use quiet::Quiet;

/// See the module.
#[derive(Debug)]
pub(in crate::relay) struct Member {
    pub(in crate::relay) config: Config,
    pub(in crate::relay) ready: Option<Arc<PreparedStream>>,
    pub(in crate::relay) backoff: Backoff,
    /// By its turns, since its checks passed.
    pub(in crate::relay) learned: Learned,
    /// No turn and no check before this.
    pub(in crate::relay) not_before: Instant,
    /// No turn before this, unless a hint comes.
    pub(in crate::relay) paces_until: Option<Instant>,
    /// A hint has come since its turn began: that turn may have read before the row came.
    pub(in crate::relay) woken: bool,
    /// A turn is running, or waits for connections.
    pub(in crate::relay) busy: bool,
    /// The last full look began it, for nothing but rows.
    pub(in crate::relay) begins: bool,
    /// While that turn waits, a look has found nothing to do for it any more, usually because another replica did it.
    pub(in crate::relay) needless: Arc<AtomicBool>,
    /// The table's tree has been read since its last turn: only a turn can tell whether its cursor has passed rows of a relation
    /// that is new to it, also where no row follows.
    pub(in crate::relay) unchecked: bool,
    /// The turn that is running began with the tree as it is.
    pub(in crate::relay) checking: bool,
    /// Nothing was found with this newest row at this position: not worth another turn for a while.
    pub(in crate::relay) quiet: Option<Quiet>,
    pub(in crate::relay) sampled: Option<Instant>,
    /// When its secrets' files were last read, while it is halted.
    secrets_read: Option<Instant>,
    /// It was halted when its cursor was last read.
    pub(in crate::relay) halted: bool,
    /// An operator had paused it then.
    pub(in crate::relay) paused: bool,
    /// Dead letters were to be sent again when its cursor was last read.
    redriving: bool,
    /// When it last tried to carry an operator's change out.
    requested: Option<Instant>,
    /// Its checks run.
    preparing: bool,
    /// What they found, until a look takes it.
    prepared: Option<Result<Prepared, JoinError>>,
    /// Why it could not run at the last check; said again only when it changes.
    unready: Option<Unready>,
    /// What the first look saw, until the relay is ready.
    first_look: Option<FirstLook>,
    /// Where a look has last seen its cursor.
    seen: Option<LastSeen>,
    /// A position beyond the database's clock, where an operator or the configuration has set it.
    pub(in crate::relay) ahead: Option<Position>,
    /// Of the database's clock, also while the relay is prepared again.
    pub(in crate::relay) clock: ClockWatch,
    /// Of a cursor that another replica moves.
    pub(in crate::relay) standby: Standby,
}

impl Member {
    pub(in crate::relay) fn new(config: Config) -> Self {
        Self {
            learned: Learned::new(&config),
            config,
            ready: None,
            backoff: Backoff::new(),
            not_before: Instant::now(),
            paces_until: None,
            woken: false,
            busy: false,
            begins: false,
            needless: Arc::default(),
            unchecked: true,
            checking: false,
            quiet: None,
            sampled: None,
            secrets_read: None,
            halted: false,
            paused: false,
            redriving: false,
            requested: None,
            preparing: false,
            prepared: None,
            unready: None,
            first_look: None,
            seen: None,
            ahead: None,
            clock: ClockWatch::default(),
            standby: Standby::default(),
        }
    }

    /// A hint has come: no turn waits for the end of a pause that rows before it have earned.
    pub(in crate::relay) fn hinted(&mut self) {
        self.paces_until = None;
        self.woken = self.busy;
    }

    /// Rows were there, and more may come after this pause.
    pub(in crate::relay) fn paces(&mut self, pause: Duration) {
        self.paces_until = (!self.woken).then(|| Instant::now() + pause);
    }

    /// Remembers where its cursor stands, whether it is ready or not.
    pub(in crate::relay) fn see(&mut self, look: &Look) {
        let seen = look.standing(&self.config.name).and_then(LastSeen::of);
        self.seen = seen.or_else(|| self.seen.take());
    }

    /// Whether it is halted. From time to time the secrets' files are read: one that has changed ends the halt, which
    /// preparing again finds out.
    pub(in crate::relay) fn is_halted(&mut self, ready: &PreparedStream, standing: &Standing) -> bool {
        let halted = ready.stands_still(standing.halted.as_ref());
        if halted && self.secrets_read.is_none_or(|read| read.elapsed() >= SAMPLE) {
            self.secrets_read = Some(Instant::now());
            if fingerprint(&self.config) != ready.fingerprint {
                self.ready = None;
            }
        }
        halted
    }

    /// Whether an operator has just ended its halt, or wants dead letters sent again. What its checks read, a topic's limits
    /// for example, may be what was corrected: they run again first.
    pub(in crate::relay) fn has_resumed(
        &mut self,
        engine: &Engine,
        ready: &PreparedStream,
        standing: &Standing,
    ) -> bool {
        let halted = ready.stands_still(standing.halted.as_ref());
        let resumed = std::mem::replace(&mut self.halted, halted) && !halted;
        let redrives = !std::mem::replace(&mut self.redriving, standing.requested) && standing.requested;
        if resumed || redrives {
            sinks::forget_topics(engine, &self.config);
            self.ready = None;
        }
        resumed || redrives
    }

    /// Whether to try an operator's change now: neither a pause, a halt nor a back-off holds it up. One that another
    /// replica's turn stands before, or that is not for this relay, is retried after a standby's pause.
    pub(in crate::relay) fn tries_change(&mut self, standing: &Standing) -> bool {
        let rested = self.requested.is_none_or(|tried| tried.elapsed() >= self.config.poll.standby);
        if standing.change && rested {
            self.requested = Some(Instant::now());
        }
        standing.change && rested
    }

    /// Whether another replica moved its cursor last.
    pub(in crate::relay) fn is_anothers(&self, engine: &Engine, standing: &Standing) -> bool {
        standing.advanced_by.as_ref().is_some_and(|by| *by != engine.replica)
    }

    /// Whether its cursor is another replica's to move, and nothing else is to be done here.
    pub(in crate::relay) fn stands_by(&self, engine: &Engine, look: &Look) -> bool {
        if self.busy || self.standby.contends(Instant::now()) {
            return false;
        }
        let standing = look.standing(&self.config.name).filter(|standing| !standing.change);
        standing.is_some_and(|standing| self.is_anothers(engine, standing))
    }

    /// When to look again at rows that another replica is likely to take; none when this one is to try.
    pub(in crate::relay) fn left_until(
        &mut self,
        engine: &Engine,
        ready: &PreparedStream,
        standing: &Standing,
        look: &Look,
    ) -> Option<Instant> {
        let wants_more = standing.redrive
            || changed_order::goes_back(standing, &ready.shape)
            || shards::follows(ready, standing, look).is_some();
        let waits = look.is_behind(standing) || standing.in_flight || look.late.contains(&standing.name);
        if wants_more || !waits || !self.is_anothers(engine, standing) {
            return None;
        }
        let rested = look.sighting.clock().since(standing.advanced_at);
        let draw = (Instant::now(), fastrand::f64());
        self.standby.until(standing.position.as_ref(), rested, &self.config.poll, draw)
    }

    /// When it may go on, if it must wait: after a failure, as a standby, for its pace, for a sink that is out, or for its rate.
    pub(in crate::relay) fn due(
        &mut self,
        ready: &PreparedStream,
        standing: &Standing,
        sighting: &Sighting,
    ) -> Option<Instant> {
        let now = Instant::now();
        if self.not_before > now {
            return Some(self.not_before);
        }
        self.paces_until = self.paces_until.filter(|until| *until > now);
        if self.paces_until.is_some() {
            return self.paces_until;
        }
        if let Some(wait) = standing.circuit.map(|circuit| circuit::wait(&circuit, sighting.clock()))
            && !wait.is_zero()
        {
            return Some(now + wait);
        }
        let interval = ready.sink.min_interval().filter(|_| standing.advanced_by.is_some())?;
        let wait = standing.advanced_at.plus(interval).since(sighting.clock());
        if wait.is_zero() {
            return None;
        }
        self.not_before = now + wait;
        ready.metrics.rate_limited(wait);
        Some(self.not_before)
    }
}
