//! The task that runs one relay's turns as long as the next may begin at once, and what follows from how each ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

use crate::cursor::RestsOn;
use crate::cursor::parked::ParkedKeys;
use crate::database::Error;
use crate::pace::{self, Backoff, Patience};
use crate::position::Position;
use crate::relay::Guarantee;
use crate::relay::engine::Engine;
use crate::relay::engine::circuit;
use crate::relay::engine::open_since::OpenSince;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::learned::Learned;
use crate::relay::stream::outcome::{Timings, TurnError, TurnOutcome};
use crate::relay::stream::read_ahead::{Ahead, Chain, Plan};
use crate::relay::stream::turn::Turn;
use crate::relay::stream::turn_trace::{self, TurnTrace};
use crate::source::Rule;
use crate::source::fetch::FetchError;
use crate::source::watcher::Sighting;

/// A task that stays for rows that come in a moment waits no longer than this: it hears no hint.
const SOON: Duration = Duration::from_millis(20);

/// What the relay should do after its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look again.
    Look,
    /// Nothing was there.
    Quiet,
    /// Not before this pause is over.
    After(Duration),
    /// Rows were there, and more may come: not before this pause is over, or a hint comes.
    Pause(Duration),
    /// Stand still until the cursor's standing changes.
    Halted,
    /// The table is not what it was: read the catalog again.
    Catalogue,
    /// Something that its checks cover is not as they found it: make them again, after this pause.
    Recheck(Duration),
}

/// Whether this task goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::relay) enum Then {
    /// It ends.
    End,
    /// The next turn begins at once: rows are left, or it goes on behind a change or a refused row.
    Again,
    /// Rows were there, so that there will be more in a moment, usually.
    Soon,
}

/// What the look that found something to do gives to the first turn.
#[derive(Debug)]
pub(in crate::relay) struct Start {
    pub(in crate::relay) sighting: Sighting,
    /// Becomes true when the turn is not wanted any more; it matters while the turn waits for connections.
    pub(in crate::relay) needless: Arc<AtomicBool>,
    /// From when on transactions were open when the catalog was last read.
    pub(in crate::relay) open_since: Arc<OpenSince>,
    /// Where an idle shard's cursor should follow to.
    pub(in crate::relay) follow: Option<Position>,
    /// Rows have lately come one by one, with pauses in which short looks cost less than a task that stays.
    pub(in crate::relay) sparse: bool,
}

/// How a task that ran turns has ended.
#[derive(Clone, Debug)]
pub(in crate::relay) struct Ended {
    pub(in crate::relay) next: Next,
    pub(in crate::relay) backoff: Backoff,
    pub(in crate::relay) learned: Learned,
    /// Where it has left the cursor, if it went on to the end of what was safe to read.
    pub(in crate::relay) stands_at: Option<Position>,
    /// It has moved the cursor.
    pub(in crate::relay) moved: bool,
}

/// Runs turns while there is something to do.
pub(in crate::relay) async fn run(
    engine: Arc<Engine>,
    ready: Arc<PreparedStream>,
    start: Start,
    backoff: Backoff,
    learned: Learned,
) -> Ended {
    let Start { mut sighting, needless, open_since, follow, sparse } = start;
    let chain = Chain::default();
    let mut worker = Worker {
        engine: &engine,
        ready: &ready,
        backoff,
        learned,
        chain,
        patience: Patience::default(),
        needless: Some(needless),
        open_since,
        follow,
        sparse,
        follows: false,
        took: Duration::ZERO,
        seen: sighting.clone(),
        moved: false,
    };
    loop {
        worker.seen.clone_from(&sighting);
        let trace = turn_trace::begin(&engine, &ready);
        let around = turn_trace::around_logs(trace.as_ref());
        let (next, then) = worker.turn_and_what_follows(&sighting, trace).instrument(around).await;
        if engine.ends(&ready.config.name) || ready.is_superseded() {
            return worker.ended(next);
        }
        let looking = async {
            match then {
                Then::End => Ok(None),
                Then::Again => worker.look_again().await,
                Then::Soon => worker.look_soon().await,
            }
        };
        let seen = tokio::select! {
            biased;
            () = engine.cut.cancelled() => Ok(None),
            seen = looking => seen,
        };
        match seen {
            Ok(Some(newer)) => sighting = newer,
            Ok(None) => return worker.ended(next),
            Err(error) => {
                let next = worker.failed(&error).await;
                return worker.ended(next);
            }
        }
    }
}

