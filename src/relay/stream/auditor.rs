//! Compares what cursors have passed with their tables, beside the relays.
//!
//! Promise: a row that a table has between the two places of a slice, and that no turn has passed, becomes a letter, as one does that is
//! found late by its transaction, and one for both: it is delivered late, or halts the relay. What cannot be named is said aloud, and never
//! taken for equal. What is kept for `verify` (`[audit] keep`) stays for so long after its end, and all else for two hours.
//!
//! It takes a tenth of one session's time at most. First comparisons come before further ones; a slice that has waited a day for its first
//! is given up, which is counted.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::audit::{AGAIN, Comparison, MADE_UP_FOR, Sums, compare, element};
use crate::cursor::Halting;
use crate::cursor::audit_slices::{self, EndedSlice, Found};
use crate::cursor::dead_letter::LateRows;
use crate::database::{Error, Session, Sessions};
use crate::late::LateRow;
use crate::metrics::{self, AuditResult};
use crate::relay::engine::Engine;
use crate::relay::engine::report;
use crate::relay::setup::fingerprint::fingerprint;
use crate::relay::setup::prepare;
use crate::relay::stream::{late_rows, missing};
use crate::relay::{Config, Guarantee, OnLateRow};
use crate::sink::Failure;
use crate::source::range::{self, Bounds, Way};
use crate::source::shape::Shape;

/// How often it is asked whether a slice is due, or stays no longer.
const EVERY: Duration = Duration::from_secs(5);
/// So long no other replica takes a slice that this one compares.
const LEASE: Duration = Duration::from_secs(120);
/// A pause is so many times as long as the comparison before it.
const PAUSE: u32 = 9;
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What is known of a pass through slices that are due.
struct Pass<'a> {
    engine: &'a Engine,
    relays: &'a [Config],
    reader: Session,
    shapes: HashMap<String, Option<Arc<Shape>>>,
}

/// Runs until the engine stops.
pub async fn run(engine: Arc<Engine>, sessions: Sessions, relays: Vec<Config>) {
    let is_audited = |relay: &Config| {
        let is_stream = matches!(relay.source, crate::source::Config::Stream(_));
        relay.audit.enabled && is_stream && relay.guarantee != Guarantee::AtMostOnce
    };
    let relays: Vec<Config> = relays.into_iter().filter(is_audited).collect();
    for relay in &relays {
        metrics::audit_begins(&relay.name);
    }
    let auditing = async {
        loop {
            // Replicas that were started at once do not ask at once indefinitely.
            tokio::time::sleep(EVERY.mul_f64(0.9 + fastrand::f64() / 5.0)).await;
            if let Err(error) = pass(&engine, &sessions, &relays).await {
                tracing::warn!(%error, hint = error.fix(), "what was passed could not be compared with the tables; trying again");
            }
        }
    };
    if !relays.is_empty() {
        // A slice that is being compared is compared by another replica once this one's time for it is over.
        let _ = engine.stop.run_until_cancelled(auditing).await;
    }
}

