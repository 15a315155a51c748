//! Requests that are sent once: rendered and pinned, sent as they were pinned, however often; and asked about.
//!
//! Pinned is what a row makes of the templates: path and query, headers, body. What no row has a part in (scheme and host,
//! headers and a URL without columns, which may hold a token; credentials; signatures) is that of the attempt.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Request, Response};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::HttpSink;
use super::answer::{self, Answer};
use super::oauth2::Token;
use super::preset::Seal;
use crate::message::Message;
use crate::sink::{Class, Failure, Receipt, Subject};

/// How long the body of a positive answer may take: the message is accepted, whatever becomes of it.
const REST: Duration = Duration::from_secs(1);

/// What `[relay.sink.http]` says of a receiver of requests that are sent once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// For how long the receiver remembers an idempotency key.
    pub key_memory: Option<Duration>,
    /// Where the receiver says whether it has a request: a template of a URL at the same host, answered by 2xx or 404.
    pub ask: Option<String>,
    /// Where the receiver's id of the message stands in the JSON of its answer: a pointer of RFC 6901.
    pub provider_id: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct Pinned {
    method: String,
    target: Option<String>,
    headers: Vec<(String, String)>,
    body: String,
}

impl HttpSink {
    pub(in crate::sink) fn pin(&self, message: &Message<'_>) -> Result<Vec<u8>, Failure> {
        self.requests.body_length(message).map_or(Ok(()), |bytes| self.preset.fits(bytes))?;
        let request = self.requests.build(message, None)?;
        self.preset.admit(&request, self.requests.target())?;
        let (url, text) = (request.url(), |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
        let headers = request.headers().iter().filter(|(name, _)| !self.requests.is_constant(name));
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let pinned = Pinned {
            method: request.method().to_string(),
            target: self.requests.constant_url().is_none().then_some(target),
            headers: headers.map(|(name, value)| (name.to_string(), text(value))).collect(),
            body: STANDARD.encode(body),
        };
        Ok(serde_json::to_vec(&pinned).expect("strings make JSON"))
    }

    /// Sends what was pinned; `handed_over` is set when the client is given the request.
    pub(in crate::sink) async fn deliver(
        &self,
        pinned: &[u8],
        patience: Duration,
        handed_over: &mut bool,
    ) -> Result<Receipt, Failure> {
        let until = Instant::now() + patience;
        let mut request = self.restore(pinned)?;
        let seal = self.seal()?;
        let token = self.authorized(&mut request, &seal, until).await?;
        self.preset.admit(&request, self.requests.target())?;
        seal.sign(&mut request, SystemTime::now())?;
        *handed_over = true;
        let response = self.answered(request, token.as_ref(), until).await?;
        Ok(self.receipt(response).await)
    }

    /// Whether the receiver has the message, and what it says of it.
    pub(in crate::sink) async fn ask(
        &self,
        message: &Message<'_>,
        patience: Duration,
    ) -> Result<Option<Receipt>, Failure> {
        let Some(url) = self.requests.question(message)? else {
            return Err(Failure::of(
                Class::Fatal,
                "cannot_ask",
                "the sink has no way to ask",
                "Write ask = \"https://…\"",
            ));
        };
        let until = Instant::now() + patience;
        let mut request = Request::new(Method::GET, url);
        let seal = self.seal()?;
        self.requests.add_configured(request.headers_mut(), message)?;
        let token = self.authorized(&mut request, &seal, until).await?;
        self.preset.admit(&request, self.requests.target())?;
        match self.answered(request, token.as_ref(), until).await {
            Ok(response) => Ok(Some(self.receipt(response).await)),
            Err(failure) if failure.subject == Subject::Missing => Ok(None),
            // A question changes nothing at the receiver; whether it has the message is as unknown as before.
            Err(mut failure) => {
                failure.message = format!("asking whether it has the message: {}", failure.message);
                if failure.class == Class::Poison {
                    failure.class = Class::Fatal;
                    failure.hint = "Fix `ask`: the receiver refuses the question".to_owned();
                }
                Err(failure)
            }
        }
    }

    /// Adds what the relay proves by who it is; its token, where it has one. A wait for it ends when the claim's time does.
    async fn authorized(&self, request: &mut Request, seal: &Seal, until: Instant) -> Result<Option<Token>, Failure> {
        let token = match &self.access.tokens {
            Some(tokens) => {
                let late = |_| Err(tokens.unavailable("its issuer did not answer in time"));
                Some(tokio::time::timeout_at(until, tokens.token()).await.unwrap_or_else(late)?)
            }
            None => None,
        };
        let authorization = token.as_ref().map(|token| &token.authorization).or(seal.authorization.as_ref());
        if let Some(authorization) = authorization {
            request.headers_mut().insert(reqwest::header::AUTHORIZATION, authorization.clone());
        }
        Ok(token)
    }

    async fn answered(&self, request: Request, token: Option<&Token>, until: Instant) -> Result<Response, Failure> {
        let end = until.min(self.connections.end(Instant::now()));
        let answer = match tokio::time::timeout_at(until, self.connections.execute(request)).await {
            Ok(Ok(response)) if response.status().is_success() => {
                token.iter().for_each(|token| token.is_accepted());
                return Ok(response);
            }
            Ok(Ok(response)) => self.refused(response, end).await,
            Ok(Err(answer)) => answer,
            Err(_) => Answer::TimedOut,
        };
        let deadline = Failure::deadline;
        Err(self.failure(answer, token).unwrap_or_else(deadline))
    }

    async fn receipt(&self, response: Response) -> Receipt {
        let status = response.status();
        let body = tokio::time::timeout(REST, answer::body(response)).await.unwrap_or_default();
        let id = self.once.provider_id.as_deref().and_then(|pointer| {
            let document: serde_json::Value = serde_json::from_slice(&body).ok()?;
            match document.pointer(pointer)? {
                serde_json::Value::String(text) => Some(text.clone()),
                serde_json::Value::Number(number) => Some(number.to_string()),
                _ => None,
            }
        });
        Receipt::new(id.as_deref(), &format!("HTTP {}", status.as_u16()))
    }

    fn restore(&self, pinned: &[u8]) -> Result<Request, Failure> {
        let broken = || {
            let hint = "outbox.request.body was changed; `outbox-relay request redrive` renders it again";
            Failure::of(Class::Poison, "pinned_body", "what was pinned cannot be read", hint)
        };
        let pinned: Pinned = serde_json::from_slice(pinned).map_err(|_| broken())?;
        let method = Method::from_bytes(pinned.method.as_bytes()).map_err(|_| broken())?;
        let url = match &pinned.target {
            Some(target) => self.requests.at(target),
            None => self.requests.constant_url(),
        };
        let mut request = Request::new(method, url.ok_or_else(broken)?);
        self.requests.add_constants(request.headers_mut())?;
        for (name, value) in &pinned.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| broken())?;
            request.headers_mut().insert(name, HeaderValue::from_str(value).map_err(|_| broken())?);
        }
        *request.body_mut() = Some(STANDARD.decode(&pinned.body).map_err(|_| broken())?.into());
        Ok(request)
    }
}
