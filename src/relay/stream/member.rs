//! One relay of a group: whether it is ready, busy, waiting or quiet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::task::JoinError;

use crate::cursor::Standing;
use crate::database::Error;
use crate::pace::Backoff;
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::circuit;
use crate::relay::engine::intervals::{RECHECK, SAMPLE};
use crate::relay::engine::not_ready::Unready;
use crate::relay::setup::begin::FirstLook;
use crate::relay::setup::deleted::LastSeen;
use crate::relay::setup::fingerprint::fingerprint;
use crate::relay::setup::prepare;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::setup::sinks;
use crate::relay::stream::changed_order;
use crate::relay::stream::clock_watch::ClockWatch;
use crate::relay::stream::idle;
use crate::relay::stream::learned::Learned;
use crate::relay::stream::poll::Look;
use crate::relay::stream::shards;
use crate::relay::stream::standby::Standby;
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

mod quiet;

pub(in crate::relay) use quiet::Quiet;

/// How long the checks may take, some of them of servers that hang.
const CHECKS: Duration = Duration::from_secs(60);

/// What checks find.
pub(in crate::relay) type Prepared = Result<Result<PreparedStream, Unready>, Error>;

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

    /// Its checks, to be run when they are due; what they find comes back to [`Self::checked`].
    pub(in crate::relay) fn checks(
        &mut self,
        engine: &Arc<Engine>,
        shape: &Arc<Shape>,
        sighting: &Sighting,
    ) -> Option<impl Future<Output = Prepared> + Send + 'static> {
        if self.ready.is_some() || self.preparing || self.busy || self.not_before > Instant::now() {
            return None;
        }
        self.preparing = true;
        let (engine, config) = (Arc::clone(engine), self.config.clone());
        let shape = Arc::clone(shape);
        let first = self.first_look.get_or_insert_with(|| FirstLook::new(sighting, &shape)).clone();
        let first = first.after(self.seen.clone());
        Some(async move {
            if let Err(unready) = engine.registry.admitted(&config, &engine.stop).await {
                return Ok(Err(unready));
            }
            let own_client = matches!(config.sink, crate::sink::Config::Kafka(_));
            let _permit = if own_client { engine.check().await } else { None };
            let checks = prepare::ready(&engine, &config, &shape, &first);
            tokio::time::timeout(CHECKS, checks).await.unwrap_or(Err(Error::Timeout(CHECKS)))
        })
    }

    /// Its checks have ended; the next look takes what they found.
    pub(in crate::relay) fn checked(&mut self, prepared: Result<Prepared, JoinError>) {
        self.preparing = false;
        self.prepared = Some(prepared);
    }

    /// Takes what its checks found.
    pub(in crate::relay) async fn prepare(&mut self, engine: &Arc<Engine>, shape: &Arc<Shape>) {
        let Some(prepared) = self.prepared.take() else { return };
        let unready = match prepared {
            // The columns' types have changed meanwhile: it is made again.
            Ok(Ok(Ok(ready))) if !ready.sink.fits(&shape.columns) => return,
            Ok(Ok(Ok(ready))) => {
                tracing::info!(cursor = self.config.name, rule = ready.shape.rule.as_str(), "relay ready");
                self.ready = Some(Arc::new(ready.with_shape(shape)));
                self.learned = Learned::new(&self.config);
                self.unchecked = true;
                self.unready = None;
                self.first_look = None;
                self.halted = false;
                engine.set_ready(&self.config.name);
                // Those that answer one by one are rarely many at a time.
                if !self.config.sink.one_by_one() {
                    engine.warm();
                }
                return;
            }
            Ok(Ok(Err(unready))) => unready,
            Ok(Err(error)) => Unready::from(&error),
            Err(error) => Unready::panicked(&error),
        };
        let pause = if matches!(unready, Unready::Waiting) { Duration::from_millis(20) } else { RECHECK };
        self.not_before = Instant::now() + pause;
        self.not_ready(engine, &unready).await;
    }

    /// Says why it cannot run.
    pub(in crate::relay) async fn not_ready(&mut self, engine: &Engine, unready: &Unready) {
        let news = self.unready.as_ref() != Some(unready);
        self.unready = Some(unready.clone());
        let first = self.first_look.clone().map(|first| first.after(self.seen.clone()));
        prepare::not_ready(engine, &self.config, unready, first.as_ref(), news).await;
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

    /// Whether nothing is to be done before the newest row or the cursor's standing changes.
    pub(in crate::relay) fn rests(&self, look: &Look) -> bool {
        let Some(ready) = &self.ready else { return false };
        let Some(standing) = look.standing(&self.config.name) else { return false };
        // Rows that wait to be sent again are no reason for a turn before their time, and their time comes.
        if self.busy || standing.change || standing.in_flight || standing.redrive && self.learned.resends_wait() {
            return false;
        }
        // A short memory ends before the group would look again.
        if look.is_behind(standing) && self.quiet_for(standing, look).is_some_and(|quiet| quiet.lasts < idle::FULL) {
            return false;
        }
        let stands = standing.paused || ready.stands_still(standing.halted.as_ref());
        stands || !self.is_wanted(ready, standing, look)
    }

    /// The memory of a turn that found nothing, when it is of what the look shows.
    fn quiet_for(&self, standing: &Standing, look: &Look) -> Option<&Quiet> {
        let (position, newest) = (standing.position.as_ref(), look.newest_for(standing));
        self.quiet.as_ref().filter(|quiet| quiet.is_of(position, newest))
    }

    /// Tells the turn that is running whether it is still wanted.
    pub(in crate::relay) fn tell(&self, ready: &PreparedStream, standing: &Standing, look: &Look) {
        let moves =
            changed_order::goes_back(standing, &ready.shape) || shards::follows(ready, standing, look).is_some();
        let moves = moves || self.unchecked;
        let late = standing.redrive || look.late.contains(&standing.name);
        let wanted = standing.change || standing.in_flight || late || moves || look.is_behind(standing);
        self.needless.store(!wanted, Relaxed);
    }

    /// Whether there is something for a turn.
    pub(in crate::relay) fn is_wanted(&self, ready: &PreparedStream, standing: &Standing, look: &Look) -> bool {
        let quiet = self.quiet_for(standing, look).is_some_and(|quiet| quiet.until > Instant::now());
        let unread = look.is_behind(standing) && !quiet;
        let back = changed_order::goes_back(standing, &ready.shape);
        let redrives = standing.redrive && !self.learned.resends_wait();
        let late = redrives || look.late.contains(&standing.name);
        late || unread || back || self.unchecked || shards::follows(ready, standing, look).is_some()
    }

    /// Whether another replica moved its cursor last.
    pub(in crate::relay) fn is_anothers(&self, engine: &Engine, standing: &Standing) -> bool {
        standing.advanced_by.as_ref().is_some_and(|by| *by != engine.replica)
    }

    /// Whether a turn is begun for nothing but rows up to the table's newest.
    pub(in crate::relay) fn begins_plainly(&self, ready: &PreparedStream, standing: &Standing, look: &Look) -> bool {
        let other = look.late.contains(&standing.name)
            || standing.change
            || standing.redrive
            || standing.in_flight
            || self.unchecked;
        !other && ready.config.shard.is_none() && !changed_order::goes_back(standing, &ready.shape)
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
