//! What all relays of a process share: connections, slots, the watcher, the ends of life.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::cursor::liveness;
use crate::database::{self, Error, Limits, Loan, Sessions};
use crate::health::{Heartbeat, Readiness};
use crate::metrics::{self, PoolState};
use crate::position::Timestamp;
use crate::relay::Config;
use crate::relay::engine::control_changes::Bulletin;
use crate::relay::engine::registry::Registry;
use crate::relay::engine::slots::Slots;
use crate::relay::engine::topics::Topics;
use crate::relay::engine::wakeups::Hints;
use crate::sink::kafka::Cluster;
use crate::source::watcher::Watcher;
use crate::telemetry::traces::Traces;

pub(in crate::relay) mod circuit;
pub mod config_hash;
pub(in crate::relay) mod control_changes;
pub(in crate::relay) mod dead_letter;
pub(in crate::relay) mod deadline;
pub(in crate::relay) mod disposition;
pub(in crate::relay) mod drain;
pub mod identity;
pub(in crate::relay) mod intervals;
pub mod lag;
pub mod not_ready;
pub(in crate::relay) mod open_since;
mod progress;
pub(in crate::relay) mod registry;
pub mod replicas;
pub(in crate::relay) mod report;
pub(in crate::relay) mod shared;
mod slots;
pub(in crate::relay) mod topics;
pub(in crate::relay) mod unreadable;
mod unrecorded;
pub(in crate::relay) mod wakeups;
mod warm;

pub use self::progress::Progress;
pub use self::shared::Shared;
pub(in crate::relay) use self::slots::Single;
pub use self::slots::Slot;
pub use self::unrecorded::Unrecorded;

/// The engine goes round at least every ten seconds, also while servers cannot be reached; longer than this, it is stuck.
const STUCK: Duration = Duration::from_secs(60);
/// How many relays may check a Kafka cluster at the same time.
const CHECKS: usize = 4;
/// Counting backlogs rests for so many times as long as it took.
const COUNTING: u32 = 9;

/// See the module.
#[derive(Debug)]
pub struct Engine {
    /// This replica's name.
    pub replica: String,
    /// The database's name.
    pub(in crate::relay) database: String,
    /// Looks at who is writing.
    pub watcher: Watcher,
    /// What notifications wake.
    pub(in crate::relay) hints: Hints,
    /// What groups that rest are told.
    pub(in crate::relay) bulletin: Bulletin,
    /// What the cluster has just said.
    pub(in crate::relay) topics: Topics,
    /// Which of its relays this process may run.
    pub(in crate::relay) registry: Registry,
    /// For probes, samples and status.
    pub probe: Shared,
    /// For the claims of actions alone: renewing them waits for no look at a table. Opened with the first claim.
    pub(in crate::relay) claims: Shared,
    /// The Kafka cluster, when one is configured.
    pub cluster: Option<Arc<Cluster>>,
    /// Where the spans of turns go.
    pub traces: Traces,
    /// Ends when no new turn may begin.
    pub stop: CancellationToken,
    /// Beats while the engine looks at its tables.
    pub heartbeat: Arc<Heartbeat>,
    /// What the process waits for before it is ready.
    pub readiness: Readiness,
    /// Ends when running turns are cut: the grace period is over.
    pub cut: CancellationToken,
    /// Names of the relays that have passed their checks.
    ready: std::sync::Mutex<BTreeSet<String>>,
    /// Per sink that has been out: who may try it.
    probes: std::sync::Mutex<HashMap<String, Arc<Semaphore>>>,
    /// When this `run --once` began, by the database's clock.
    once: OnceLock<Timestamp>,
    /// How far the relays of due work have come.
    progress: std::sync::Mutex<HashMap<String, Progress>>,
    /// Outcomes that receivers acknowledged and that are not recorded.
    pub unrecorded: Unrecorded,
    /// Checks that connect a client of their own: as many clients remain, each with its threads.
    checks: Arc<Semaphore>,
    /// No backlog is counted before this: counting takes only so much of the database's time.
    count_from: std::sync::Mutex<Instant>,
    /// Names of the relays of the whole configuration.
    pub(in crate::relay) configured: Vec<String>,
    /// Who has connections of the pool.
    slots: Slots,
    /// For how many turns connections have been opened ahead.
    warmed: AtomicUsize,
    /// The last result of [`Self::open_since`], and when it was queried.
    pub(in crate::relay) last_open_since: tokio::sync::Mutex<Option<(Instant, Option<Timestamp>)>>,
    /// The longest single call to the database.
    pub call_deadline: Duration,
}

