//! One SMS per message by a provider's API: a preset of [`super::http`].
//!
//! Twilio documents no idempotency key, so an outcome that is unknown (a time-out, a 5xx) may send the text twice; such
//! outcomes are reported as ambiguous. Its answers quote the receiver's number, therefore only their code is used.

use std::collections::BTreeMap;
use std::time::Duration;

use percent_encoding::utf8_percent_encode;
use serde::Deserialize;

use super::http::answer::Verdict;
use super::http::preset::Preset;
use super::http::{self, HttpSink};
use super::template::UNRESERVED;
use super::{Class, InvalidSetting, KnownError, Phase};
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
    /// For how long a request of unknown outcome is sent again; the provider knows no keys.
    pub key_memory: Option<Duration>,
}

/// An SMS provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provider {
    /// Twilio's Messages resource of 2010-04-01.
    Twilio,
}

/// The HTTP sink that sends these messages.
///
/// # Errors
/// All settings that cannot work, together.
pub fn sink(config: &Config, relay: &str) -> Result<HttpSink, Vec<InvalidSetting>> {
    match config.provider {
        Provider::Twilio => twilio(config, relay),
    }
}

fn twilio(config: &Config, relay: &str) -> Result<HttpSink, Vec<InvalidSetting>> {
    let base_url = config.base_url.trim_end_matches('/');
    let account = utf8_percent_encode(&config.account_sid, UNRESERVED);
    let form = [("To", &config.to), ("From", &config.from), ("Body", &config.text)];
    let request = http::Config {
        method: "POST".to_owned(),
        url: format!("{base_url}/2010-04-01/Accounts/{account}/Messages.json"),
        headers: BTreeMap::new(),
        body: http::Body::Form(form.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()),
        timeout: config.timeout,
        rate_per_second: config.rate_per_second,
        once: http::once::Config { provider_id: Some("/sid".to_owned()), ..http::once::Config::default() },
        access: http::access::Config::default(),
    };
    let credentials = Some((config.account_sid.clone(), config.auth_token.clone()));
    let preset = Preset { credentials, verdict: Some(twilio_verdict), ..Preset::default() };
    HttpSink::with_preset(&request, relay, preset).map_err(|problems| {
        let own_key = |problem: InvalidSetting| {
            let key = match problem.key.as_str() {
                "url" => "base_url",
                "form.To" => "to",
                "form.From" => "from",
                "form.Body" => "text",
                other => other,
            };
            InvalidSetting { key: key.to_owned(), ..problem }
        };
        problems.into_iter().map(own_key).collect()
    })
}

#[derive(Deserialize)]
struct TwilioError {
    code: u32,
}

/// What Twilio's dictionary of errors says of the codes that creating a message can answer with. A code that is not here
/// has the meaning of its status.
fn twilio_verdict(status: u16, body: &[u8]) -> Option<Verdict> {
    use Class::{Fatal, Poison, Retry};
    let code = serde_json::from_slice::<TwilioError>(body).map(|error| error.code).ok();
    let (class, message, hint) = match code {
        Some(20429 | 63038) => (Retry, "too many requests", "Set rate_per_second, or ask Twilio for a higher limit"),
        Some(21611) => (Retry, "the sender's queue is full", "Set rate_per_second to what the sender may send"),
        Some(20003 | 20005 | 20006 | 10001) => {
            (Fatal, "the account may not send", "See account_sid, auth_token_file and the account's state")
        }
        Some(20404) => (Fatal, "the account is unknown", "Fix account_sid or base_url"),
        Some(21212 | 21601 | 21603 | 21606 | 21659 | 21660 | 21661) => {
            (Fatal, "the sender is not accepted", "Set from to a number of this account that can send SMS")
        }
        Some(21211 | 21217 | 21265 | 21266 | 21604 | 21614 | 21635) => {
            (Poison, "the receiver's number is not accepted", "Fix the number in the row: E.164, able to get SMS")
        }
        Some(21608) => {
            (Poison, "the receiver's number is not verified", "A trial account sends to verified numbers only")
        }
        Some(21408) => {
            (Poison, "the receiver's region is not enabled", "Enable the region in the account, if it is meant")
        }
        Some(21612) => (
            Poison,
            "this sender cannot reach this receiver",
            "See which senders the receiver's country and network allow",
        ),
        Some(21610) => (Poison, "the receiver has opted out", "Skip the message: it must not be sent"),
        Some(21602 | 21617 | 21619) => (Poison, "the text is empty or too long", "Fix the text: 1 to 1,600 characters"),
        // The only thing that the address names is the account.
        None | Some(_) if status == 404 => (Fatal, "the account is unknown", "Fix account_sid or base_url"),
        None | Some(_) => return None,
    };
    let code = code.map_or_else(|| format!("http_{status}"), |code| format!("twilio_{code}"));
    Some(Verdict { class, code, message, hint })
}

/// What Twilio's own codes mean, for people; every other code has the meaning of its status.
#[must_use]
pub fn known_errors() -> Vec<KnownError> {
    let mut known: Vec<KnownError> = Vec::new();
    for code in 0..=99_999 {
        let Some(verdict) = twilio_verdict(400, format!("{{\"code\":{code}}}").as_bytes()) else { continue };
        let code = format!("`{}`", verdict.code);
        match known.iter_mut().find(|line| line.hint == verdict.hint && line.class == verdict.class) {
            Some(line) => line.codes = format!("{}, {code}", line.codes),
            None => known.push(KnownError {
                codes: code,
                class: verdict.class,
                phase: Phase::Answered,
                hint: verdict.hint.to_owned(),
            }),
        }
    }
    known
}

#[cfg(test)]
mod tests;
