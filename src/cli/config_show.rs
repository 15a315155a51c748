//! `outbox-relay config show --redacted`: the configuration as it was understood.

use std::process::ExitCode;

use super::output;
use crate::config::Config;

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay config show --redacted
  outbox-relay --config relay.toml config show --redacted > resolved.toml

It asks no server. Every problem of the configuration is printed, and the exit code is 2.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// Print it as TOML, with every default filled in
    Show {
        /// Print *** instead of every secret; must be given, because secrets are never printed
        #[arg(long, required = true)]
        redacted: bool,
    },
}

/// Prints the resolved configuration.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(config: &Config, args: &Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::Show { redacted: _ } => output::print(&config.redacted())?,
    }
    Ok(ExitCode::SUCCESS)
}
