//! What must be true before due rows are claimed: the same checks as `check`, a sink, a cursor row.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::poll::statements;
use crate::database::{Error, Session, error::describe};
use crate::metrics::{CursorMetrics, PendingMetrics};
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::queue::prepared;
use crate::relay::setup::naming;
use crate::relay::setup::prepare::{self, Seat};
use crate::relay::setup::sinks;
use crate::sink::Sink;
use crate::sink::kafka::LetterTopic;
use crate::source::finding::{Finding, Level};
use crate::source::pending::{Due, Most, Pending, inspect, judge};

/// A relay of due work that has passed its checks.
#[derive(Debug)]
pub(super) struct PreparedPending {
    pub(super) config: Config,
    pub(super) pending: Pending,
    pub(super) due: Due,
    pub(super) look_sql: String,
    pub(super) sink: Arc<Sink>,
    pub(super) letters: Option<Arc<LetterTopic>>,
    pub(super) seat: Seat,
    pub(super) metrics: CursorMetrics,
    pub(super) numbers: PendingMetrics,
    pub(super) size: ClaimSize,
}

/// How many rows a claim asks for at most. What rows take to be read is not known before; a claim that is cut because it takes too long
/// would be cut again and again.
#[derive(Debug)]
pub(super) struct ClaimSize(AtomicUsize);

impl Default for ClaimSize {
    fn default() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }
}

impl ClaimSize {
    /// So many of those for which there is room. Unless the claim succeeds, the next one is for half of them.
    pub(super) fn begin(&self, room: usize) -> usize {
        let rows = room.min(self.0.load(Ordering::Relaxed));
        self.0.store((rows / 2).max(1), Ordering::Relaxed);
        rows
    }

    /// A claim for so many rows has succeeded, before which this many were allowed. It grows by little: a claim of twice as many could be
    /// cut, again and again.
    pub(super) fn succeeded(&self, rows: usize, before: usize) {
        self.0.store(before.max(rows.saturating_add(rows / 8 + 1)), Ordering::Relaxed);
    }

    /// How many are allowed.
    pub(super) fn allowed(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Reads and judges the table: all findings, and what was found when none of them is an error.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn due(session: &Session, pending: &Pending) -> Result<(Vec<Finding>, Option<Due>), Error> {
    let table = inspect(session, pending).await?;
    let findings = judge(table.as_ref(), pending);
    let fit = findings.iter().all(|finding| finding.level < Level::Error);
    let due = table.filter(|_| fit).map(|table| Due::new(&table, pending));
    Ok((findings, due))
}

prepared!(PreparedPending);

pub(super) async fn prepare(
    engine: &Arc<Engine>,
    config: &Config,
    pending: &Pending,
) -> Result<Result<PreparedPending, Unready>, Error> {
    let session = engine.probe.session().await?;
    let (findings, due) = due(&session, pending).await?;
    let Some(due) = due else { return Ok(Err(Unready::first(findings))) };
    let due = due.reading(Most { row: config.turn.max_row_bytes, claim: config.turn.bytes });
    let sink = match sinks::make(engine, config, sinks::KnownTable::of_due(due.traceparent)).await {
        Ok(sink) => sink,
        Err(unready) => return Ok(Err(unready)),
    };
    let letters = match sinks::letters(engine, config).await {
        Ok(letters) => letters,
        Err(unready) => return Ok(Err(unready)),
    };
    for sql in statements(&due, sink.fields(), config.guarantee) {
        if let Err(error) = session.prepare(&sql).await {
            if error.code().is_none() {
                return Err(error.into());
            }
            let message = format!("relay {} cannot use {}: {}", config.name, pending.table, describe(&error));
            let otherwise =
                "Correct the column or the constant named, or grant what is missing; see `outbox-relay check`.";
            let hint = naming::hint(config, &message, otherwise);
            return Ok(Err(Unready::wrong("column_unreadable", message, hint)));
        }
    }
    let seat = match prepare::seat(engine, &session, config, due.oid).await? {
        Ok(seat) => seat,
        Err(unready) => return Ok(Err(unready)),
    };
    Ok(Ok(PreparedPending {
        look_sql: due.look_sql(),
        pending: pending.clone(),
        metrics: CursorMetrics::new(&config.name, config.sink.kind()).with_rate(sink.min_interval().is_some()),
        sink: Arc::new(sink),
        config: config.clone(),
        numbers: PendingMetrics::new(&config.name),
        due,
        letters,
        seat,
        size: ClaimSize::default(),
    }))
}
