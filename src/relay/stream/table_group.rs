//! The relays of one source: one look at the table serves them all.
//!
//! A look is a scan of the writers, the newest row that is safe to read, and where the cursors stand: no lock, no
//! transaction id, no WAL. Only a cursor that is behind gets a turn. While nothing is to be done looks are short (see
//! [`crate::relay::stream::idle`]): idle cost grows with tables, not with cursors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{Id, JoinSet};

use crate::cursor::ClockStep;
use crate::database::Error;
use crate::pace::freshness::{self, Arrivals};
use crate::pace::{self, Backoff, Pace};
use crate::position::{Position, Timestamp};
use crate::relay::engine::Engine;
use crate::relay::engine::open_since::OpenSince;
use crate::relay::engine::wakeups::Sleeper;
use crate::relay::stream::gauges::Samples;
use crate::relay::stream::idle::{self, Rest};
use crate::relay::stream::idle_poller::{IdlePoller, Pauses};
use crate::relay::stream::member::{Member, Prepared};
use crate::relay::stream::passed_over::PassedOver;
use crate::relay::stream::report;
use crate::relay::stream::shards::Shards;
use crate::relay::stream::standby;
use crate::relay::stream::worker::Ended;
use crate::source::shape::Shape;

mod catalog;
mod look;
mod next;
mod positions;
mod wait;

/// A look that takes longer hangs on a server that keeps its connection and does not answer.
const STEP: Duration = Duration::from_secs(30);
/// How often the catalog is read again; while the group rests, it is read again before turns begin, and as often as
/// [`CATALOGUE_AT_REST`].
const CATALOGUE: Duration = Duration::from_secs(1);
const CATALOGUE_AT_REST: Duration = Duration::from_secs(5);

/// The relays of one source.
#[derive(Debug)]
pub(in crate::relay) struct Group {
    engine: Arc<Engine>,
    /// Looks at the table while the group rests.
    sentry: Arc<IdlePoller>,
    source: crate::source::Config,
    members: Vec<Member>,
    shape: Option<Arc<Shape>>,
    shape_read: Option<Instant>,
    /// The newest row at the last look.
    latest: Option<Position>,
    /// When that was, by the database's clock.
    seen: Option<Timestamp>,
    /// While nothing is to be done before the newest row is another.
    rest: Option<Rest>,
    /// The same, once the turns that the last full look began have brought their cursors to its newest row.
    rest_after: Option<Rest>,
    /// The group rests since its turns have ended: the first short look is still to come.
    arrived: bool,
    /// Who is not waited for.
    passed_over: PassedOver,
    /// The newest row that the sentry has found instead of the one of the rest.
    newer: Option<Position>,
    /// The sentry has found rows that came late.
    late: bool,
    /// Of the shape as it is; another shape has another.
    open_since: Arc<OpenSince>,
    samples: Samples,
    /// Hears of rows, when some relay asks for that.
    sleeper: Option<Arc<Sleeper>>,
    /// A hint ended the last pause: what it tells of may lie a moment in the future of this replica's idea of the clock.
    hinted: bool,
    /// The newest row of each shard.
    shards: Shards,
    /// When the first relay may go on that has something to do but must wait, or the newest row is safe to read.
    wake: Option<Instant>,
    /// When rows have come.
    arrivals: Arrivals,
    /// All cursors are moved by other replicas, as far as the last full look could tell.
    stands_by: bool,
    /// Every relay that has something to do must wait or is busy.
    waits: bool,
    /// The last full look has found rows that another replica leaves, with a catalog that was too old for a turn.
    takes_over: bool,
    running: JoinSet<Ended>,
    /// Relays' checks.
    preparing: JoinSet<Prepared>,
    /// Whose turns or checks these are.
    tasks: HashMap<Id, usize>,
    /// Steps back of the clock that are still to be written down, by cursor.
    steps: Vec<(String, ClockStep)>,
}

impl Group {
    /// A group of relays with the same source.
    #[must_use]
    pub(in crate::relay) fn new(
        engine: Arc<Engine>,
        sentry: Arc<IdlePoller>,
        source: crate::source::Config,
        relays: Vec<crate::relay::Config>,
    ) -> Self {
        let members: Vec<_> = relays.into_iter().map(Member::new).collect();
        let sleeper = members.iter().any(|member| member.config.poll.notify).then(|| engine.hints.sleeper());
        Self {
            engine,
            sentry,
            source,
            members,
            shape: None,
            shape_read: None,
            latest: None,
            seen: None,
            rest: None,
            rest_after: None,
            arrived: false,
            passed_over: PassedOver::default(),
            newer: None,
            late: false,
            open_since: Arc::default(),
            samples: Samples::default(),
            sleeper,
            hinted: false,
            shards: Shards::default(),
            wake: None,
            arrivals: Arrivals::default(),
            stands_by: false,
            waits: false,
            takes_over: false,
            running: JoinSet::new(),
            preparing: JoinSet::new(),
            tasks: HashMap::new(),
            steps: Vec::new(),
        }
    }

    /// Runs until the engine stops; running turns are waited for.
    pub(in crate::relay) async fn run(mut self) {
        let quickest = |poll: &pace::Config| (freshness::shortest(poll), poll.max);
        let poll = self.members.iter().map(|member| member.config.poll).min_by_key(quickest).unwrap_or_default();
        let mut pace = Pace::new(poll.min.max(poll.freshness / 4), poll.max.max(freshness::shortest(&poll)));
        let mut backoff = Backoff::new();
        while !self.engine.stop.is_cancelled() {
            self.engine.heartbeat.beat();
            let step = tokio::time::timeout(STEP, self.step()).await.unwrap_or(Err(Error::Timeout(STEP)));
            let pause = match step {
                Ok(found) => {
                    backoff = Backoff::new();
                    let hinted = std::mem::take(&mut self.hinted);
                    let standby = self.stands_by.then(|| standby::pause(&poll, fastrand::f64()).min(idle::FULL));
                    let pauses = Pauses { arrivals: self.arrivals, standby, poll };
                    let now = Instant::now();
                    match self.wake {
                        _ if self.rest.is_some() && !hinted => {
                            self.rest(pauses).await;
                            continue;
                        }
                        _ if self.stands_by => pauses.alone(now),
                        Some(wake) if self.waits => wake.saturating_duration_since(now).min(poll.max),
                        _ => pace.after(found | hinted),
                    }
                }
                Err(error) => {
                    self.engine.probe.forget().await;
                    let pause = backoff.failed(fastrand::f64());
                    self.wake = None;
                    let hint = error.fix();
                    tracing::warn!(table = %self.source.table(), %error, hint, ?pause, "cannot look at the table");
                    // Without a connection nothing can be written down either; one slip is no news for the status.
                    let may_be_told = matches!(error, Error::Statement(_) | Error::Timeout(_) | Error::Silent { .. });
                    if may_be_told && backoff.failures() > 1 {
                        report::blind(&self.engine, self.members.iter().filter_map(|m| m.ready.as_ref()), &error).await;
                    }
                    pause
                }
            };
            self.wait(pause, None).await;
        }
        while let Some(done) = self.running.join_next_with_id().await {
            self.finished(done);
        }
    }
}
