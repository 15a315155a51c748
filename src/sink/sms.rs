//! One SMS per message by a provider's API: a preset of [`super::http`].

use std::time::Duration;

use crate::secret::Secret;

/// `[relay.sink.sms]` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Whose API.
    pub provider: Provider,
    /// Where the API is, without a trailing slash; the provider's own by default.
    pub base_url: String,
    /// The account.
    pub account_sid: String,
    /// The account's secret.
    pub auth_token: Secret,
    /// The sender's number.
    pub from: String,
    /// The receiver's number, a template.
    pub to: String,
    /// The text, a template.
    pub text: String,
    /// The longest wait for an answer.
    pub timeout: Duration,
    /// The most messages a second, per cursor.
    pub rate_per_second: Option<f64>,
}

/// An SMS provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Twilio's Messages resource of 2010-04-01.
    Twilio,
}

impl Config {
    /// (being built)
    pub fn sink(&self, _relay: &str) -> Result<super::http::HttpSink, super::template::TemplateError> {
        Err(super::template::TemplateError)
    }
}
