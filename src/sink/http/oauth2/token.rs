//! A token of an issuer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use reqwest::header::HeaderValue;
use serde_json::Value;
use tokio::time::Instant;

/// What the header begins with.
const BEARER: &str = "Bearer ";
/// The share of its life after which it is renewed: before librdkafka asks for the next one, after four fifths.
const RENEWED: f64 = 0.75;
/// No issuer gives tokens for longer.
const LONGEST: f64 = 10.0 * 365.0 * 86_400.0;

/// A token.
#[derive(Clone, Debug)]
pub(in crate::sink) struct Token {
    /// The whole header.
    pub(in crate::sink::http) authorization: HeaderValue,
    /// None: it is used until it is refused.
    pub(super) renewed_at: Option<Instant>,
    ends_at: Option<Instant>,
    /// A receiver has accepted it.
    accepted: Arc<AtomicBool>,
}

fn holds(until: Option<Instant>) -> bool {
    until.is_none_or(|at| Instant::now() < at)
}

impl Token {
    pub(in crate::sink) fn is_accepted(&self) {
        self.accepted.store(true, Relaxed);
    }

    /// One that was asked for then and lasts so long, or until it is refused. None of a text that no header can have.
    pub(in crate::sink) fn lasting(text: &str, asked_at: Instant, lasts: Option<Duration>) -> Option<Self> {
        let authorization = sensitive(&format!("{BEARER}{text}"))?;
        let after = |share: f64| lasts.map(|lasts| asked_at + lasts.mul_f64(share));
        Some(Self { authorization, renewed_at: after(RENEWED), ends_at: after(1.0), accepted: Arc::default() })
    }

    /// Whether a receiver has accepted it.
    pub(super) fn was_accepted(&self) -> bool {
        self.accepted.load(Relaxed)
    }

    /// How long it lasts, if the issuer has said so.
    pub(in crate::sink) fn lasts(&self) -> Option<Duration> {
        self.ends_at.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Whether it lasts, as far as its issuer has said.
    pub(in crate::sink) fn holds(&self) -> bool {
        holds(self.ends_at)
    }

    /// Whether another one should be asked for.
    pub(in crate::sink) fn is_old(&self) -> bool {
        !holds(self.renewed_at)
    }

    /// How long until that.
    pub(in crate::sink) fn until_old(&self) -> Option<Duration> {
        self.renewed_at.map(|at| at.saturating_duration_since(Instant::now()))
    }

    /// The token alone.
    pub(in crate::sink) fn text(&self) -> &str {
        let whole = self.authorization.to_str().unwrap_or_default();
        whole.strip_prefix(BEARER).unwrap_or_default()
    }
}

/// The token of an issuer's answer.
pub(super) fn of_answer(answer: &Value, asked_at: Instant) -> Option<Token> {
    let is_bearer = answer["token_type"].as_str().is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let text = answer["access_token"].as_str().filter(|text| is_bearer && !text.is_empty())?;
    // Some issuers write the number as a text.
    let number = |value: &Value| value.as_f64().or_else(|| value.as_str()?.parse().ok());
    let lasts = number(&answer["expires_in"]).filter(|seconds| (0.0..=LONGEST).contains(seconds));
    Token::lasting(text, asked_at, lasts.map(Duration::from_secs_f64))
}

/// A header whose value is never printed; none of what no header can have.
pub(super) fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
