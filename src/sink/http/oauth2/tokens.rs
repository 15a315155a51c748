//! Which token is held, and when the next one is asked for.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::refused::Refused;
use super::token::Token;
use crate::sink::{Class, Failure, Subject};

/// Before a source that was away is asked again, while its last token holds.
const PAUSE: Duration = Duration::from_secs(5);

/// Where tokens come from.
#[async_trait]
pub(in crate::sink) trait TokenSource: fmt::Debug + Send + Sync {
    /// Who asks for them.
    fn name(&self) -> &str;

    /// Another token.
    ///
    /// # Errors
    /// Why there is none.
    async fn ask(&self) -> Result<Token, Failure>;

    /// Whether what is needed to ask can be read.
    ///
    /// # Errors
    /// Why it cannot.
    fn usable(&self) -> Result<(), Failure> {
        Ok(())
    }

    /// A receiver has refused a token of it: what it was made from may be to blame.
    fn refused(&self) {}

    /// The failure that there is no token now.
    fn unavailable(&self, message: &str) -> Failure;
}

/// The tokens of one sink or cluster.
#[derive(Debug)]
pub(in crate::sink) struct Tokens {
    source: Box<dyn TokenSource>,
    held: Mutex<Option<Token>>,
    refused: Refused,
    /// The task that asks has it; with the last question that failed, and when.
    asking: tokio::sync::Mutex<Option<(Instant, Failure)>>,
}

impl Tokens {
    pub(in crate::sink) fn of(source: impl TokenSource + 'static) -> Self {
        Self {
            source: Box::new(source),
            held: Mutex::default(),
            refused: Refused::default(),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Who asks for them.
    pub(in crate::sink) fn name(&self) -> &str {
        self.source.name()
    }

    /// See [`TokenSource::usable`].
    ///
    /// # Errors
    /// Why no token can be asked for.
    pub(in crate::sink) fn usable(&self) -> Result<(), Failure> {
        self.source.usable()
    }

    /// The failure that there is no token now.
    pub(in crate::sink) fn unavailable(&self, message: &str) -> Failure {
        self.source.unavailable(message)
    }

    /// The token that is held, whether it lasts or not. Does not wait.
    pub(in crate::sink) fn held_now(&self) -> Option<Token> {
        self.held().clone()
    }

    fn held(&self) -> MutexGuard<'_, Option<Token>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token that holds, as far as its source has said.
    ///
    /// # Errors
    /// Why there is none.
    pub(in crate::sink) async fn token(&self) -> Result<Token, Failure> {
        let held = self.held().clone();
        match held {
            Some(token) if !token.is_old() => Ok(token),
            Some(token) if token.holds() => Ok(self.renewed(token).await),
            _ => self.first().await,
        }
    }

    /// The token after one that still holds: who asks for it is one, and the others do not wait for that.
    async fn renewed(&self, token: Token) -> Token {
        let Ok(mut asking) = self.asking.try_lock() else { return token };
        if let Some(held) = self.held().as_mut() {
            held.renewed_at = Some(Instant::now() + PAUSE);
        }
        match self.source.ask().await {
            Ok(next) => {
                *asking = None;
                self.held().insert(next).clone()
            }
            Err(failure) => {
                let Failure { code, message, hint, .. } = &failure;
                tracing::warn!(code, error = message, hint, "token not renewed");
                *asking = Some((Instant::now(), failure));
                token
            }
        }
    }

    /// The first token, or that after one that has ended.
    async fn first(&self) -> Result<Token, Failure> {
        let begun = Instant::now();
        let mut asking = self.asking.lock().await;
        let held = self.held().clone();
        if let Some(token) = held.filter(Token::holds) {
            return Ok(token);
        }
        // A question that failed while it was waited for is answered for all who waited.
        if let Some((_, failure)) = asking.as_ref().filter(|(at, _)| *at >= begun) {
            return Err(failure.clone());
        }
        match self.source.ask().await {
            Ok(token) => {
                *asking = None;
                Ok(self.held().insert(token).clone())
            }
            Err(failure) => {
                *asking = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    /// Why there is no token that lasts. Does not wait.
    pub(in crate::sink) fn missing(&self) -> Failure {
        let said = self.asking.try_lock().ok().and_then(|asking| asking.as_ref().map(|(_, failure)| failure.clone()));
        said.unwrap_or_else(|| self.unavailable("the last one has ended, and the next one has not come yet"))
    }

    /// What follows when a receiver has refused this token by `failure`: the next request has another one.
    pub(in crate::sink) fn refused(&self, token: &Token, failure: Failure) -> Failure {
        self.held().take_if(|held| held.authorization == token.authorization);
        self.source.refused();
        if !token.was_accepted() || self.refused.again(&token.authorization, Instant::now()) {
            return failure;
        }
        let message = format!("{} to a token that it has accepted before", failure.message);
        let hint = "The next attempt has a new token; if it persists, see at the issuer why tokens end early";
        Failure::of(Class::Retry, "token_ended", message, hint).about(Subject::Elsewhere)
    }
}
