//! Whether a relay's mail server takes mail from here.

use std::time::Duration;

use crate::relay::Config;
use crate::sink::Class;
use crate::sink::email::{self, EmailSink};
use crate::source::finding::{Finding, Level};

const PATIENCE: Duration = Duration::from_secs(5);

/// Connects and signs in; sends nothing.
pub(super) async fn server(relay: &Config, config: &email::Config) -> Option<Finding> {
    // What is wrong with the settings is told where the columns are judged.
    let sink = EmailSink::new(config, &relay.relay).ok()?;
    let server = config.server.name();
    Some(match sink.probe(PATIENCE).await {
        Ok(limit) => {
            let size = limit.map(|limit| format!(" and takes mails of up to {limit} bytes")).unwrap_or_default();
            Finding::new(Level::Ok, "email", format!("{server} answers{size}; no mail was sent"))
        }
        Err(failure) => {
            let code = if failure.class == Class::Fatal { "email_refused" } else { "email_unreachable" };
            Finding::new(Level::Error, code, failure.message).setting(failure.hint)
        }
    })
}
