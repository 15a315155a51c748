//! Sends spans to a collector: OTLP over HTTP, as protobuf (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! A batch that the collector cannot take now is retried twice, and then dropped: a collector that is away costs a request now and then,
//! and no memory beyond the queue.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Sent, Status, span, status};
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, redirect, retry};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Config, DROPPED, EXPORTED, Span, SpanContext, SpanKind, Value};
use crate::tls::{self, Verify};

/// The most spans of a request.
const BATCH: usize = 512;
/// How long a span waits for others.
const COMPANY: Duration = Duration::from_secs(1);
/// How long the collector may take for a request.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How often a batch is sent at most, and how long it waits before the second time; before the third it waits twice as long.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);
/// The most that is read of an answer.
const ANSWER: usize = 64 << 10;

/// Flags of a span: it is exported; what it belongs to is known to be here, or elsewhere.
const SAMPLED: u32 = 1;
const HERE: u32 = 0x100;
const ELSEWHERE: u32 = 0x300;

/// Why spans were not taken.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) why: String,
    /// It may take them a moment later.
    passes: bool,
}

/// Who asks the collector.
pub(super) struct Exporter {
    config: Config,
    url: String,
    resource: Resource,
    client: Option<Client>,
}

impl Exporter {
    pub(super) fn new(config: Config, instance: &str) -> Self {
        let of = [
            ("service.name", "outbox-relay"),
            ("service.version", env!("CARGO_PKG_VERSION")),
            ("service.instance.id", instance),
        ];
        let attributes = of.map(|(key, value)| attribute(key, &Value::from(value))).to_vec();
        let url = format!("{}/v1/traces", config.otlp.trim_end_matches('/'));
        Self { config, url, resource: Resource { attributes, ..Resource::default() }, client: None }
    }

    /// Sends spans once.
    ///
    /// # Errors
    /// Why the collector has not taken them.
    pub(super) async fn export(&mut self, spans: &[Span]) -> Result<(), Refused> {
        let sent = self.post(self.request(spans).encode_to_vec()).await;
        if sent.is_err() {
            // The file of the authorities is read again.
            self.client = None;
        }
        sent
    }

    fn request(&self, spans: &[Span]) -> ExportTraceServiceRequest {
        let scope = InstrumentationScope {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..InstrumentationScope::default()
        };
        let spans = spans.iter().map(sent).collect();
        let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
        let resource_spans =
            vec![ResourceSpans { resource: Some(self.resource.clone()), scope_spans, ..ResourceSpans::default() }];
        ExportTraceServiceRequest { resource_spans }
    }

    async fn post(&mut self, body: Vec<u8>) -> Result<(), Refused> {
        let cannot = |why| Refused { why, passes: true };
        let headers = self.headers().map_err(cannot)?;
        let client = match self.client.take() {
            Some(client) => client,
            None => client(&self.config).map_err(cannot)?,
        };
        let client = self.client.insert(client);
        let asked = client.post(&self.url).headers(headers).body(body).send().await;
        let mut answer = asked.map_err(|error| cannot(reason(&error)))?;
        let status = answer.status();
        if !status.is_success() {
            let passes = matches!(
                status,
                StatusCode::TOO_MANY_REQUESTS
                    | StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            );
            return Err(Refused { why: format!("it answers {status}"), passes });
        }
        let mut bytes = Vec::new();
        while let Some(more) = answer.chunk().await.map_err(|error| cannot(reason(&error)))? {
            bytes.extend_from_slice(&more);
            if bytes.len() > ANSWER {
                return Err(Refused { why: "its answer is none of OTLP".to_owned(), passes: false });
            }
        }
        let answer = ExportTraceServiceResponse::decode(&*bytes)
            .map_err(|_| Refused { why: "its answer is none of OTLP".to_owned(), passes: false })?;
        match answer.partial_success.filter(|partial| partial.rejected_spans > 0) {
            Some(partial) => {
                Err(Refused { why: format!("it rejects {} of them", partial.rejected_spans), passes: false })
            }
            None => Ok(()),
        }
    }

