//! One HTTP request per message, in order, one at a time.
//!
//! A message is acknowledged by a status of 2xx and by nothing else; `answer` holds the one table of what every
//! other outcome means. Redirects are not followed, proxies of the environment are not used, nothing is decompressed,
//! and no more than 64 kB of an answer are read. Every request carries `Idempotency-Key: <relay>/<id>`, with
//! `/<due instant>` behind it for rows that become due: the same for every attempt, so that a receiver that honours it sees
//! each message once.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use reqwest::header::HeaderValue;
use reqwest::{Request, Response};
use sha2::{Digest as _, Sha256};
use tokio::time::Instant;

use super::doubt::Doubt;
use super::{Class, Failure, Flow, InvalidSetting, Mode, Published, Subject};
use crate::batch::Batch;
use crate::message::{Field, Message};

pub mod access;
pub(crate) mod address;
pub(super) mod answer;
mod client;
mod connections;
pub(super) mod gate;
pub mod oauth2;
pub mod once;
pub(super) mod preset;
mod request;
mod signature;
use access::Access;
use answer::Answer;
pub use answer::known_errors;
use connections::Connections;
use oauth2::{Token, Tokens};
use preset::{Preset, Seal};
use request::{IDEMPOTENCY_KEY, Requests, marking};

/// So many times a message must be refused because its idempotency key is in use (409), after an attempt that was not answered: about 40 s
/// of a stream's pauses, in which a receiver ends what it is at.
const TIMES_IN_USE: u32 = 12;

/// How long the rest of a positive answer may take: it is read only so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(250);

/// `[relay.sink.http]` of the configuration.
#[derive(Clone, PartialEq)]
pub struct Config {
    /// `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: String,
    /// The URL, a template; values are percent-encoded.
    pub url: String,
    /// Header names to templates.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Body,
    /// The longest wait for an answer.
    pub timeout: Duration,
    /// The most requests a second, per cursor.
    pub rate_per_second: Option<f64>,
    /// For requests that are sent once.
    pub once: once::Config,
    /// How the relay proves who it is.
    pub access: access::Config,
}

impl Config {
    /// Where the messages go, for the cursor's identity and for people. Of a query, which often holds a token, only a
    /// digest, so that another one is seen to be another.
    #[must_use]
    pub fn target(&self) -> String {
        let Some((address, query)) = self.url.split_once('?') else { return self.url.clone() };
        let digest: String = Sha256::digest(query).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        format!("{address}?sha256={digest}")
    }
}

impl fmt::Debug for Config {
    /// Without the URL's path and query, the headers' values and the body: each may hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("method", &self.method)
            .field("url", &self.url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/"))
            .field("headers", &self.headers.keys())
            .field("timeout", &self.timeout)
            .field("rate_per_second", &self.rate_per_second)
            .finish_non_exhaustive()
    }
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// The whole row as JSON.
    Row,
    /// A template.
    Template(String),
    /// Form fields, each a template (the SMS preset uses it).
    Form(Vec<(String, String)>),
}

/// Sends the messages of one relay.
#[derive(Debug)]
pub struct HttpSink {
    connections: Connections,
    access: Box<Access>,
    requests: Box<Requests>,
    preset: Preset,
    min_interval: Option<Duration>,
    once: once::Config,
    /// By the idempotency keys of attempts that were not answered: receivers may say that they are in use.
    in_use: Doubt,
}

/// One turn's requests.
#[derive(Debug)]
pub struct HttpPublication<'a> {
    sink: &'a HttpSink,
    mode: Mode,
    seal: Seal,
    /// With which the last request was made.
    token: Option<Token>,
    acknowledged: usize,
    /// Set while the message number `acknowledged` may be on its way; still set in `finish` when `push` was dropped.
    in_flight: bool,
    /// Set when the rate allows no further request in this turn.
    cut: bool,
    last_request: Option<Instant>,
    stopped: Option<Failure>,
}

impl HttpSink {
    /// Compiles the templates and makes the client; `relay` goes into the idempotency key.
    ///
    /// # Errors
    /// All settings that cannot work, together.
    pub fn new(config: &Config, relay: &str) -> Result<Self, Vec<InvalidSetting>> {
        Self::with_preset(config, relay, Preset::default())
    }

