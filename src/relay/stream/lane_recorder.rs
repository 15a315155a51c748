//! Records what a turn with lanes has had acknowledged, beside the turn, as soon as it is: a message counts as on its way until then. So
//! a crash repeats no more messages than may be on their way at a time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::{JoinError, JoinHandle};

use crate::cursor::ahead::{self, Reached};
use crate::cursor::turn_progress::TurnFacts;
use crate::database::Error;
use crate::position::Position;
use crate::relay::engine::Engine;
use crate::relay::engine::deadline::within;
use crate::relay::stream::lanes::LaneQueues;
use crate::relay::stream::turn_buffer::TurnBuffer;

/// After a record that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(in crate::relay) struct LaneRecorder {
    engine: Arc<Engine>,
    facts: Arc<TurnFacts>,
    /// What the turn's rows are read with; none where the prefix must be left to the advance.
    snapshot: Option<Arc<str>>,
    /// Acknowledged, not recorded, with their positions.
    unrecorded: Vec<(usize, Position)>,
    /// Being recorded.
    recording: Vec<(usize, Position)>,
    writing: Option<JoinHandle<Result<bool, Error>>>,
    /// No record before.
    not_before: Instant,
    /// A failure was logged.
    warned: bool,
    /// Another turn has locked the cursor.
    pub(in crate::relay) lost: bool,
    /// Single rows were recorded.
    pub(in crate::relay) wrote: bool,
    /// All rows were recorded before they were sent (`at_most_once`).
    is_idle: bool,
}

impl LaneRecorder {
    /// Nothing recorded yet.
    pub(in crate::relay) fn new(engine: &Arc<Engine>, facts: TurnFacts, snapshot: Option<String>) -> Self {
        Self {
            engine: Arc::clone(engine),
            facts: Arc::new(facts),
            snapshot: snapshot.map(Into::into),
            unrecorded: Vec::new(),
            recording: Vec::new(),
            writing: None,
            not_before: Instant::now(),
            warned: false,
            lost: false,
            wrote: false,
            is_idle: false,
        }
    }

    /// The same, where all rows were recorded before they were sent.
    pub(in crate::relay) fn idle(self) -> Self {
        Self { is_idle: true, ..self }
    }

    /// A row was acknowledged.
    pub(in crate::relay) fn acknowledged(&mut self, row: usize, position: Position) {
        if !self.is_idle {
            self.unrecorded.push((row, position));
        }
    }

    /// How many rows were acknowledged and are not recorded yet.
    pub(in crate::relay) fn open(&self) -> usize {
        self.unrecorded.len() + self.recording.len()
    }

    /// Begins to record, unless a record is on its way.
    pub(in crate::relay) fn record(&mut self, lanes: &LaneQueues, kept: &TurnBuffer) {
        if self.writing.is_some() || self.unrecorded.is_empty() || Instant::now() < self.not_before {
            return;
        }
        self.recording = std::mem::take(&mut self.unrecorded);
        let prefix = lanes.prefix();
        let end = kept.end(prefix).filter(|_| prefix > 0 && self.snapshot.is_some());
        let covered = if end.is_some() { prefix } else { 0 };
        let beyond: Vec<Position> =
            self.recording.iter().filter(|(row, _)| *row >= covered).map(|(_, position)| position.clone()).collect();
        self.wrote |= !beyond.is_empty();
        let reached = Reached { prefix: end.map(|end| (prefix, end)), beyond };
        let (engine, facts) = (Arc::clone(&self.engine), Arc::clone(&self.facts));
        let snapshot = self.snapshot.clone();
        self.writing = Some(tokio::spawn(async move { write(&engine, &facts, &reached, snapshot.as_deref()).await }));
    }

    /// Waits for the record that is on its way, or until the next may be tried.
    pub(in crate::relay) async fn recorded(&mut self) {
        let Some(writing) = &mut self.writing else {
            return tokio::time::sleep_until(self.not_before.into()).await;
        };
        let written = writing.await;
        self.writing = None;
        let recording = std::mem::take(&mut self.recording);
        let written = match written.map_err(JoinError::try_into_panic) {
            Ok(written) => written,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The process ends.
            Err(Err(_)) => return,
        };
        self.lost |= matches!(written, Ok(false));
        if let Err(error) = written {
            self.unrecorded.splice(0..0, recording);
            self.not_before = Instant::now() + PAUSE;
            if !std::mem::replace(&mut self.warned, true) {
                let cursor = &self.facts.cursor;
                tracing::warn!(cursor, %error, "acknowledged rows could not be recorded; no more are sent until they are");
            }
        }
    }

    /// Waits for the record that is on its way: what it writes is deleted when the turn passes it.
    pub(in crate::relay) async fn settle(&mut self) {
        if self.writing.is_some() {
            self.recorded().await;
        }
    }

    /// Whether [`Self::recorded`] will end.
    pub(in crate::relay) fn has_open(&self) -> bool {
        self.open() > 0
    }
}

async fn write(engine: &Engine, facts: &TurnFacts, reached: &Reached, snapshot: Option<&str>) -> Result<bool, Error> {
    let written = within(engine, async {
        let session = engine.probe.session().await?;
        ahead::record(&session, facts, reached, snapshot).await
    });
    written.await
}
