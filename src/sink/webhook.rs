//! Webhooks: signed requests to receivers whose address others may have chosen: a preset of [`super::http`].
//!
//! Each request is signed by Standard Webhooks 1.0 with every active secret, for the moment of the attempt. It goes to
//! public addresses only, and to ranges that the configuration names. A receiver that answers 410 wants no more: the
//! relay halts.

use std::path::PathBuf;
use std::sync::Arc;

use ipnet::IpNet;
use reqwest::dns::Resolve;

use super::http::address;
use super::http::answer::Verdict;
use super::http::gate::{Gate, SystemNames};
use super::http::preset::Preset;
use super::http::{self, HttpSink};
use super::{Class, InvalidSetting};

/// `[relay.sink.webhook]` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The request, before it is signed.
    pub request: http::Config,
    /// The files of the active secrets: one, or two while they are rotated. Read at each use.
    pub secret_files: Vec<PathBuf>,
    /// The most bytes of a body.
    pub body_limit: usize,
    /// Ranges that may be connected to although they are not public.
    pub allow: Vec<IpNet>,
}

/// Whether the range is one that no allow list opens: where a cloud gives out credentials.
#[must_use]
pub fn is_never_open(range: &IpNet) -> bool {
    range.prefix_len() == range.max_prefix_len() && address::is_metadata(range.addr())
}

/// The HTTP sink that sends these messages.
///
/// # Errors
/// All settings that cannot work, together.
pub fn sink(config: &Config, relay: &str) -> Result<HttpSink, Vec<InvalidSetting>> {
    sink_with(config, relay, Arc::new(SystemNames))
}

fn sink_with(config: &Config, relay: &str, names: Arc<dyn Resolve>) -> Result<HttpSink, Vec<InvalidSetting>> {
    let preset = Preset {
        credentials: None,
        verdict: Some(verdict),
        signed_by: config.secret_files.clone(),
        gate: Some(Gate::new(&config.allow, names)),
        body_limit: Some(config.body_limit),
    };
    HttpSink::with_preset(&config.request, relay, preset)
}

fn verdict(status: u16, _: &[u8]) -> Option<Verdict> {
    (status == 410).then(|| Verdict {
        class: Class::Fatal,
        code: "webhook_gone".to_owned(),
        message: "410, it wants no more messages",
        hint: "Ask the receiver; when it wants them again, `outbox-relay cursor resume NAME`; when not, take the relay out",
    })
}

#[cfg(test)]
mod tests;
