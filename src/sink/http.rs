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
use std::time::Duration;

use reqwest::Response;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};

use super::refusal_counts::RefusalCounts;
use super::{Class, Failure, InvalidSetting, Subject};
use crate::message::{Field, Message};
use crate::notation::hex;

pub mod access;
pub(crate) mod address;
pub(super) mod answer;
pub(super) mod call;
mod client;
mod connections;
pub(super) mod gate;
pub mod oauth2;
pub mod once;
pub(super) mod preset;
mod publication;
mod request;
#[cfg(feature = "schema-registry")]
pub(super) mod service;
mod signature;
use access::Access;
use answer::Answer;
pub use answer::known_errors;
use connections::Connections;
use oauth2::Tokens;
use preset::Preset;
pub use publication::HttpPublication;
use request::Requests;

/// So many times a message must be refused because its idempotency key is in use (409), after an attempt that was not answered: about 40 s
/// of a stream's pauses, in which a receiver ends what it is at.
const TIMES_IN_USE: u32 = 12;

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
        let digest = hex(&Sha256::digest(query)[..8]);
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
    in_use: RefusalCounts,
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
        let (once, in_use) = (config.once.clone(), RefusalCounts::new(TIMES_IN_USE));
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
        self.access.tokens.as_ref().map(Tokens::usable).transpose()?;
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

    /// What a response means that is no success; its body is waited for until `end` at the latest.
    async fn refused(&self, response: Response, end: Instant) -> Answer {
        let status = response.status().as_u16();
        let retry_after = answer::pause(response.headers());
        let body = timeout_at(end, answer::body(response)).await.unwrap_or_default();
        let verdict = self.preset.verdict.and_then(|verdict| verdict(status, &body));
        Answer::Status { status, retry_after, verdict }
    }
}

#[cfg(test)]
mod garbled_tests;
#[cfg(test)]
mod tests;
