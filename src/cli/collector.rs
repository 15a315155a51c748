//! What `check` says of the collector of spans.

use crate::source::finding::{Finding, Level};
use crate::telemetry::traces::Config;

/// Asks it. Without it rows are relayed all the same, so it is never an error.
pub(super) async fn findings(config: Option<&Config>) -> Vec<Finding> {
    let Some(config) = config else { return Vec::new() };
    let finding = match config.probe().await {
        Ok(()) => Finding::new(Level::Ok, "collector", format!("{} takes spans", config.otlp)),
        Err(why) => {
            let message = format!("{} takes no spans: {why}", config.otlp);
            let fix = "Correct [telemetry] otlp, headers_file or ca_file, or start the collector; rows are relayed without it.";
            Finding::new(Level::Warn, "collector", message).setting(fix)
        }
    };
    vec![finding]
}
