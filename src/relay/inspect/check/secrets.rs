//! Whether the secrets that a relay sends with can be used.

use crate::relay::Config;
use crate::sink::{self, sms, webhook};
use crate::source::finding::{Finding, Level};

/// Reads them as each publication does; what a mail server says of its password, its own check tells.
pub(super) fn usable(relay: &Config) -> Option<Finding> {
    let sink = match &relay.sink {
        sink::Config::Sms(config) => sms::sink(config, &relay.relay),
        sink::Config::Webhook(config) => webhook::sink(config, &relay.relay),
        _ => return None,
    };
    // What is wrong with the settings is told where the columns are judged.
    let failure = sink.ok()?.secrets().err()?;
    let fix = "Make the file readable for the relay's user, with the secret as its only content.";
    Some(Finding::new(Level::Error, "secret_unreadable", failure.message).setting(fix))
}
