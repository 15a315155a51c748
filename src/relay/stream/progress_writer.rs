//! Records how far the rows of a running turn have been acknowledged, beside the turn, every few thousand rows.
//!
//! A turn advances once, at its end, and grows to hundreds of thousands of rows while a backlog is read. When its replica is killed,
//! the next holder begins at what was recorded last and not at the turn's begin. Recording never delays the turn, and what could not
//! be recorded costs repetitions only.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::audit::element;
use crate::cursor::LockedCursor;
use crate::cursor::turn_progress::{self, Resumed, TurnFacts};
use crate::position::Position;
use crate::relay::engine::Engine;
use crate::relay::engine::deadline::within;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::outcome::{TurnError, TurnOutcome};
use crate::relay::stream::turn_buffer::TurnBuffer;

/// At most about so many acknowledged rows come again after a kill, and what was on the wire.
const EVERY: usize = 5_000;

/// See the module.
#[derive(Debug)]
pub(in crate::relay) struct ProgressWriter {
    engine: Arc<Engine>,
    facts: Arc<TurnFacts>,
    /// What the turn's rows are read with.
    snapshot: Arc<str>,
    /// How many rows were recorded last.
    rows: usize,
    /// The last record, on its way.
    writing: Option<JoinHandle<()>>,
}

impl ProgressWriter {
    /// Nothing recorded yet.
    pub(in crate::relay) fn new(engine: &Arc<Engine>, facts: TurnFacts, snapshot: String) -> Self {
        Self { engine: Arc::clone(engine), facts: Arc::new(facts), snapshot: snapshot.into(), rows: 0, writing: None }
    }

    /// Records what has been released, if that is enough more than the last time, and that one is written.
    pub(in crate::relay) fn released(&mut self, kept: &TurnBuffer) {
        let (rows, end) = kept.released();
        let Some(end) = end else { return };
        if rows < self.rows + EVERY || self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return;
        }
        self.rows = rows;
        let write =
            write(Arc::clone(&self.engine), Arc::clone(&self.facts), (rows, end.clone()), Arc::clone(&self.snapshot));
        self.writing = Some(tokio::spawn(write));
    }
}

async fn write(engine: Arc<Engine>, facts: Arc<TurnFacts>, (rows, end): (usize, Position), snapshot: Arc<str>) {
    let written = within(&engine, async {
        let session = engine.probe.session().await?;
        turn_progress::write(&session, &facts, (rows, &end), &snapshot).await
    });
    if let Err(error) = written.await {
        tracing::warn!(cursor = facts.cursor, %error, "a turn's progress could not be recorded; after a crash more rows would be sent again");
    }
}

/// Takes over how far a turn had come that did not advance: its replica was killed, or has lost the lock.
pub(in crate::relay) async fn resume(
    engine: &Engine,
    ready: &PreparedStream,
    cursor: LockedCursor,
) -> Result<TurnOutcome, TurnError> {
    let reads = ready.audits().then(|| element(&ready.shape.reads()));
    let resumed = within(engine, cursor.resume(ready.config.waits_for_disk(), reads, &engine.replica)).await?;
    let Some(Resumed { rows, by }) = resumed else { return Ok(TurnOutcome::Resumed { rows: 0 }) };
    tracing::info!(cursor = ready.config.name, rows, by, "continuing where an interrupted turn had come");
    Ok(TurnOutcome::Resumed { rows })
}
