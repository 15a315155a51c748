//! The requests of one turn.

use std::time::{Duration, SystemTime};

use reqwest::Request;
use reqwest::header::HeaderValue;
use tokio::time::Instant;

use super::oauth2::Token;
use super::preset::Seal;
use super::request::{IDEMPOTENCY_KEY, marking};
use super::{HttpSink, answer};
use crate::batch::Batch;
use crate::message::Message;
use crate::sink::{Failure, Flow, Mode, Published};

/// How long the rest of a positive answer may take: it is read only so that the connection can be used again.
const DRAIN: Duration = Duration::from_millis(250);

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
    /// Reads the secret again, so that a rotated one needs no restart.
    pub(in crate::sink) fn begin(&self, mode: Mode) -> Result<HttpPublication<'_>, Failure> {
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
    pub(in crate::sink) fn relay(&self) -> &'a str {
        self.sink.relay()
    }

    pub(in crate::sink) async fn push(&mut self, batch: &Batch) -> Flow {
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
        let begun = Instant::now();
        self.last_request = Some(begun);
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
            Ok(response) => self.sink.refused(response, self.sink.connections.end(begun)).await,
            Err(answer) => answer,
        };
        self.in_flight = false;
        let failure = self.sink.failure(answer, self.token.as_ref());
        self.stopped = failure.map(|failure| self.sink.weigh(failure, key, was_unanswered));
    }

    pub(in crate::sink) fn finish(self) -> Published {
        let stopped = if self.in_flight { Some(Failure::deadline()) } else { self.stopped };
        Published { acknowledged: self.acknowledged, stopped, suspects: 1 }
    }
}
