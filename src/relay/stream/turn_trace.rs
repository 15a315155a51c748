//! The spans of a turn (`[telemetry]`): one for the turn, and within it one for what it has published, which links to the traces that its
//! rows belong to.
//!
//! They are made when the turn has ended: by then it is known whether they are worth a word. A turn that failed with a
//! code is always exported, so that the trace that its log lines name can be found. Another is exported if the trace of one of its first
//! rows is, and where none of them has a `traceparent`, by `sample`. Turns that had nothing to publish are not. Links lead to traces that are exported: the others lead nowhere.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::batch::Batch;
use crate::message::Field;
use crate::metrics::TurnResult;
use crate::relay::engine::Engine;
use crate::relay::setup::prepared::PreparedStream;
use crate::relay::stream::outcome::{Timings, TurnError, TurnOutcome};
use crate::sink;
use crate::telemetry::traces::{Span, SpanContext, SpanKind, Traces, Value, new_span_id, new_trace_id};

/// The most links of a span: a turn can have 20,000 rows.
const LINKS: usize = 32;
/// So many rows are looked at for them.
const LOOKED_AT: usize = 1000;

/// What is known of a turn while it runs.
#[derive(Debug)]
pub(in crate::relay) struct TurnTrace {
    traces: Traces,
    trace_id: u128,
    span_id: u64,
    begun: SystemTime,
    /// The field that holds a row's trace context, where the sink reads one.
    field: Option<usize>,
    published: Mutex<Published>,
}

/// What was handed to the sink.
#[derive(Debug, Default)]
struct Published {
    since: Option<SystemTime>,
    rows: usize,
    /// A row has a trace context.
    traced: bool,
    links: Vec<SpanContext>,
}

/// The trace of a turn that begins; none while nothing is exported.
pub(in crate::relay) fn begin(engine: &Engine, ready: &PreparedStream) -> Option<Arc<TurnTrace>> {
    engine.traces.are_on().then(|| {
        let is_it = |field: &Field| matches!(field, Field::Text(column) if column == "traceparent");
        Arc::new(TurnTrace {
            traces: engine.traces.clone(),
            trace_id: new_trace_id(),
            span_id: new_span_id(),
            begun: SystemTime::now(),
            field: ready.fields.iter().position(is_it),
            published: Mutex::default(),
        })
    })
}

/// What stands around the log lines of a turn: the trace that they belong to.
pub(in crate::relay) fn around_logs(trace: Option<&Arc<TurnTrace>>) -> tracing::Span {
    // Of the highest level, so that a line of any level has it.
    trace.map_or_else(tracing::Span::none, |trace| {
        tracing::error_span!("turn", trace_id = format!("{:032x}", trace.trace_id))
    })
}

impl TurnTrace {
    /// Rows are about to be published.
    pub(in crate::relay) fn publishes(&self, batch: &Batch) {
        let mut published = self.published.lock().unwrap_or_else(PoisonError::into_inner);
        published.since.get_or_insert_with(SystemTime::now);
        let left = LOOKED_AT.saturating_sub(published.rows);
        published.rows += batch.len();
        let Some(field) = self.field else { return };
        for context in batch.messages().take(left).filter_map(|message| SpanContext::parse(message.value(field)?)) {
            published.traced = true;
            if published.links.len() == LINKS {
                break;
            }
            if context.is_sampled() && !published.links.contains(&context) {
                published.links.push(context);
            }
        }
    }

    /// Hands the spans over, if they are to be exported.
    pub(in crate::relay) fn ended(
        &self,
        ready: &PreparedStream,
        timings: &Timings,
        (result, outcome): (TurnResult, &Result<TurnOutcome, TurnError>),
    ) {
        let published = std::mem::take(&mut *self.published.lock().unwrap_or_else(PoisonError::into_inner));
        let failure = match outcome {
            // Without its words, which may quote the row.
            Ok(outcome) => outcome.failure().map(|failure| failure.code.clone()),
            Err(error) => error.code(),
        };
        let sampled = || if published.traced { !published.links.is_empty() } else { self.traces.samples() };
        if failure.is_none() && (published.rows == 0 || !sampled()) {
            return;
        }
        let ended = SystemTime::now();
        let mut attributes = attributes(ready);
        attributes.push(("outbox_relay.turn.result", result.as_str().into()));
        attributes.extend(failure.iter().map(|code| ("error.type", Value::Text(code.clone()))));
        if let Some(since) = published.since {
            // Then only the position was left to be moved.
            let until = ended.checked_sub(timings.advance + timings.commit).unwrap_or(ended);
            self.traces.export(self.publication(ready, published, (since, until), failure.clone()));
        }
        self.traces.export(Span {
            name: format!("turn {}", ready.config.name),
            kind: SpanKind::Internal,
            trace_id: self.trace_id,
            id: self.span_id,
            parent: None,
            begun: self.begun,
            ended,
            attributes,
            links: Vec::new(),
            error: failure,
        });
    }

    /// The span of what was published, named as the conventions for messaging ask.
    fn publication(
        &self,
        ready: &PreparedStream,
        published: Published,
        (begun, ended): (SystemTime, SystemTime),
        error: Option<String>,
    ) -> Span {
        let mut attributes = attributes(ready);
        attributes.push(("messaging.operation.name", "send".into()));
        attributes.push(("messaging.operation.type", "send".into()));
        attributes.push(("messaging.batch.message_count", published.rows.into()));
        let name = match &ready.config.sink {
            sink::Config::Kafka(kafka) => {
                attributes.push(("messaging.system", "kafka".into()));
                let which =
                    if kafka.templated() { "messaging.destination.template" } else { "messaging.destination.name" };
                attributes.push((which, kafka.topic.as_str().into()));
                format!("send {}", kafka.topic)
            }
            other => format!("send {}", other.kind()),
        };
        Span {
            name,
            kind: SpanKind::Client,
            trace_id: self.trace_id,
            id: new_span_id(),
            parent: Some(self.span_id),
            begun,
            ended,
            attributes,
            links: published.links,
            error,
        }
    }
}

fn attributes(ready: &PreparedStream) -> Vec<(&'static str, Value)> {
    let config = &ready.config;
    vec![
        ("outbox_relay.cursor", config.name.as_str().into()),
        ("outbox_relay.relay", config.relay.as_str().into()),
        ("outbox_relay.sink", config.sink.kind().into()),
    ]
}
