//! The task that runs one relay's turns as long as the next may begin at once, and what follows from how each ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tracing::Instrument as _;

use crate::cursor::RestsOn;
use crate::cursor::parked::ParkedKeys;
use crate::pace::{Backoff, Patience};
use crate::position::Position;
use crate::relay::Guarantee;
use crate::relay::engine::Engine;
use crate::relay::engine::circuit;
use crate::relay::engine::open_since::OpenSince;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::learned::Learned;
use crate::relay::stream::outcome::{Timings, TurnError, TurnOutcome};
use crate::relay::stream::read_ahead::Chain;
use crate::relay::stream::turn::Turn;
use crate::relay::stream::turn_trace::{self, TurnTrace};
use crate::source::Rule;
use crate::source::watcher::Sighting;

mod look;
mod next;

pub use next::Next;
pub(in crate::relay) use next::Then;

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
}
