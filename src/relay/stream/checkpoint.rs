//! Checkpoints of a running turn: how far its rows have been acknowledged, written beside it every few thousand rows.
//!
//! A turn advances once, at its end, and grows to hundreds of thousands of rows while a backlog is read. When its replica is killed,
//! whoever takes over begins at the last checkpoint and not at the turn's begin. Writing never delays the turn, and a checkpoint
//! that could not be written costs repetitions only.

use std::sync::{Arc, OnceLock};

use tokio::task::JoinHandle;

use crate::cursor::checkpoint::{self, CheckpointFacts};
use crate::position::Position;
use crate::relay::engine::Engine;
use crate::relay::engine::deadline::within;
use crate::relay::stream::turn_buffer::Kept;

/// At most about so many acknowledged rows come again after a kill, and what was on the wire.
const EVERY: usize = 5_000;

/// See the module.
#[derive(Debug)]
pub(in crate::relay) struct Checkpoints {
    engine: Arc<Engine>,
    facts: Arc<CheckpointFacts>,
    /// What the turn's rows are read with, once that is known.
    snapshot: Arc<OnceLock<String>>,
    /// The rows of the last one.
    rows: usize,
    /// The last one, on its way.
    writing: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// None written yet.
    pub(in crate::relay) fn new(engine: &Arc<Engine>, facts: CheckpointFacts, snapshot: Arc<OnceLock<String>>) -> Self {
        Self { engine: Arc::clone(engine), facts: Arc::new(facts), snapshot, rows: 0, writing: None }
    }

    /// Writes one if enough rows have been released since the last one, and that one is written.
    pub(in crate::relay) fn passed(&mut self, kept: &Kept) {
        let (rows, end) = kept.released();
        let (Some(end), Some(snapshot)) = (end, self.snapshot.get()) else { return };
        if rows < self.rows + EVERY || self.writing.as_ref().is_some_and(|writing| !writing.is_finished()) {
            return;
        }
        self.rows = rows;
        let write = write(Arc::clone(&self.engine), Arc::clone(&self.facts), (rows, end.clone()), snapshot.clone());
        self.writing = Some(tokio::spawn(write));
    }
}

async fn write(engine: Arc<Engine>, facts: Arc<CheckpointFacts>, (rows, end): (usize, Position), snapshot: String) {
    let written = within(&engine, async {
        let session = engine.probe.session().await?;
        checkpoint::write(&session, &facts, (rows, &end), &snapshot).await
    });
    if let Err(error) = written.await {
        tracing::warn!(cursor = facts.cursor, %error, "a checkpoint could not be written; after a crash more rows would be sent again");
    }
}