/// Compares all slices that are due, with pauses.
async fn pass(engine: &Engine, sessions: &Sessions, relays: &[Config]) -> Result<(), Error> {
    let ready = relays.iter().filter(|relay| engine.is_ready(&relay.name));
    let names: Vec<&str> = ready.map(|relay| relay.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    let probe = engine.probe.session().await?;
    let stay = relays.iter().find_map(|relay| relay.audit.keep).unwrap_or(MADE_UP_FOR);
    delete(&probe, stay).await?;
    let mut deleted = Instant::now();
    if let Err(error) = audit_slices::end_at_rest(engine.connection().await?, &names).await {
        tracing::warn!(%error, hint = error.fix(), "slices of tables that rest could not be ended");
    }
    let Some(mut slice) = audit_slices::take(&probe, &names, LEASE).await? else { return Ok(()) };
    let mut pass = Pass { engine, relays, reader: sessions.open().await?, shapes: HashMap::new() };
    loop {
        let begun = Instant::now();
        // One whose table cannot be read now is due again when this replica's time for it is over.
        if pass.is_only_recorded(&slice) {
            audit_slices::compared(&probe, &slice, next(&slice, stay)).await?;
        } else if let Some(result) = pass.compare(&slice).await? {
            metrics::audited(&slice.cursor, result, 1);
            tracing::debug!(
                cursor = slice.cursor,
                rows = slice.sums.as_ref().map(Sums::rows),
                ?result,
                "slice compared"
            );
            let next = if result == AuditResult::Over { stay } else { next(&slice, stay) };
            audit_slices::compared(&probe, &slice, next).await?;
        }
        tokio::time::sleep((begun.elapsed() * PAUSE).min(LONGEST_PAUSE)).await;
        // There may always be one that is due.
        if deleted.elapsed() >= EVERY {
            delete(&probe, stay).await?;
            deleted = Instant::now();
        }
        match audit_slices::take(&probe, &names, LEASE).await? {
            Some(next) => slice = next,
            None => return Ok(()),
        }
    }
}

/// Deletes slices that stay no longer, and counts those that were never compared.
async fn delete(probe: &Session, stay: Duration) -> Result<(), Error> {
    let skipped = audit_slices::too_old(probe, stay).await?;
    if !skipped.is_empty() {
        let slices: u64 = skipped.iter().map(|(_, slices)| slices).sum();
        tracing::warn!(slices, "what was passed more than a day ago is not compared with the table any more");
        for (cursor, slices) in skipped {
            metrics::audited(&cursor, AuditResult::Skipped, slices);
        }
    }
    Ok(())
}

/// How long after its end a slice is looked at again: to be compared, and then, when it has stayed for so long, to be deleted.
fn next(slice: &EndedSlice, stay: Duration) -> Duration {
    AGAIN.into_iter().find(|after| *after > slice.age).unwrap_or(stay)
}

impl Pass<'_> {
    /// Whether it is for `verify` alone: only the number of its rows is known, or the relay leaves rows out.
    fn is_only_recorded(&self, slice: &EndedSlice) -> bool {
        let config = self.relays.iter().find(|relay| relay.name == slice.cursor);
        slice.sums.is_none() || config.is_some_and(Config::is_only_recorded)
    }

    /// Compares a slice with the table, and writes down what came late.
    async fn compare(&mut self, slice: &EndedSlice) -> Result<Option<AuditResult>, Error> {
        let Some(config) = self.relays.iter().find(|relay| relay.name == slice.cursor) else {
            return Ok(None);
        };
        let Some(shape) = self.shape(config).await? else { return Ok(None) };
        // Also where late rows are found by their transaction by now: the first snapshot of that kind sees those that came before it.
        let is_same = element(&shape.reads()) == slice.reads;
        let Some(delivered) = slice.sums.as_ref().filter(|_| is_same) else { return Ok(Some(AuditResult::Over)) };
        let bounds = Bounds { after: slice.after.clone(), up_to: slice.up_to.clone() };
        let mut table = Sums::default();
        let way = Way { indexed: true, transactions: false };
        range::each(&self.reader, &shape, &bounds, way, |row| table.add(element(row.id))).await?;
        let difference = match compare(delivered, &table) {
            Comparison::Equal => return Ok(Some(AuditResult::Equal)),
            Comparison::Differs(difference) if difference.missing() == 0 => return Ok(Some(AuditResult::Gone)),
            Comparison::Differs(difference) => Some(difference),
            Comparison::TooMany => None,
        };
        let late = missing::rows(&self.reader, &shape, &bounds, delivered, difference.as_ref()).await?;
        // Rows were read by the table's name: another relation may have come under it since its shape was read.
        self.shapes.clear();
        let now = self.shape(config).await?;
        let Some(now) = now.filter(|now| element(&now.reads()) == slice.reads) else {
            return Ok(None);
        };
        match late {
            Some(late) => self.write_down(config, &now, (slice, delivered), &late).await,
            None if table.rows() > delivered.rows() => {
                unnamed(config, slice, table.rows() - delivered.rows());
                Ok(Some(AuditResult::Unnamed))
            }
            None => {
                unclear(config, slice);
                Ok(Some(AuditResult::Unclear))
            }
        }
    }

    /// The table's shape, read once in a pass; none when it cannot be read now, which the relay itself says.
    async fn shape(&mut self, config: &Config) -> Result<Option<Arc<Shape>>, Error> {
        if let Some(known) = self.shapes.get(&config.name) {
            return Ok(known.clone());
        }
        let shape = prepare::shape(&self.reader, &config.source).await?;
        let shape = shape.ok().map(|shape| Arc::new(shape).for_shard(config.shard.as_ref()));
        self.shapes.insert(config.name.clone(), shape.clone());
        Ok(shape)
    }

    /// None when another replica, or an operator, is to be waited for.
    async fn write_down(
        &self,
        config: &Config,
        shape: &Shape,
        (slice, delivered): (&EndedSlice, &Sums),
        late: &[LateRow],
    ) -> Result<Option<AuditResult>, Error> {
        let mut with_them = delivered.clone();
        late.iter().filter_map(|row| row.position.id.as_deref()).for_each(|id| with_them.add(element(id)));
        let letters = LateRows { again: false, ..late_rows::letters(config, late) };
        let failure = (config.on_late_row == OnLateRow::Halt).then(|| late_rows::halt(&config.name, late));
        let fingerprint = fingerprint(config);
        let halt =
            failure.as_ref().map(|failure| Halting { report: report::error(failure, None), fingerprint: &fingerprint });
        let found = Found {
            slice: (slice.id, delivered),
            with_them: &with_them,
            relations: (shape.root, &shape.descendants),
            late: &letters,
            halt: halt.as_ref(),
        };
        let (loan, by) = (self.engine.connection().await?, &self.engine.replica);
        match audit_slices::found(loan, &config.name, found, by).await? {
            None => return Ok(None),
            Some(0) => return Ok(Some(AuditResult::Equal)),
            Some(new) => metrics::late_rows(&config.name, usize::try_from(new).unwrap_or(late.len())),
        }
        late_rows::tell(&config.name, late);
        if let Some(Failure { code, message, hint, .. }) = &failure {
            tracing::error!(cursor = config.name, code, error = message, hint, "relay halted");
        }
        Ok(Some(AuditResult::Late))
    }
}

