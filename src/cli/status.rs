//! `outbox-relay status`: how far is every cursor?

use std::process::ExitCode;
use std::time::Duration;

use super::format::Format;
use crate::config::{Config, parse_duration};

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay status
  outbox-relay status -o json | jq '.cursors[] | {name, lag_seconds}'
  outbox-relay status --max-lag 10s                exit 3 when a cursor lags more than that

Lag is the age of the oldest committed row that is not delivered yet, held back or not.")]
pub struct Args {
    /// How to print the cursors
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
    /// Exit with 3 when a cursor lags more than this, for example 10s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub max_lag: Option<Duration>,
}

/// Shows the cursors.
///
/// # Errors
/// When PostgreSQL cannot be asked.
pub async fn run(_config: Config, _args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
