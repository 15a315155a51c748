//! One look at all tables that are due: their newest rows, their writers, rows that came late, and the bulletin.

use std::sync::Arc;

use futures_util::future::try_join_all;

use super::question::{self, Question};
use crate::database::{Error, Session};
use crate::position::Timestamp;
use crate::relay::engine::Engine;
use crate::relay::stream::sweeps::{self, Sweep};
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

/// A table to ask for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) number: u64,
    pub(super) shape: Arc<Shape>,
    pub(super) sighting: Sighting,
    pub(super) wants_scan: bool,
    pub(super) sweeps: Vec<Sweep>,
}

/// What a look found.
#[derive(Debug)]
pub(super) struct LookResult {
    /// Before it began, by the database's clock.
    pub(super) begun: Timestamp,
    /// Of each table, in the order in which they were asked for.
    pub(super) newest: question::Answer,
    pub(super) sightings: Vec<(u64, Sighting)>,
    /// The tables with rows that came late, where that was asked.
    pub(super) late: Vec<u64>,
    pub(super) bulletin: u64,
}

pub(super) async fn look(
    engine: &Engine,
    question: &mut Question,
    asked: &[Asked],
    freshest: &Sighting,
) -> Result<LookResult, Error> {
    let session = engine.probe.session().await?;
    let (begun, now) = (freshest.clock(), freshest.latest_clock());
    let shapes: Vec<&Shape> = asked.iter().map(|asked| &*asked.shape).collect();
    // Not beside the others: one of them that fails would cut the scan, and with it what the watcher remembers of all tables;
    // and what they do would be an open transaction in the scan's eyes.
    let sightings = scan(engine, asked).await?;
    let (bulletin, newest, late) = tokio::try_join!(
        engine.bulletin.number(&session, engine.call_deadline),
        newest(engine, &session, question, &shapes, now),
        late(engine, &session, asked),
    )?;
    Ok(LookResult { begun, newest, sightings, late, bulletin })
}

async fn newest(
    engine: &Engine,
    session: &Arc<Session>,
    question: &mut Question,
    shapes: &[&Shape],
    now: Timestamp,
) -> Result<question::Answer, Error> {
    let asking = question.ask(session, shapes, now);
    tokio::time::timeout(engine.call_deadline, asking).await.map_err(|_| Error::Timeout(engine.call_deadline))?
}

/// Looks at the writers of all these tables when those of one are to be looked at.
async fn scan(engine: &Engine, asked: &[Asked]) -> Result<Vec<(u64, Sighting)>, Error> {
    if !asked.iter().any(|asked| asked.wants_scan) {
        return Ok(Vec::new());
    }
    let shapes: Vec<&Shape> = asked.iter().map(|asked| &*asked.shape).collect();
    let sightings = engine.watcher.scan_all(&shapes).await?;
    Ok(asked.iter().map(|asked| asked.number).zip(sightings).collect())
}

/// The tables with rows that came late: asked for as often as the writers.
async fn late(engine: &Engine, session: &Session, asked: &[Asked]) -> Result<Vec<u64>, Error> {
    let due = asked.iter().filter(|asked| asked.wants_scan);
    let found = try_join_all(due.map(async |asked| {
        let late = sweeps::ask(engine, session, &asked.sweeps).await?;
        Ok::<_, Error>((!late.is_empty()).then_some(asked.number))
    }));
    Ok(found.await?.into_iter().flatten().collect())
}
