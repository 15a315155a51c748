//! `outbox-relay run`: the relay itself.

use std::process::ExitCode;
use std::time::Duration;

use crate::config::{Config, parse_duration};

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay --config relay.toml run
  outbox-relay run --relay booking_events          only this relay of the configuration
  outbox-relay run --once --timeout 5m             relay what is there now, then end; for jobs and tests

Signals:
  SIGTERM or SIGINT ends the open turns within [shutdown] grace and exits 0; a second one exits at once.
  With --once the exit code is 1 when a relay is halted or not done in time; rows held back are named.")]
pub struct Args {
    /// Relay the rows that are committed now, then end
    #[arg(long)]
    pub once: bool,
    /// How long --once may take
    #[arg(long, value_name = "DURATION", requires = "once", default_value = "60s", value_parser = parse_duration)]
    pub timeout: Duration,
    /// The replica's name in logs and in the database; the host's name and the process id by default
    #[arg(long, value_name = "ID", value_parser = replica_id)]
    pub replica_id: Option<String>,
    /// Only this relay of the configuration; may be given several times
    #[arg(long = "relay", value_name = "NAME")]
    pub relays: Vec<String>,
}

/// It becomes part of `application_name`, which PostgreSQL cuts at 63 bytes and takes only ASCII in.
fn replica_id(text: &str) -> Result<String, String> {
    let longest = 63 - "outbox-relay/".len();
    if (1..=longest).contains(&text.len()) && text.chars().all(|c| c.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err(format!("write 1 to {longest} printable ASCII characters without blanks"))
    }
}

/// Runs the configured relays until a signal, or once.
///
/// # Errors
/// When the configuration has no such relay (exit code 2), or the process cannot go on (1).
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let _config = config.only(&args.relays)?;
    anyhow::bail!("not built yet")
}
