//! Which cursors rows have come late for, while no turn of theirs runs that would find them.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::future::try_join_all;
use tokio_postgres::error::SqlState;

use crate::database::{Error, Session};
use crate::relay::engine::Engine;
use crate::relay::setup::prepared::PreparedStream;
use crate::source::shape::Shape;
use crate::source::sweep::with_late_rows;

/// Cursors that are asked for by one statement: all of a table, or one of a shard.
#[derive(Clone, Debug)]
pub(in crate::relay) struct Sweep {
    shape: Arc<Shape>,
    cursors: Vec<String>,
}

impl Sweep {
    /// Of these relays.
    pub(in crate::relay) fn of<'a>(relays: impl Iterator<Item = &'a PreparedStream>) -> Vec<Self> {
        let mut sweeps: Vec<Self> = Vec::new();
        for ready in relays.filter(|ready| ready.shape.sweep.is_some()) {
            let cursor = ready.config.name.clone();
            match sweeps.iter_mut().find(|sweep| sweep.shape == ready.shape) {
                Some(sweep) => sweep.cursors.push(cursor),
                None => sweeps.push(Self { shape: Arc::clone(&ready.shape), cursors: vec![cursor] }),
            }
        }
        sweeps
    }
}

/// The names of the cursors that have late rows. Where too much was written since a cursor's last look for the question to be answered
/// in time, all of them are named: a turn finds out, and the others do not wait for it.
pub(in crate::relay) async fn ask(
    engine: &Engine,
    session: &Session,
    sweeps: &[Sweep],
) -> Result<HashSet<String>, Error> {
    if sweeps.is_empty() {
        return Ok(HashSet::new());
    }
    let asked = try_join_all(sweeps.iter().map(async |sweep| {
        let cursors: Vec<&str> = sweep.cursors.iter().map(String::as_str).collect();
        with_late_rows(session, &sweep.shape, &cursors).await
    }));
    match tokio::time::timeout(engine.call_deadline, asked).await {
        Ok(Ok(found)) => Ok(found.into_iter().flatten().collect()),
        Ok(Err(error)) if error.state() != Some(&SqlState::QUERY_CANCELED) => Err(error),
        Ok(Err(_)) | Err(_) => Ok(sweeps.iter().flat_map(|sweep| sweep.cursors.iter().cloned()).collect()),
    }
}
