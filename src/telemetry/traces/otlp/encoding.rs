//! Spans as the messages of OTLP.

use std::time::SystemTime;

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::{Span as Sent, Status, span, status};

use super::super::{Span, SpanContext, SpanKind, Value};

/// Flags of a span: it is exported; what it belongs to is known to be here, or elsewhere.
const SAMPLED: u32 = 1;
const HERE: u32 = 0x100;
const ELSEWHERE: u32 = 0x300;

/// A span as it is sent.
pub(super) fn sent(span: &Span) -> Sent {
    Sent {
        trace_id: span.trace_id.to_be_bytes().to_vec(),
        span_id: span.id.to_be_bytes().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
        flags: SAMPLED | if span.parent.is_some() { HERE } else { 0 },
        name: span.name.clone(),
        kind: match span.kind {
            SpanKind::Internal => span::SpanKind::Internal,
            SpanKind::Client => span::SpanKind::Client,
        }
        .into(),
        start_time_unix_nano: nanos(span.begun),
        end_time_unix_nano: nanos(span.ended.max(span.begun)),
        attributes: span.attributes.iter().map(|(key, value)| attribute(key, value)).collect(),
        links: span.links.iter().map(link).collect(),
        status: span.error.as_ref().map(|why| Status { message: why.clone(), code: status::StatusCode::Error.into() }),
        ..Sent::default()
    }
}

fn link(context: &SpanContext) -> span::Link {
    span::Link {
        trace_id: context.trace_id.to_be_bytes().to_vec(),
        span_id: context.span_id.to_be_bytes().to_vec(),
        flags: ELSEWHERE | u32::from(context.flags),
        ..span::Link::default()
    }
}

/// An attribute of a span or of a resource.
pub(super) fn attribute(key: &str, value: &Value) -> KeyValue {
    let value = match value {
        Value::Text(text) => any_value::Value::StringValue(text.clone()),
        Value::Number(number) => any_value::Value::IntValue(i64::try_from(*number).unwrap_or(i64::MAX)),
    };
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn nanos(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
