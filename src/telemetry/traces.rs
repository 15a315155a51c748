//! Spans for an OpenTelemetry collector, by OTLP over HTTP (`[telemetry]`).
//!
//! Promise: never in the way. Handing spans over waits for nothing: a queue of bounded length takes them or drops them, and a task of its
//! own sends them. What is dropped is counted, and logged once until spans get through again. Without `[telemetry]` there is neither
//! queue nor task, and a turn allocates nothing for it.
//!
//! The rest of the program knows only [`Span`]; what goes over the wire is `otlp`, which a build without the cargo feature of that name
//! leaves out.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod context;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(not(feature = "otlp"))]
#[path = "traces/left_out.rs"]
mod otlp;

pub use context::{SpanContext, new_span_id, new_trace_id};

use crate::tls::IdentityFiles;

/// Of turns whose rows do not say themselves whether they are traced, one in twenty: a busy relay has some hundred a second.
pub const DEFAULT_SAMPLE: f64 = 0.05;
/// How many spans wait for the collector: seconds of a busy relay, some hundred bytes each.
const QUEUE: usize = 2048;
/// How long the end of the process waits for the collector.
const LAST_EXPORT: Duration = Duration::from_secs(1);

static EXPORTED: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// `[telemetry]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The collector's address, to which `/v1/traces` is added.
    pub otlp: String,
    /// Which share of the turns is exported whose rows do not decide it.
    pub sample: f64,
    /// Headers of each export, one `Name: value` a line.
    pub headers_file: Option<PathBuf>,
    /// The authorities that verify the collector's certificate, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The relay's own certificate, for a collector that asks for one.
    pub identity: Option<IdentityFiles>,
}

impl Config {
    /// Whether this program can export spans.
    #[must_use]
    pub const fn is_available() -> bool {
        cfg!(feature = "otlp")
    }

    /// Asks the collector whether it takes spans, by sending it none.
    ///
    /// # Errors
    /// Why it does not.
    pub async fn probe(&self) -> Result<(), String> {
        match otlp::Exporter::new(self.clone(), "check").export(&[]).await {
            Ok(_) => Ok(()),
            Err(refused) => Err(refused.why),
        }
    }
}

/// What a span is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// Work of this process.
    Internal,
    /// It asks another system.
    Client,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A text.
    Text(String),
    /// A number.
    Number(u64),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

/// A span that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub kind: SpanKind,
    /// Its trace.
    pub trace_id: u128,
    /// Its own id.
    pub id: u64,
    /// The span that it is a part of.
    pub parent: Option<u64>,
    /// When it began.
    pub begun: SystemTime,
    /// When it ended.
    pub ended: SystemTime,
    /// What is known of it.
    pub attributes: Vec<(&'static str, Value)>,
    /// Spans of other traces that it continues.
    pub links: Vec<SpanContext>,
    /// Why it failed.
    pub error: Option<String>,
}

/// Where spans go; by default nowhere.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<Arc<Queue>>);

#[derive(Debug)]
struct Queue {
    sample: f64,
    sender: mpsc::Sender<Span>,
    ending: CancellationToken,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Traces {
    /// Begins to send spans as the replica `instance`, if that is configured.
    #[must_use]
    pub fn start(config: Option<&Config>, instance: &str) -> Self {
        Self(config.map(|config| {
            let (sender, receiver) = mpsc::channel(QUEUE);
            let ending = CancellationToken::new();
            let exporter = otlp::Exporter::new(config.clone(), instance);
            let task = tokio::spawn(otlp::run(exporter, receiver, ending.clone()));
            Arc::new(Queue { sample: config.sample, sender, ending, task: Mutex::new(Some(task)) })
        }))
    }

    /// Whether spans go anywhere.
    #[must_use]
    pub const fn are_on(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a trace is exported for which nothing else decides.
    #[must_use]
    pub fn samples(&self) -> bool {
        self.0.as_ref().is_some_and(|queue| fastrand::f64() < queue.sample)
    }

    /// Hands a span over, or drops it where the queue is full.
    pub fn export(&self, span: Span) {
        let Some(queue) = &self.0 else { return };
        if queue.sender.try_send(span).is_err() {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends what waits, and ends: within a second, and not after `cut`, when the process may not wait any longer.
    pub async fn finish(&self, cut: &CancellationToken) {
        let Some(queue) = &self.0 else { return };
        let task = queue.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut task) = task else { return };
        queue.ending.cancel();
        tokio::select! {
            biased;
            () = cut.cancelled() => {}
            _ = tokio::time::timeout(LAST_EXPORT, &mut task) => {}
        }
        if !task.is_finished() {
            task.abort();
            tracing::warn!("the collector did not take the last spans in time");
        }
    }
}

/// How many spans the collector has taken.
#[must_use]
pub fn exported() -> u64 {
    EXPORTED.load(Ordering::Relaxed)
}

/// How many spans were dropped: the queue was full, or the collector did not take them, or rejected them.
#[must_use]
pub fn dropped() -> u64 {
    DROPPED.load(Ordering::Relaxed)
}