impl Engine {
    /// An engine for a database. `limits` are those of the relay with the longest deadline; what the `relays` run names
    /// its sessions.
    ///
    /// # Errors
    /// When the pool cannot be built.
    pub fn new(
        database: &database::Config,
        limits: Limits,
        replica: String,
        cluster: Option<Arc<Cluster>>,
        relays: &[Config],
    ) -> anyhow::Result<Self> {
        let application = replicas::application(&replica, relays);
        let registry = Registry::new(relays);
        let lives = liveness::hold(registry.instance());
        let sessions = || Sessions::new(database.clone(), limits, application.clone()).with_first(lives.clone());
        // What is asked again and again is planned once: the values say nothing that a plan should depend on.
        let asking = || sessions().with_first(format!("{lives}SET plan_cache_mode = 'force_generic_plan'"));
        let slots = database.slots();
        let pool = database::pool(sessions().with_user_sql(replicas::run_user_sql(relays)), slots * 2)?;
        Ok(Self {
            watcher: Watcher::new(asking(), limits.statement),
            probe: Shared::new(asking()),
            claims: Shared::silent(sessions()),
            registry,
            hints: Hints::new(sessions()),
            bulletin: Bulletin::default(),
            topics: Topics::default(),
            checks: Arc::new(Semaphore::new(CHECKS)),
            count_from: std::sync::Mutex::new(Instant::now()),
            configured: relays.iter().map(|relay| relay.relay.clone()).collect(),
            slots: Slots::new(pool, slots),
            warmed: AtomicUsize::new(0),
            traces: Traces::default(),
            stop: CancellationToken::new(),
            cut: CancellationToken::new(),
            heartbeat: Arc::new(Heartbeat::new(STUCK)),
            readiness: Readiness::default(),
            ready: std::sync::Mutex::default(),
            probes: std::sync::Mutex::default(),
            once: OnceLock::new(),
            progress: std::sync::Mutex::default(),
            unrecorded: Unrecorded::default(),
            last_open_since: tokio::sync::Mutex::default(),
            database: database.name().to_owned(),
            call_deadline: limits.statement,
            cluster,
            replica,
        })
    }

    /// The relays of the whole configuration, of which this process may run some.
    #[must_use]
    pub fn with_configured(mut self, relays: Vec<String>) -> Self {
        self.configured = relays;
        self
    }

    /// The same, whose turns are exported there.
    #[must_use]
    pub fn with_traces(mut self, traces: Traces) -> Self {
        self.traces = traces;
        self
    }

    /// Waits for a slot: the right to two connections, which are then given without delay.
    ///
    /// # Errors
    /// When the pool is closed.
    pub async fn permits(&self, slow: bool) -> Result<Vec<OwnedSemaphorePermit>, Error> {
        self.slots.permits(slow).await
    }

    /// Whether a slot is waited for, so that none should be kept longer than it must be.
    pub(in crate::relay) fn is_crowded(&self) -> bool {
        self.slots.waiting() > 0
    }

    /// Waits for a slot and takes its connections: both or none.
    ///
    /// # Errors
    /// When a connection cannot be opened.
    pub async fn slot(&self, slow: bool) -> Result<Slot, Error> {
        self.slots.slot(slow).await
    }

    /// Waits for one connection, for a transaction that ends within [`Self::call_deadline`]. It waits for no action.
    ///
    /// # Errors
    /// When a connection cannot be opened.
    pub(in crate::relay) async fn single(&self) -> Result<Single, Error> {
        self.slots.single().await
    }

    /// Waits for one connection, for a statement or a query of an action; `slow` as in [`Self::permits`].
    ///
    /// # Errors
    /// When a connection cannot be opened.
    pub(in crate::relay) async fn for_action(&self, slow: bool) -> Result<Single, Error> {
        self.slots.for_action(slow).await
    }

    /// The right to check a cluster.
    pub(in crate::relay) async fn check(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.checks).acquire_owned().await.ok()
    }

    /// Whether backlogs may be counted now; [`Self::counted`] says when again.
    pub(in crate::relay) fn may_count(&self) -> bool {
        *self.count_from.lock().unwrap_or_else(PoisonError::into_inner) <= Instant::now()
    }

    /// A backlog was counted, which took as long as this.
    pub(in crate::relay) fn counted(&self, took: Duration) {
        let mut from = self.count_from.lock().unwrap_or_else(PoisonError::into_inner);
        *from = (*from).max(Instant::now()) + took * COUNTING;
    }

    /// One of a slot's two connections, or another instead of one that has ended or was given back.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(in crate::relay) async fn connection(&self) -> Result<Loan, Error> {
        self.slots.connection().await
    }

    /// Whether a relay begins nothing more: the engine stops, or replicas with another configuration of it run.
    pub(in crate::relay) fn ends(&self, relay: &str) -> bool {
        self.stop.is_cancelled() || self.registry.gives_way(relay)
    }

    /// A relay has passed its checks.
    pub fn set_ready(&self, relay: &str) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(relay.to_owned());
    }

    /// Whether a relay has passed its checks.
    #[must_use]
    pub fn is_ready(&self, relay: &str) -> bool {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).contains(relay)
    }

    /// This process tries every row that is due once, and then ends; `at` is the database's clock.
    pub fn run_once(&self, at: Timestamp) {
        self.once.get_or_init(|| at);
    }

    /// When this `run --once` began; none in a process that runs on.
    #[must_use]
    pub fn once(&self) -> Option<Timestamp> {
        self.once.get().copied()
    }

    /// Notes how far a relay of due work has come; how far it has come now.
    pub fn progress(&self, relay: &str, note: impl FnOnce(&mut Progress)) -> Progress {
        let mut all = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let progress = all.entry(relay.to_owned()).or_default();
        note(progress);
        *progress
    }

    /// The right to try a sink that is out; none while another relay of this process does.
    pub(in crate::relay) fn probe_permit(&self, sink: &str) -> Option<OwnedSemaphorePermit> {
        let mut probes = self.probes.lock().unwrap_or_else(PoisonError::into_inner);
        let semaphore = probes.entry(sink.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(1)));
        Arc::clone(semaphore).try_acquire_owned().ok()
    }

    /// Shows how many of the pool's connections are open, and at work, and what the Kafka client says of itself.
    pub fn measure_connections(&self) {
        if let Some(said) = self.cluster.as_ref().map(|cluster| cluster.statistics()) {
            metrics::set_kafka(said.queued, &said.round_trips);
        }
        let (idle, in_use) = self.slots.connections();
        metrics::set_pool_connections(PoolState::Idle, idle);
        metrics::set_pool_connections(PoolState::InUse, in_use);
    }
}
