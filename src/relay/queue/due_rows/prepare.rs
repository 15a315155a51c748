//! What must be true before due rows are claimed: the same checks as `check`, a sink, a cursor row.

use std::sync::Arc;

use super::names;
use super::poll::statements;
use crate::database::{Error, Session, error::describe};
use crate::metrics::{CursorMetrics, PendingMetrics};
use crate::relay::Config;
use crate::relay::engine::Engine;
use crate::relay::engine::not_ready::Unready;
use crate::relay::queue::batch_size::BatchSize;
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
    /// How many rows a claim asks for at most.
    pub(super) size: BatchSize,
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
    let casts = due.casts_called(sink.fields());
    if !casts.is_empty() {
        return Ok(Err(Unready::first(casts)));
    }
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
    let seat = match seat(engine, &session, config, &due).await? {
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
        size: BatchSize::default(),
    }))
}

/// Takes over the cursor's row. Before that, so that a halt stays, and after it, because it may have been made, the labels by which
/// rows are named are compared with those that it remembers.
async fn seat(
    engine: &Arc<Engine>,
    session: &Session,
    config: &Config,
    due: &Due,
) -> Result<Result<Seat, Unready>, Error> {
    if let Err(unready) = names::remembered(engine, session, config, due).await? {
        return Ok(Err(unready));
    }
    let seat = prepare::seat(engine, session, config, due.oid).await?;
    if seat.is_ok()
        && let Err(unready) = names::remembered(engine, session, config, due).await?
    {
        return Ok(Err(unready));
    }
    Ok(seat)
}
