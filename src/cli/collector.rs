//! What `check` says of the collector of spans.

use std::time::Duration;

use super::deadline::within;
use crate::source::finding::{Finding, Level};
use crate::telemetry::traces::Config;

/// Asks it, in what is `left` of the command's time. Without it rows are relayed all the same, so it is never an error.
pub(super) async fn findings(config: Option<&Config>, left: Option<Duration>) -> Vec<Finding> {
    let Some(config) = config else { return Vec::new() };
    let asked = within(left, async { Ok(config.probe().await) }).await;
    let finding = match asked {
        Ok(Ok(())) => Finding::new(Level::Ok, "collector", format!("{} takes spans", config.otlp)),
        Ok(Err(why)) => {
            let message = format!("{} takes no spans: {why}", config.otlp);
            let fix = "Correct [telemetry] otlp, headers_file, ca_file, cert_file or key_file, or start the collector; rows are \
                       relayed without it.";
            Finding::new(Level::Warn, "collector", message).setting(fix)
        }
        Err(_) => {
            let left = left.unwrap_or_default().as_secs_f64();
            let message = format!("no answer from {} in the {left:.1} s that were left of --timeout", config.otlp);
            let fix = "Give a longer --timeout: the collector is asked last. Rows are relayed without it.";
            Finding::new(Level::Warn, "collector", message).setting(fix)
        }
    };
    vec![finding]
}
