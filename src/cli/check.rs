//! `outbox-relay check`: can every relay do its work?

use std::process::ExitCode;

use super::format::Format;
use crate::config::Config;

/// Arguments of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay check
  outbox-relay check -o json | jq '.findings[] | select(.level == \"error\")'

Exit codes: 0 when there are warnings only, 3 with any error, 1 when a server cannot be asked.")]
pub struct Args {
    /// How to print the findings
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

/// Checks.
///
/// # Errors
/// When a server cannot be asked.
pub async fn run(_config: Config, _args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