    /// Read at each export, so that rotated credentials need no restart.
    fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"))]);
        let Some(path) = &self.config.headers_file else { return Ok(headers) };
        let text = crate::file::text(path).map_err(|error| format!("{}: {error}", path.display()))?;
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let wrong = || format!("{}: line {} is no header, which is `Name: value`", path.display(), number + 1);
            let (name, value) = line.split_once(':').ok_or_else(wrong)?;
            let name = HeaderName::try_from(name.trim()).map_err(|_| wrong())?;
            let mut value = HeaderValue::try_from(value.trim()).map_err(|_| wrong())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

fn client(config: &Config) -> Result<Client, String> {
    let builder = if config.otlp.starts_with("https:") {
        let connector = tls::connector(Verify::Name, config.ca_file.as_deref(), &["http/1.1"])?;
        Client::builder().tls_backend_preconfigured(connector)
    } else {
        Client::builder().tls_certs_only([])
    };
    builder
        .user_agent(concat!("outbox-relay/", env!("CARGO_PKG_VERSION")))
        .redirect(redirect::Policy::none())
        .referer(false)
        .no_proxy()
        .retry(retry::never())
        .timeout(TIMEOUT)
        .build()
        .map_err(|error| reason(&error))
}

/// The innermost cause, which holds neither the URL nor a header.
fn reason(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {TIMEOUT:?}");
    }
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause.and_then(std::error::Error::source) {
        cause = Some(inner);
    }
    cause.map_or_else(|| "the request could not be made".to_owned(), ToString::to_string)
}

/// Sends what comes until the queue is closed or is to end, and then what is left of it.
pub(super) async fn run(mut exporter: Exporter, mut spans: mpsc::Receiver<Span>, ending: CancellationToken) {
    let mut log = Log { url: exporter.url.clone(), counted: 0, told: false };
    let mut batch = Vec::with_capacity(BATCH);
    while fill(&mut batch, &mut spans, &ending).await {
        let count = batch.len() as u64;
        let sent = deliver(&mut exporter, &batch, &ending).await;
        let counter = if sent.is_ok() { &EXPORTED } else { &DROPPED };
        counter.fetch_add(count, Ordering::Relaxed);
        log.told(sent.err());
        batch.clear();
    }
}

/// Fills a batch: the first span waits a moment for others. False when there will be none.
async fn fill(batch: &mut Vec<Span>, spans: &mut mpsc::Receiver<Span>, ending: &CancellationToken) -> bool {
    tokio::select! {
        biased;
        () = ending.cancelled() => spans.close(),
        count = spans.recv_many(batch, BATCH) => if count == 0 { return false },
    }
    let until = Instant::now() + COMPANY;
    while batch.len() < BATCH {
        let room = BATCH - batch.len();
        tokio::select! {
            biased;
            () = ending.cancelled(), if !spans.is_closed() => spans.close(),
            count = spans.recv_many(batch, room) => if count == 0 { break },
            () = tokio::time::sleep_until(until.into()) => break,
        }
    }
    !batch.is_empty()
}

/// Sends a batch, again where that may help; at the end of the process once.
async fn deliver(exporter: &mut Exporter, batch: &[Span], ending: &CancellationToken) -> Result<(), Refused> {
    let mut attempt = 1;
    loop {
        match exporter.export(batch).await {
            Err(refused) if refused.passes && attempt < ATTEMPTS && !ending.is_cancelled() => {
                tokio::select! {
                    () = ending.cancelled() => {}
                    () = tokio::time::sleep(PAUSE * attempt) => {}
                }
                attempt += 1;
            }
            outcome => return outcome,
        }
    }
}

/// One line when spans begin to be dropped, and one when they get through again.
struct Log {
    url: String,
    counted: u64,
    told: bool,
}

impl Log {
    fn told(&mut self, refused: Option<Refused>) {
        let (dropped, collector) = (super::dropped(), &self.url);
        let (news, error) = (dropped > self.counted, refused.map(|refused| refused.why));
        if news && !self.told {
            let hint =
                "Rows are not affected. `outbox-relay check` asks the collector again; [telemetry] has its address.";
            let error = error.as_deref().unwrap_or("they come faster than it takes them");
            tracing::warn!(collector, error, dropped, hint, "spans dropped, and from now on only counted");
        } else if !news && self.told {
            tracing::info!(collector, dropped, "the collector takes spans again");
        }
        (self.counted, self.told) = (dropped, news);
    }
}

fn sent(span: &Span) -> Sent {
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

fn attribute(key: &str, value: &Value) -> KeyValue {
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
