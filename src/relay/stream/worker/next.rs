//! What follows from how a turn ended: for the task that ran it, and for the relay after its turns.

use std::time::Duration;

use super::Worker;
use super::look::SOON;
use crate::pace;
use crate::relay::Guarantee;
use crate::relay::stream::outcome::TurnOutcome;
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

impl Worker<'_> {
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
    pub(super) async fn judge(&mut self, outcome: TurnOutcome, sighting: &Sighting) -> (Next, Then) {
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
    pub(super) async fn passed_letters(&mut self, has_letters: bool) {
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
    pub(super) fn pause(&self) -> Duration {
        let behind = self.seen.clock().since(self.seen.horizon.at);
        self.learned.lead.pause(&self.ready.config.poll, behind)
    }

    /// With a rate, the next row must wait for its time.
    pub(in crate::relay) fn at_once(&self) -> Then {
        if self.ready.sink.min_interval().is_none() { Then::Again } else { Then::End }
    }
}
