//! A collector of spans, which decodes what it is sent by the messages of the OTLP specification, and answers as it is told.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use outbox_testkit::hex;
use prost::Message as _;

use super::{PATIENCE, eventually};

/// How it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// It takes the spans.
    Take,
    /// No answer at all.
    Hang,
    /// It takes the request, and rejects so many of its spans.
    Reject(i64),
    /// This status.
    Refuse(u16),
    /// This status, and it asks for a pause of so many seconds.
    Later(u16, u64),
}

/// One span, with what its resource says.
#[derive(Clone, Debug)]
pub struct Collected {
    pub resource: Vec<KeyValue>,
    pub span: Span,
}

impl Collected {
    /// An attribute, as text.
    pub fn attribute(&self, key: &str) -> Option<String> {
        text(&self.span.attributes, key)
    }

    /// An attribute of its resource, as text.
    pub fn of_resource(&self, key: &str) -> Option<String> {
        text(&self.resource, key)
    }

    /// Trace and span of each link, as `traceparent` has them.
    pub fn links(&self) -> Vec<(String, String)> {
        self.span.links.iter().map(|link| (hex(&link.trace_id), hex(&link.span_id))).collect()
    }
}

fn text(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        any_value::Value::StringValue(text) => Some(text.clone()),
        any_value::Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{key}: {other:?}"),
    }
}

#[derive(Debug)]
struct Inside {
    manner: Manner,
    spans: Vec<Collected>,
    asked: Vec<(Instant, HeaderMap)>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Collector {
    pub url: String,
    inside: Arc<Mutex<Inside>>,
}

impl Collector {
    /// Listens on a free port until the test's runtime ends.
    pub async fn start(manner: Manner) -> Self {
        let inside = Arc::new(Mutex::new(Inside { manner, spans: Vec::new(), asked: Vec::new() }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(answer)).with_state(Arc::clone(&inside));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, inside }
    }

    /// Answers so from now on.
    pub fn answer(&self, manner: Manner) {
        self.inside.lock().unwrap().manner = manner;
    }

    /// The spans that it has taken.
    pub fn spans(&self) -> Vec<Collected> {
        self.inside.lock().unwrap().spans.clone()
    }

    /// The headers of each request, whatever it was answered.
    pub fn asked(&self) -> Vec<HeaderMap> {
        self.inside.lock().unwrap().asked.iter().map(|(_, headers)| headers.clone()).collect()
    }

    /// When each of them came.
    pub fn asked_at(&self) -> Vec<Instant> {
        self.inside.lock().unwrap().asked.iter().map(|(at, _)| *at).collect()
    }

    /// Waits for a span.
    pub async fn span(&self, wanted: impl Fn(&Collected) -> bool) -> Collected {
        let found = || self.spans().into_iter().find(|span| wanted(span));
        eventually(PATIENCE * 2, async || found().is_some()).await;
        found().unwrap()
    }
}

async fn answer(
    State(inside): State<Arc<Mutex<Inside>>>,
    headers: HeaderMap,
    body: Bytes,
) -> (StatusCode, HeaderMap, Vec<u8>) {
    let manner = {
        let mut inside = inside.lock().unwrap();
        inside.asked.push((Instant::now(), headers.clone()));
        inside.manner
    };
    let mut answer = HeaderMap::new();
    answer.insert("content-type", HeaderValue::from_static("application/x-protobuf"));
    let status = |status| StatusCode::from_u16(status).unwrap();
    let rejected = match manner {
        Manner::Hang => std::future::pending().await,
        Manner::Refuse(refused) => return (status(refused), answer, Vec::new()),
        Manner::Later(refused, pause) => {
            answer.insert("retry-after", HeaderValue::from(pause));
            return (status(refused), answer, Vec::new());
        }
        Manner::Take => None,
        Manner::Reject(rejected_spans) => {
            let error_message = "an attribute is too long".to_owned();
            Some(ExportTracePartialSuccess { rejected_spans, error_message })
        }
    };
    assert_eq!(headers["content-type"], "application/x-protobuf");
    let request = ExportTraceServiceRequest::decode(body).unwrap();
    let spans = request.resource_spans.into_iter().flat_map(|of| {
        let resource = of.resource.unwrap().attributes;
        let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.map(move |span| Collected { resource: resource.clone(), span })
    });
    inside.lock().unwrap().spans.extend(spans);
    (StatusCode::OK, answer, ExportTraceServiceResponse { partial_success: rejected }.encode_to_vec())
}
