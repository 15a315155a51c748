//! Whether the receiver of a sink of one's own takes messages from here.

use std::time::Duration;

use crate::relay::Config;
use crate::sink::Class;
use crate::sink::custom::{self, Adapter};
use crate::source::finding::{Finding, Level};

const PATIENCE: Duration = Duration::from_secs(5);

/// What the sink's own check finds; nothing is sent.
pub(super) async fn receiver(relay: &Config, config: &custom::Config) -> Finding {
    let (kind, target) = (config.kind, &config.description.target);
    match Adapter::new(config, &relay.relay).check(PATIENCE).await {
        Ok(()) => Finding::new(Level::Ok, "custom", format!("the check of sink {kind} has no objection: {target}")),
        Err(failure) => {
            let code = if failure.class == Class::Retry { "custom_unreachable" } else { "custom_refused" };
            let message = format!("{target}: {}", failure.message);
            Finding::new(Level::Error, code, message).setting(failure.hint)
        }
    }
}
