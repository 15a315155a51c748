//! Questions to a service that a sink needs beside its receiver, and their answers.
//!
//! Promise: a question ends within its time-out, an answer takes bounded memory, and certificates, tokens and authorities are read again
//! when their files change. What an answer means is the caller's to say.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Request;
use reqwest::header::AUTHORIZATION;

use super::access::{self, Files};
use super::answer;
use super::client;
use super::connections::Connections;
use super::oauth2::Tokens;
use crate::sink::Failure;

/// The most bytes of an answer that are read.
const LONGEST: usize = 8 << 20;

/// See the module.
#[derive(Debug)]
pub(in crate::sink) struct Service {
    config: access::Config,
    timeout: Duration,
    tokens: Option<Tokens>,
    /// From the first question on.
    made: Mutex<Option<(Files, Arc<Connections>)>>,
}

/// An answer, whatever its status.
#[derive(Debug)]
pub(in crate::sink) struct Reply {
    pub(in crate::sink) status: u16,
    /// Its `Retry-After`, capped.
    pub(in crate::sink) retry_after: Option<Duration>,
    /// Its beginning, where it is longer than 8 MiB.
    pub(in crate::sink) body: Vec<u8>,
}

impl Service {
    /// `section` is where it is configured, for messages about tokens.
    pub(in crate::sink) fn new(config: access::Config, timeout: Duration, section: &'static str) -> Self {
        let tokens = config.oauth2.clone().map(|oauth2| Tokens::new(oauth2, timeout, section));
        Self { config, timeout, tokens, made: Mutex::default() }
    }

    /// Asks; `target` is the service for people. With `[oauth2]`, the question has a token.
    ///
    /// # Errors
    /// When there is no answer, or no token; and of a token that is refused (401) what follows from that.
    pub(in crate::sink) async fn ask(&self, mut request: Request, target: &str) -> Result<Reply, Failure> {
        let connections = self.connections()?;
        let token = match &self.tokens {
            Some(tokens) => Some((tokens, tokens.token().await?)),
            None => None,
        };
        if let Some((_, token)) = &token {
            request.headers_mut().insert(AUTHORIZATION, token.authorization.clone());
        }
        let response = connections.execute(request).await.map_err(|answer| {
            let unknown = || Failure::deadline();
            Failure { ambiguous: false, ..answer::classify(answer, target).unwrap_or_else(unknown) }
        })?;
        let status = response.status().as_u16();
        let retry_after = answer::pause(response.headers());
        let body = answer::body_up_to(response, LONGEST);
        let body = tokio::time::timeout(self.timeout, body).await.unwrap_or_default();
        if let Some((tokens, token)) = &token {
            if status == 401 {
                let refused = answer::Answer::Status { status, retry_after: None, verdict: None };
                return Err(match answer::classify(refused, target) {
                    Some(failure) => tokens.refused(token, failure),
                    None => Failure::deadline(),
                });
            }
            token.is_accepted();
        }
        Ok(Reply { status, retry_after, body })
    }

    /// Those that were made, unless a file has changed since.
    fn connections(&self) -> Result<Arc<Connections>, Failure> {
        let files = self.config.read().map_err(access::unusable)?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, connections)) = made.as_ref().filter(|(held, _)| *held == files) {
            return Ok(Arc::clone(connections));
        }
        let client = client::client(self.timeout, None, &self.config).map_err(access::unusable)?;
        let connections = Arc::new(Connections::new(client, self.timeout));
        *made = Some((files, Arc::clone(&connections)));
        Ok(connections)
    }
}
