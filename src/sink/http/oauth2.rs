//! Tokens by OAuth 2.0 client credentials (RFC 6749, section 4.4), sent as Bearer tokens (RFC 6750).
//!
//! One token serves all requests of a sink, or all clients of a Kafka cluster. It is renewed after three quarters of its life; while the
//! issuer is away, it is used until it ends. A receiver that refuses a token which it has accepted before (revoked, say) gets a new
//! one; what refuses a new one halts the relay, as any 401 does. So does what refuses the next one within a minute, although others were
//! accepted with it: then it is the row that is refused, and not the token.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, Request, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use tokio::time::Instant;

mod refused;
mod token;
mod tokens;

use super::answer;
use super::call::{Reply, call};
use crate::secret::Secret;
use crate::sink::{Class, Failure};
pub(in crate::sink) use token::Token;
pub(in crate::sink) use tokens::{TokenSource, Tokens};

/// `[relay.sink.http.oauth2]` or `[kafka.oauth2]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where tokens are asked for.
    pub token_url: String,
    /// Who asks.
    pub client_id: String,
    /// The file of its secret.
    pub client_secret_file: PathBuf,
    /// What the token shall allow.
    pub scope: Option<String>,
    /// Whom it is for; some issuers want to know.
    pub audience: Option<String>,
    /// The authorities that verify the issuer's certificate, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Where id and secret stand in the question.
    pub client_auth: ClientAuth,
}

impl Config {
    /// Files that are read again at each use.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        self.ca_file.iter().chain([&self.client_secret_file]).cloned().collect()
    }
}

/// Where a client's id and secret stand (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// In the header Authorization.
    #[default]
    Basic,
    /// In the body.
    Post,
}

/// Who asks an issuer.
#[derive(Debug)]
struct Client {
    /// Where it is configured.
    section: &'static str,
    config: Config,
    /// For an answer of the issuer.
    timeout: Duration,
}

impl Tokens {
    /// Tokens of the issuer that `section` configures, whose answer may take `timeout`.
    pub(in crate::sink) fn new(config: Config, timeout: Duration, section: &'static str) -> Self {
        Self::of(Client { section, config, timeout })
    }
}

#[async_trait]
impl TokenSource for Client {
    fn name(&self) -> &str {
        &self.config.client_id
    }

    async fn ask(&self) -> Result<Token, Failure> {
        let request = self.question()?;
        let asked_at = Instant::now();
        let issuer = issuer(&self.config.token_url);
        let reply = call(request, self.timeout, self.config.ca_file.clone(), &issuer).await;
        let Reply { status, headers, body } = reply.map_err(|why| self.unavailable(&why))?;
        let (status, pause) = (status.as_u16(), answer::pause(&headers));
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        match status {
            200..=299 => token::of_answer(&answer, asked_at).ok_or_else(|| {
                self.unavailable(&format!("{issuer} answered {status} without an access_token of the type Bearer"))
            }),
            300..=401 => {
                // One of the words of RFC 6749, section 5.2. Nothing else is repeated: it could quote the secret.
                let is_word =
                    |word: &&str| word.len() <= 40 && word.bytes().all(|c| c.is_ascii_lowercase() || c == b'_');
                let word = answer["error"].as_str().filter(is_word).map(|word| format!(" ({word})"));
                let message = format!("{issuer} gives no token: it answered {status}{}", word.unwrap_or_default());
                let hint = format!(
                    "Correct token_url, client_id, scope, audience and client_auth of {}, or the secret in client_secret_file, \
                     then `outbox-relay cursor resume NAME`",
                    self.section
                );
                Err(Failure::of(Class::Fatal, "token_refused", message, hint))
            }
            402..=499 if !matches!(status, 408 | 429) => {
                let failure = self.unavailable(&format!("{issuer} answered {status}"));
                let hint = format!(
                    "Check token_url of {}, and what its issuer, or a proxy before it, says of this",
                    self.section
                );
                Err(Failure { hint, ..failure })
            }
            _ => Err(Failure { retry_after: pause, ..self.unavailable(&format!("{issuer} answered {status}")) }),
        }
    }

    fn usable(&self) -> Result<(), Failure> {
        self.secret().map(drop)
    }

    fn unavailable(&self, message: &str) -> Failure {
        let message = format!("There is no token for the receiver: {message}");
        let hint = format!("Check that the issuer of {} token_url is up and can be reached from here", self.section);
        Failure::of(Class::Retry, "token_unavailable", message, hint)
    }
}

impl Client {
    fn question(&self) -> Result<Request, Failure> {
        let config = &self.config;
        let secret = self.secret()?;
        let secret = secret.expose_secret();
        let wrong = |what: &str| self.unreadable(what);
        let url = Url::parse(&config.token_url).map_err(|_| wrong("is beside a token_url that is none"))?;
        let mut request = Request::new(Method::POST, url);
        let mut fields = vec![("grant_type", "client_credentials")];
        fields.extend(config.scope.iter().map(|scope| ("scope", scope.as_str())));
        fields.extend(config.audience.iter().map(|audience| ("audience", audience.as_str())));
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        match config.client_auth {
            ClientAuth::Basic => {
                let pair = STANDARD.encode(format!("{}:{}", encoded(&config.client_id), encoded(secret)));
                headers.insert(
                    AUTHORIZATION,
                    token::sensitive(&format!("Basic {pair}")).ok_or_else(|| wrong("is too long"))?,
                );
            }
            ClientAuth::Post => fields.extend([("client_id", config.client_id.as_str()), ("client_secret", secret)]),
        }
        let form: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        *request.body_mut() = Some(form.join("&").into());
        Ok(request)
    }

    /// The client's secret now.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn secret(&self) -> Result<SecretString, Failure> {
        let secret = Secret::File(self.config.client_secret_file.clone()).read();
        let secret = secret.map_err(|error| self.unreadable(&format!("cannot be read: {error}")))?;
        if secret.expose_secret().is_empty() {
            return Err(self.unreadable("is empty"));
        }
        Ok(secret)
    }

    fn unreadable(&self, what: &str) -> Failure {
        let message =
            format!("{} ({} client_secret_file) {what}", self.config.client_secret_file.display(), self.section);
        let hint = "Make the file readable for the relay's user, with the secret as its only content, then `outbox-relay cursor resume NAME`";
        Failure::of(Class::Fatal, "secret_unreadable", message, hint)
    }
}

/// Scheme, host and port.
fn issuer(url: &str) -> String {
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}

/// All but the unreserved characters of RFC 3986: issuers that forget to decode id and secret understand most of them all the same.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// As a form has it, and id and secret within Basic.
fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}
