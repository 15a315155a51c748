//! What is measured of a group's cursors from time to time: lag, backlog, dead letters, unknown outcomes, partitions.
//!
//! Every replica measures, so that the figures survive the holder. A cursor at the newest row costs nothing of its own; of
//! those that are behind only a few are counted at a look, and less often when counting takes long: on all cursors
//! together it takes at most a tenth of the time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cursor::{self, Standing};
use crate::database::{Error, Session};
use crate::relay::engine::Engine;
use crate::relay::engine::intervals::SAMPLE;
use crate::relay::engine::lag;
use crate::relay::engine::lag::Lag;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::member::Member;
use crate::relay::stream::poll::Look;
use crate::relay::stream::report;
use crate::source::shape::Shape;

/// How many backlogs are counted at one look.
const COUNTS: usize = 4;
/// How often the process's connections are measured.
const CONNECTIONS: Duration = Duration::from_secs(1);

/// When the group's samples were taken; those of a cursor are the member's own.
#[derive(Debug, Default)]
pub(in crate::relay) struct Samples {
    connections: Option<Instant>,
}

impl Samples {
    /// Takes the samples whose time has come.
    pub(in crate::relay) async fn take(
        &mut self,
        engine: &Engine,
        members: &mut [Member],
        look: &Look,
    ) -> Result<(), Error> {
        if self.connections.is_none_or(|measured| measured.elapsed() >= CONNECTIONS) {
            self.connections = Some(Instant::now());
            engine.measure_connections();
        }
        let due = due(engine, members, look);
        if due.is_empty() {
            return Ok(());
        }
        let session = engine.probe.session().await?;
        let names: Vec<&str> = due.iter().map(|&index| members[index].config.name.as_str()).collect();
        let attention = cursor::attention(&session, &names).await?;
        let mut topics: BTreeMap<String, Vec<Arc<PreparedStream>>> = BTreeMap::new();
        for index in due {
            let member = &mut members[index];
            let (Some(ready), Some(standing)) = (&member.ready, look.standing(&member.config.name)) else { continue };
            member.sampled = Some(Instant::now());
            if ready.sink.partitions().is_some() {
                topics.entry(ready.config.sink.target()).or_default().push(Arc::clone(ready));
            }
            let waits = look.is_behind(standing) || look.is_held(standing) || standing.redrive;
            let stands_still = ready.stands_still(standing.halted.as_ref());
            let trouble = !stands_still && (ready.status.reported() || standing.circuit.is_some());
            if trouble && !waits && !member.busy {
                report::clear(&session, &member.config.name, "no row waits any more").await?;
            }
            let lag = lag(engine, &session, &ready.shape, look, standing).await?;
            let found = attention.get(&member.config.name).copied().unwrap_or_default();
            ready.sampled(&lag, found);
        }
        look_again(topics, engine.call_deadline);
        Ok(())
    }
}

/// The members that are sampled now: when the time of one has come, so has that of all that were sampled about when it
/// was. A member that was never sampled does not wait for others.
fn due(engine: &Engine, members: &[Member], look: &Look) -> Vec<usize> {
    let is_due = |member: &Member, after: Duration| {
        // A turn that has just begun for the newest rows says more when it is over.
        let after = if member.begins { after * 2 } else { after };
        member.ready.is_some() && member.sampled.is_none_or(|sampled| sampled.elapsed() >= after)
    };
    if !members.iter().any(|member| is_due(member, SAMPLE)) {
        return Vec::new();
    }
    let waited_for = |member: &Member| look.standing(&member.config.name).map(|standing| look.is_waited_for(standing));
    let mut behind = Vec::new();
    let mut due = Vec::new();
    for (index, member) in members.iter().enumerate() {
        match waited_for(member) {
            Some(true) if is_due(member, SAMPLE) => behind.push(index),
            Some(false) if is_due(member, SAMPLE / 2) => due.push(index),
            _ => {}
        }
    }
    // Those first that have waited longest: where not all can be counted in time, each still has its turn.
    behind.sort_by_key(|&index| members[index].sampled);
    behind.truncate(if engine.may_count() { COUNTS } else { 0 });
    due.append(&mut behind);
    due
}

async fn lag(
    engine: &Engine,
    session: &Session,
    shape: &Shape,
    look: &Look,
    standing: &Standing,
) -> Result<Lag, Error> {
    let now = look.sighting.clock();
    if !look.is_waited_for(standing) {
        return Ok(Lag { age: Duration::ZERO, rows: 0, capped: false, observed_at: now });
    }
    let begun = Instant::now();
    let lag = lag::measure(session, shape, standing.position.as_ref(), now).await;
    engine.counted(begun.elapsed());
    lag
}

/// Has the partitions of each topic counted, once for all relays that publish there.
fn look_again(topics: BTreeMap<String, Vec<Arc<PreparedStream>>>, patience: Duration) {
    for relays in topics.into_values() {
        tokio::spawn(async move {
            let [first, others @ ..] = relays.as_slice() else { return };
            match first.sink.look_again(patience).await {
                Ok(()) => others.iter().for_each(|other| other.sink.learn_partitions(&first.sink)),
                Err(failure) => {
                    tracing::debug!(cursor = first.config.name, error = failure.message, "partitions not counted");
                }
            }
        });
    }
}