/// So many rows were deleted or changed that it cannot be told whether others are missing.
fn unclear(config: &Config, slice: &EndedSlice) {
    tracing::warn!(
        cursor = config.name,
        after = %slice.after,
        up_to = %slice.up_to,
        hint = "Keep rows for more than an hour after their delivery, if the comparison is to tell anything",
        "so many passed rows were deleted or changed that it cannot be told whether others are missing"
    );
}

/// Rows are missing, and which ones cannot be told.
fn unnamed(config: &Config, slice: &EndedSlice, rows: u64) {
    let hint = format!(
        "If the relay publishes to Kafka, `outbox-relay verify {} --since {}` names them, and with --repair publishes them; else compare \
         the rows between these places with what the receiver has",
        config.relay, slice.after.created_at
    );
    tracing::error!(
        cursor = config.name,
        rows,
        after = %slice.after,
        up_to = %slice.up_to,
        hint,
        "the table has more rows between two places than were passed, and which ones cannot be told"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::{Position, Timestamp};

    #[test]
    fn slice_is_compared_again_and_then_deleted_when_it_stays_no_longer() {
        let place = Position { created_at: Timestamp::from_pg_micros(0), id: None };
        let aged = |minutes: u64| EndedSlice {
            id: 1,
            cursor: "a".to_owned(),
            reads: 1,
            after: place.clone(),
            up_to: place.clone(),
            sums: None,
            checks: 0,
            age: Duration::from_secs(minutes * 60),
        };
        for (age, stay, expected) in [(1, 120, 10), (11, 120, 60), (61, 120, 120), (61, 600, 600), (700, 600, 600)] {
            let next = next(&aged(age), Duration::from_secs(stay * 60));
            assert_eq!(next, Duration::from_secs(expected * 60), "{age} {stay}");
        }
    }
}
