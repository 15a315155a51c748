//! Sends spans to a collector: OTLP over HTTP, as protobuf (<https://opentelemetry.io/docs/specs/otlp/>).
//!
//! A batch that the collector cannot take now is retried twice, and then dropped: a collector that is away costs a request now and then,
//! and no memory beyond the queue.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message as _;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, redirect, retry};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Config, DROPPED, EXPORTED, Span, Value};
use crate::tls::{self, IdentityFiles, Verify};

mod answer;
mod encoding;

use answer::{Refused, TIMEOUT, Taken, reason};
use encoding::{attribute, sent};

/// The most spans of a request.
const BATCH: usize = 512;
/// How long a span waits for others.
const COMPANY: Duration = Duration::from_secs(1);
/// How often a batch is sent at most, and how long it waits before the second time; before the third it waits twice as long.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_secs(1);

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
    pub(super) async fn export(&mut self, spans: &[Span]) -> Result<Taken, Refused> {
        let sent = self.post(self.request(spans).encode_to_vec()).await;
        if sent.is_err() {
            // The files of the certificates are read again.
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

    async fn post(&mut self, body: Vec<u8>) -> Result<Taken, Refused> {
        let headers = self.headers().map_err(Refused::unasked)?;
        let client = match self.client.take() {
            Some(client) => client,
            None => client(&self.config).map_err(Refused::unasked)?,
        };
        let client = self.client.insert(client);
        let asked = client.post(&self.url).headers(headers).body(body).send().await;
        let answer = asked.map_err(|error| Refused::unasked(reason(&error)))?;
        if !answer.status().is_success() {
            return Err(answer::of_status(answer.status(), answer.headers(), SystemTime::now()));
        }
        answer::taken(answer).await
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
        let own = config.identity.as_ref().map(IdentityFiles::read).transpose()?;
        let connector = tls::connector_as(Verify::Name, config.ca_file.as_deref(), own, &["http/1.1"])?;
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

/// Sends what comes until the queue is closed or is to end, and then what is left of it.
pub(super) async fn run(mut exporter: Exporter, mut spans: mpsc::Receiver<Span>, ending: CancellationToken) {
    let mut log = Log { url: exporter.url.clone(), counted: 0, told: false };
    let mut batch = Vec::with_capacity(BATCH);
    while fill(&mut batch, &mut spans, &ending).await {
        let count = batch.len() as u64;
        let (dropped, why, pause) = match deliver(&mut exporter, &batch, &ending).await {
            Ok(taken) => (taken.rejected.min(count), taken.why, None),
            Err(refused) => (count, Some(refused.why), refused.pause),
        };
        EXPORTED.fetch_add(count - dropped, Ordering::Relaxed);
        DROPPED.fetch_add(dropped, Ordering::Relaxed);
        log.told(why);
        batch.clear();
        // Of the next batch, too.
        wait(pause.unwrap_or_default(), &ending).await;
    }
}

/// Waits, but not at the end of the process.
async fn wait(pause: Duration, ending: &CancellationToken) {
    tokio::select! {
        () = ending.cancelled() => {}
        () = tokio::time::sleep(pause) => {}
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
async fn deliver(exporter: &mut Exporter, batch: &[Span], ending: &CancellationToken) -> Result<Taken, Refused> {
    let mut attempt = 1;
    loop {
        match exporter.export(batch).await {
            Err(refused) if refused.passes && attempt < ATTEMPTS && !ending.is_cancelled() => {
                wait(refused.pause.unwrap_or_default().max(PAUSE * attempt), ending).await;
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
    fn told(&mut self, error: Option<String>) {
        let (dropped, collector) = (super::dropped(), &self.url);
        let news = dropped > self.counted;
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