pub(in crate::relay) struct Worker<'a> {
    pub(in crate::relay) engine: &'a Arc<Engine>,
    pub(in crate::relay) ready: &'a Arc<PreparedStream>,
    pub(in crate::relay) backoff: Backoff,
    pub(in crate::relay) learned: Learned,
    chain: Chain,
    patience: Patience,
    /// See [`Start`]; none once the first turn has begun.
    needless: Option<Arc<AtomicBool>>,
    open_since: Arc<OpenSince>,
    /// See [`Start`]; for the first turn.
    follow: Option<Position>,
    sparse: bool,
    /// The turn before left no row, and this one was not asked for by a look of the group's.
    follows: bool,
    /// How long the last turn read.
    pub(in crate::relay) took: Duration,
    /// The last look at the writers.
    seen: Sighting,
    moved: bool,
}

impl Worker<'_> {
    fn ended(&self, next: Next) -> Ended {
        let stands_at = self.chain.stands_at.clone().filter(|_| next == Next::Look && !self.chain.backlog);
        Ended { next, backoff: self.backoff, learned: self.learned, stands_at, moved: self.moved }
    }

    async fn turn_and_what_follows(&mut self, sighting: &Sighting, trace: Option<Arc<TurnTrace>>) -> (Next, Then) {
        match self.turn(sighting, trace).await {
            Ok(outcome) => {
                self.learned.turn_ended(&outcome);
                if let Some(rows) = outcome.advanced() {
                    self.engine.unrecorded.advanced(&self.ready.config.name, rows);
                    self.moved |= matches!(outcome, TurnOutcome::Relayed { .. }) || rows.is_some_and(|rows| rows > 0);
                }
                self.judge(outcome, sighting).await
            }
            Err(error) => {
                self.unrecorded(&error);
                (self.failed(&error).await, Then::End)
            }
        }
    }

    async fn turn(&mut self, sighting: &Sighting, trace: Option<Arc<TurnTrace>>) -> Result<TurnOutcome, TurnError> {
        let probe = match self.probe() {
            Ok(probe) => probe,
            Err(pause) => return Ok(TurnOutcome::Early(pause)),
        };
        if self.chain.permits.is_empty() {
            self.chain.permits = self.engine.permits(self.ready.config.sink.one_by_one()).await?;
        }
        if self.needless.take().is_some_and(|needless| needless.load(Relaxed)) {
            self.chain.permits.clear();
            return Ok(TurnOutcome::Early(Duration::ZERO));
        }
        if self.engine.stop.is_cancelled() {
            return Ok(TurnOutcome::Busy);
        }
        let mut turn = Turn {
            ready: self.ready,
            sighting,
            engine: self.engine,
            timings: Timings::default(),
            delivered: Vec::new(),
            refused: Vec::new(),
            partitions: self.ready.sink.partitions(),
            stands_at: None,
            swept: None,
            late: 0,
            parked: ParkedKeys::default(),
            ahead: Arc::default(),
            since: None,
            place: None,
            filled: false,
            rests_on: self.rests_on(),
            learned: self.learned,
            follow: self.follow.take(),
            judged_in_part: false,
            trace,
        };
        self.ready.metrics.turn_begun(sighting.clock(), sighting.horizon.at);
        let outcome = turn.run(&mut self.chain).await;
        self.keep_for_the_next(&mut turn, &outcome);
        drop(probe);
        match outcome {
            Ok(TurnOutcome::Relayed { more: false, .. } | TurnOutcome::Idle) => turn.learned.growth = 1,
            _ if self.chain.backlog && turn.filled => turn.learned.left_rows(self.ready, &turn.timings),
            _ => {}
        }
        let oldest = turn.delivered.first().filter(|_| self.follows).copied();
        if let (Ok(TurnOutcome::Relayed { more: false, .. }), Some(oldest)) = (&outcome, oldest) {
            turn.learned.lead.learn(sighting.clock().since(oldest), &self.ready.config.poll);
        }
        self.follows = matches!(outcome, Ok(TurnOutcome::Relayed { more: false, .. } | TurnOutcome::Idle));
        self.ready.record(&mut turn, &outcome);
        (self.learned, self.took) = (turn.learned, turn.timings.fetch);
        self.passed_letters(!turn.refused.is_empty()).await;
        outcome
    }

    fn keep_for_the_next(&mut self, turn: &mut Turn<'_>, outcome: &Result<TurnOutcome, TurnError>) {
        self.chain.backlog = matches!(outcome, Ok(TurnOutcome::Relayed { more: true, .. }));
        self.chain.ahead = self.chain.ahead.take().filter(|_| self.chain.backlog);
        if self.chain.ahead.is_none() {
            self.chain.permits.clear();
        }
        (self.chain.stands_at, self.chain.swept, self.chain.place) =
            (turn.stands_at.take(), turn.swept.take(), turn.place.take());
    }

    fn rests_on(&self) -> RestsOn {
        let rule = self.ready.shape.rule;
        let open_since = self.open_since.get().filter(|_| rule == Rule::Writers);
        RestsOn { open_since, ..self.ready.rests_on(Some(rule.as_str().to_owned())) }
    }

    /// While its sink is out, one relay at a time tries it: of this process here, of all in the turn.
    fn probe(&self) -> Result<Option<OwnedSemaphorePermit>, Duration> {
        if !self.ready.status.circuit_open() {
            return Ok(None);
        }
        let permit = self.engine.probe_permit(&self.ready.config.sink.circuit());
        permit.map(Some).ok_or(circuit::PROBED_BY_ANOTHER)
    }

    /// Rows that were acknowledged and not advanced over are sent again; under at_most_once they are unknown, and lost
    /// unless the commit that PostgreSQL did not answer has taken place.
    fn unrecorded(&self, error: &TurnError) {
        let (unrecorded, cursor, rows) = (&self.engine.unrecorded, &self.ready.config.name, error.acknowledged());
        match (self.ready.config.guarantee, error.unanswered()) {
            (Guarantee::AtMostOnce, Some(token)) => unrecorded.unanswered(cursor, token, rows),
            (Guarantee::AtMostOnce, None) => unrecorded.lost(cursor, rows),
            _ => unrecorded.not_advanced(cursor, rows),
        }
    }

    /// Looks for the turn that follows at once.
    async fn look_again(&mut self) -> Result<Option<Sighting>, TurnError> {
        Ok(Some(match &mut self.chain.ahead {
            Some(ahead) => bounded(self.engine, ahead.sighting()).await?,
            None => self.engine.watcher.scan(&self.ready.shape).await?,
        }))
    }

    /// After a moment, reads on behind the last turn; none when nothing comes, or when others need the connections more.
    async fn look_soon(&mut self) -> Result<Option<Sighting>, TurnError> {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.pause().min(SOON)) => {}
                () = self.engine.stop.cancelled() => return Ok(None),
            }
            let is_wanted = !self.engine.is_crowded() && !self.ready.is_superseded();
            let Some(after) = self.chain.stands_at.clone().filter(|_| is_wanted) else { return Ok(None) };
            self.chain.permits = self.engine.permits(false).await?;
            let (most, learned) = (self.learned.row_limit, self.learned);
            let swept = self.chain.swept.clone();
            let plan = Plan { after: Some(after), swept, known: None, most, sighting: None, learned };
            let ahead = self.chain.ahead.insert(Ahead::start(self.engine, self.ready, plan));
            let sighting = bounded(self.engine, ahead.sighting()).await?;
            self.seen = sighting.clone();
            // The lock costs a transaction id: it is taken on trust only where rows have come again and again.
            if self.patience.trusts() || bounded(self.engine, ahead.found()).await? {
                return Ok(Some(sighting));
            }
            self.chain.ahead = None;
            self.chain.permits.clear();
            if !self.patience.missed() {
                return Ok(None);
            }
        }
    }

    /// Rows that come now are likely to be followed by more, which a task that stays can see sooner.
    fn stays(&self) -> (Next, Then) {
        let config = &self.ready.config;
        let one_by_one = config.sink.one_by_one() || config.guarantee == Guarantee::AtMostOnce;
        let pause = self.pause();
        if one_by_one || self.ready.sink.min_interval().is_some() {
            (Next::Look, Then::End)
        } else if pause > SOON {
            (Next::Pause(pause), Then::End)
        } else if self.sparse {
            (Next::Look, Then::End)
        } else {
            (Next::Look, Then::Soon)
        }
    }

    /// What follows from a turn.
    async fn judge(&mut self, outcome: TurnOutcome, sighting: &Sighting) -> (Next, Then) {
        match outcome {
            TurnOutcome::Busy => (Next::After(pace::standby(&self.ready.config.poll, fastrand::f64())), Then::End),
            TurnOutcome::Paused => (Next::Look, Then::End),
            TurnOutcome::Early(pause) => (Next::After(pause), Then::End),
            TurnOutcome::Halted => (Next::Halted, Then::End),
            TurnOutcome::Idle => (Next::Quiet, if self.patience.wasted() { Then::Soon } else { Then::End }),
            TurnOutcome::Moved { number, position } => {
                let position = position.map_or_else(|| "before every row".to_owned(), |position| position.to_string());
                tracing::info!(cursor = self.ready.config.name, number, position, "operator's change applied");
                (Next::Look, Then::Again)
            }
            TurnOutcome::Resumed { .. } => (Next::Look, Then::Again),
            TurnOutcome::Relayed { rows, more } => self.relayed(rows, more).await,
            TurnOutcome::Foreign => (Next::Recheck(Duration::from_secs(1)), Then::End),
            TurnOutcome::Partitions { known, found } => (self.repartitioned(known, found).await, Then::End),
            TurnOutcome::Searching { rows, suspects, failure } => {
                tracing::warn!(
                    cursor = self.ready.config.name,
                    rows,
                    suspects,
                    code = failure.code,
                    error = failure.message,
                    "a row was refused, and its batch with it: publishing one by one until it stands alone"
                );
                (Next::Look, Then::Again)
            }
            TurnOutcome::Buried { failure, message_id, .. } => {
                tracing::error!(
                    cursor = self.ready.config.name,
                    message_id,
                    code = failure.code,
                    error = failure.message,
                    hint = failure.hint,
                    "row dead-lettered"
                );
                self.recovered().await;
                (Next::Look, self.at_once())
            }
            TurnOutcome::Redriven { rows, failure, message_id } => {
                (self.redriven(rows, failure, message_id.as_deref()).await, Then::End)
            }
            TurnOutcome::Regressed { observed_at, clock } => (self.regressed(observed_at, clock, sighting), Then::End),
            TurnOutcome::Abandoned { rows, by } => (self.abandoned(rows, &by), Then::Again),
            TurnOutcome::Unknown { rows, failure, message_id } => {
                (self.doubtful(rows, &failure, message_id).await, Then::End)
            }
            TurnOutcome::LaneWaits { rows, pause, failure, message_id } => {
                self.lane_waits((rows, pause), &failure, message_id.as_deref()).await
            }
            TurnOutcome::Stalled { rows, failure, message_id } => {
                if rows > 0 {
                    self.accepted().await;
                }
                (self.stalled(&failure, message_id.as_deref()).await, Then::End)
            }
        }
    }

    /// Rows were passed as dead letters, perhaps, as one is that a turn ends at. They are looked for only while the circuit is closed.
    async fn passed_letters(&mut self, has_letters: bool) {
        if has_letters && !self.ready.status.circuit_open() {
            self.recovered().await;
        }
    }

    async fn relayed(&mut self, rows: usize, more: bool) -> (Next, Then) {
        tracing::debug!(cursor = self.ready.config.name, rows, more, "turn");
        // A turn that was cut before its first row has not asked the receiver.
        if rows > 0 {
            self.recovered().await;
        }
        if more {
            return (Next::Look, self.at_once());
        }
        self.patience.relayed();
        self.stays()
    }

    /// The pause before the next turn while rows come all the time.
    fn pause(&self) -> Duration {
        let behind = self.seen.clock().since(self.seen.horizon.at);
        self.learned.lead.pause(&self.ready.config.poll, behind)
    }

    /// With a rate, the next row must wait for its time.
    pub(in crate::relay) fn at_once(&self) -> Then {
        if self.ready.sink.min_interval().is_none() { Then::Again } else { Then::End }
    }
}

/// Bounds waiting for a reading by this process's clock: a server that hangs keeps its connection alive and never answers.
async fn bounded<T>(engine: &Engine, reading: impl Future<Output = Result<T, FetchError>>) -> Result<T, TurnError> {
    let limit = engine.call_deadline;
    let late = |_| TurnError::from(Error::Timeout(limit));
    Ok(tokio::time::timeout(limit, reading).await.map_err(late)??)
}
