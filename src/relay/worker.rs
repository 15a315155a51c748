//! The task that runs one relay's turns as long as the next may begin at once, and what follows from how each ended.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::engine::{Engine, Slot};
use super::outcome::{Outcome, Timings, TurnError};
use super::turn::{Turn, within};
use super::{Ready, circuit};
use crate::cursor;
use crate::pace::{self, Backoff};
use crate::source::watcher::Sighting;

/// What the relay should do after its turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Look again.
    Look,
    /// Nothing was there.
    Quiet,
    /// Not before this pause is over.
    After(Duration),
    /// Stand still until the cursor's standing changes.
    Halted,
    /// The table is not what it was: read the catalogue again.
    Catalogue,
    /// Something that its checks cover is not as they found it: make them again, after this pause.
    Recheck(Duration),
}

/// Runs turns while the next may begin at once: rows are left, or it goes on behind a wish or a refused row. `sighting` was
/// made for the first of them.
pub async fn run(engine: Arc<Engine>, ready: Arc<Ready>, mut sighting: Sighting, backoff: Backoff) -> (Next, Backoff) {
    let mut worker = Worker { engine: &engine, ready: &ready, backoff };
    loop {
        let (next, more) = match worker.turn(&sighting).await {
            Ok(outcome) => worker.judge(outcome, &sighting).await,
            Err(error) => (worker.failed(&error).await, false),
        };
        if !more || engine.stop.is_cancelled() {
            return (next, worker.backoff);
        }
        match engine.watcher.scan(&ready.shape).await {
            Ok(newer) => sighting = newer,
            Err(error) => return (worker.failed(&error.into()).await, worker.backoff),
        }
    }
}

pub(super) struct Worker<'a> {
    pub(super) engine: &'a Engine,
    pub(super) ready: &'a Ready,
    pub(super) backoff: Backoff,
}

impl Worker<'_> {
    async fn turn(&self, sighting: &Sighting) -> Result<Outcome, TurnError> {
        // While its sink is out, one relay at a time tries it: of this process here, of all in the turn.
        let probe = if self.ready.circuit_open.load(Relaxed) {
            let Some(permit) = self.engine.probe_permit(&self.ready.config.sink.circuit()) else {
                return Ok(Outcome::Early(circuit::PROBED_BY_ANOTHER));
            };
            Some(permit)
        } else {
            None
        };
        let Slot { lock, reader, permits } = self.engine.slot(self.ready.config.sink.one_by_one()).await?;
        if self.engine.stop.is_cancelled() {
            return Ok(Outcome::Busy);
        }
        let mut turn = Turn {
            ready: self.ready,
            sighting,
            engine: self.engine,
            timings: Timings::default(),
            delivered: Vec::new(),
            partitions: self.ready.sink.partitions(),
        };
        self.ready.metrics.turn_begun(sighting.clock(), sighting.horizon.at);
        let outcome = turn.run(lock, reader).await;
        drop((permits, probe));
        self.ready.record(&turn, &outcome);
        outcome
    }

    /// What follows from a turn; true when the next one may begin at once.
    async fn judge(&mut self, outcome: Outcome, sighting: &Sighting) -> (Next, bool) {
        match outcome {
            Outcome::Busy => (Next::After(pace::standby(&self.ready.config.poll, fastrand::f64())), false),
            Outcome::Paused => (Next::Look, false),
            Outcome::Early(pause) => (Next::After(pause), false),
            Outcome::Halted => (Next::Halted, false),
            Outcome::Idle => (Next::Quiet, false),
            Outcome::Moved { number, position } => {
                let position = position.map_or_else(|| "before every row".to_owned(), |position| position.to_string());
                tracing::info!(cursor = self.ready.config.name, number, position, "operator's wish carried out");
                (Next::Look, true)
            }
            Outcome::Relayed { rows, more } => {
                tracing::debug!(cursor = self.ready.config.name, rows, more, "turn");
                self.recovered().await;
                (Next::Look, more && self.ready.sink.min_interval().is_none())
            }
            Outcome::Foreign => (Next::Recheck(Duration::from_secs(1)), false),
            Outcome::Partitions { known, found } => (self.repartitioned(known, found).await, false),
            Outcome::Searching { rows, suspects, failure } => {
                tracing::warn!(
                    cursor = self.ready.config.name,
                    rows,
                    suspects,
                    code = failure.code,
                    error = failure.message,
                    "a row was refused, and its batch with it: publishing one by one until it stands alone"
                );
                (Next::Look, true)
            }
            Outcome::Buried { failure, message_id, .. } => {
                tracing::error!(
                    cursor = self.ready.config.name,
                    message_id,
                    code = failure.code,
                    error = failure.message,
                    hint = failure.hint,
                    "row put aside as a dead letter"
                );
                self.recovered().await;
                (Next::Look, self.ready.sink.min_interval().is_none())
            }
            Outcome::Redriven { rows, failure } => (self.redriven(rows, failure).await, false),
            Outcome::Regressed { observed_at, clock } => (self.regressed(observed_at, clock, sighting), false),
            Outcome::Abandoned { rows, by } => (self.abandoned(rows, &by), true),
            Outcome::Unknown { rows, failure, message_id } => (self.doubtful(rows, &failure, message_id).await, false),
            Outcome::Stalled { rows, failure, message_id } => {
                if rows > 0 {
                    self.backoff = Backoff::new();
                }
                (self.stalled(&failure, message_id.as_deref()).await, false)
            }
        }
    }

    fn regressed(
        &self,
        observed_at: crate::position::Timestamp,
        clock: crate::position::Timestamp,
        sighting: &Sighting,
    ) -> Next {
        // Another replica may have advanced since this scan: only a clock that is behind even now has stepped back.
        if sighting.latest_clock() >= observed_at {
            return Next::Look;
        }
        tracing::error!(
            cursor = self.ready.config.name,
            %observed_at,
            %clock,
            "the database's clock has stepped back: held until it passes the last advance; rows stamped in between may lie \
             below the position"
        );
        Next::After(observed_at.since(clock).clamp(Duration::from_millis(100), Duration::from_secs(1)))
    }

    pub(super) async fn recovered(&mut self) {
        if self.backoff.failures() > 0 || self.ready.reported() || self.ready.circuit_open.load(Relaxed) {
            self.backoff = Backoff::new();
            self.ready.set_reported(false);
            if self.ready.circuit_open.load(Relaxed) {
                tracing::info!(cursor = self.ready.config.name, "circuit closed: the receiver accepts messages again");
            }
            let name = &self.ready.config.name;
            let cleared = within(self.engine, async {
                cursor::clear(self.engine.probe.session().await?.as_ref(), name, None).await
            });
            if let Err(error) = cleared.await {
                tracing::warn!(cursor = name, %error, "cannot record that the cursor is well again");
                self.ready.set_reported(true);
            }
        }
    }
}