    pub(super) fn with_preset(config: &Config, relay: &str, preset: Preset) -> Result<Self, Vec<InvalidSetting>> {
        let requests = Box::new(Requests::compile(config, relay)?);
        let client = client::client(config.timeout, preset.gate.as_ref(), &access::Config::default())
            .map_err(|problem| vec![InvalidSetting { key: "url".to_owned(), problem }])?;
        let min_interval = config
            .rate_per_second
            .filter(|rate| rate.is_finite() && *rate > 0.0)
            .and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok());
        let connections = Connections::new(client, config.timeout);
        let access = Box::new(Access::new(config.access.clone(), config.timeout));
        let (once, in_use) = (config.once.clone(), Doubt::new(TIMES_IN_USE));
        Ok(Self { connections, access, requests, preset, min_interval, once, in_use })
    }

    /// The same sink; when `headers`, the object of that name in each row becomes headers of its request.
    #[must_use]
    pub fn passing_on(mut self, headers: bool) -> Self {
        if headers {
            self.requests.pass_on_headers();
        }
        self
    }

    /// Reads its secrets as a publication does, and keeps nothing of them.
    ///
    /// # Errors
    /// Why one cannot be used; nothing of its content.
    pub fn secrets(&self) -> Result<(), Failure> {
        self.access.tokens.as_ref().map(Tokens::secret).transpose()?;
        self.seal().map(drop)
    }

    /// The least time between two requests of one cursor. A publication keeps it between its own requests; between
    /// turns the cursor's holder keeps it, by the cursor's last advance.
    #[must_use]
    pub fn min_interval(&self) -> Option<Duration> {
        self.min_interval
    }

    /// After how long a request is given up.
    pub(super) const fn timeout(&self) -> Duration {
        self.connections.timeout()
    }

    pub(super) fn fields(&self) -> &[Field] {
        self.requests.fields()
    }

    /// The body of the message's request; none when a template fails for it.
    pub(super) fn rendered<'a>(&self, message: &Message<'a>) -> Option<Cow<'a, [u8]>> {
        self.requests.body(message)
    }

    pub(super) fn relay(&self) -> &str {
        self.requests.relay()
    }

    /// A key that is in use is so for an attempt that was not answered; where there was none, the row is refused.
    fn weigh(&self, failure: Failure, key: &str, was_unanswered: bool) -> Failure {
        let failure = match failure.subject {
            Subject::KeyInUse if was_unanswered => self.in_use.weigh(failure, key),
            _ => failure,
        };
        if failure.class == Class::Poison || !was_unanswered && !failure.ambiguous {
            self.in_use.forget(key);
        }
        Failure { retry_after: failure.retry_after.filter(|_| failure.class == Class::Retry), ..failure }
    }

    async fn refused(&self, response: Response) -> Answer {
        let status = response.status().as_u16();
        let retry_after = answer::pause(response.headers());
        let body = answer::body(response).await;
        let verdict = self.preset.verdict.and_then(|verdict| verdict(status, &body));
        Answer::Status { status, retry_after, verdict }
    }

    /// Reads the secret again, so that a rotated one needs no restart.
    pub(super) fn begin(&self, mode: Mode) -> Result<HttpPublication<'_>, Failure> {
        Ok(HttpPublication {
            sink: self,
            mode,
            seal: self.seal()?,
            token: None,
            acknowledged: 0,
            in_flight: false,
            cut: false,
            last_request: None,
            stopped: None,
        })
    }
}

impl<'a> HttpPublication<'a> {
    pub(super) fn relay(&self) -> &'a str {
        self.sink.relay()
    }

    pub(super) async fn push(&mut self, batch: &Batch) -> Flow {
        for message in batch.messages() {
            if self.in_flight || self.cut || self.stopped.is_some() {
                return Flow::Stop;
            }
            match self.sink.token().await {
                Ok(token) => self.token = token,
                Err(failure) => {
                    self.stopped = Some(failure);
                    return Flow::Stop;
                }
            }
            // After a wait for a token, too: no request begins for which there is no time any more.
            if self.too_early() || self.mode.is_over() {
                self.cut = true;
                return Flow::Stop;
            }
            match self.request(&message) {
                Ok(request) => self.send(request).await,
                Err(failure) => self.stopped = Some(failure),
            }
        }
        if self.stopped.is_some() { Flow::Stop } else { Flow::Continue }
    }

    fn request(&self, message: &Message<'_>) -> Result<Request, Failure> {
        let HttpSink { requests, preset, .. } = self.sink;
        requests.body_length(message).map_or(Ok(()), |bytes| preset.fits(bytes))?;
        let token = self.token.as_ref().map(|token| &token.authorization);
        let mut request = requests.build(message, token.or(self.seal.authorization.as_ref()))?;
        preset.admit(&request, requests.target())?;
        self.seal.sign(&mut request, SystemTime::now())?;
        Ok(request)
    }

    fn too_early(&self) -> bool {
        match (self.last_request, self.sink.min_interval) {
            (Some(last), Some(interval)) => last.elapsed() < interval,
            (None, _) | (_, None) => false,
        }
    }

    async fn send(&mut self, mut request: Request) {
        if let Some(mark) = self.mode.mark {
            request.headers_mut().insert(marking(mark), HeaderValue::from_static("true"));
        }
        let key = request.headers().get(IDEMPOTENCY_KEY).cloned();
        let key = key.as_ref().and_then(|key| key.to_str().ok()).unwrap_or_default();
        self.last_request = Some(Instant::now());
        self.in_flight = true;
        // However this attempt ends: without a clear answer it may still be in progress at the receiver when the next one comes.
        let was_unanswered = self.sink.in_use.expect(key);
        let answer = match self.sink.connections.execute(request).await {
            Ok(response) if response.status().is_success() => {
                // Noted before anything else is awaited: the receiver has it, whatever becomes of this turn.
                self.acknowledged += 1;
                self.in_flight = false;
                self.token.iter().for_each(Token::is_accepted);
                self.sink.in_use.forget(key);
                // A failure here costs the connection, not the message.
                let _ = tokio::time::timeout(DRAIN, answer::body(response)).await;
                return;
            }
            Ok(response) => self.sink.refused(response).await,
            Err(answer) => answer,
        };
        self.in_flight = false;
        let failure = self.sink.failure(answer, self.token.as_ref());
        self.stopped = failure.map(|failure| self.sink.weigh(failure, key, was_unanswered));
    }

    pub(super) fn finish(self) -> Published {
        let stopped = if self.in_flight { Some(Failure::deadline()) } else { self.stopped };
        Published { acknowledged: self.acknowledged, stopped, suspects: 1 }
    }
}

#[cfg(test)]
mod garbled_tests;
#[cfg(test)]
mod tests;
