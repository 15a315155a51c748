//! `outbox-relay cursor reshard`.

use std::process::ExitCode;
use std::time::Duration;

use super::subject::at_place;
use crate::cli::confirm::operator;
use crate::cli::output::print;
use crate::config::{Config, parse_duration};
use crate::relay::inspect::reshard::{Resharded, reshard};

/// Arguments of `cursor reshard`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor reshard booking_events
      from the shards that it has to those that are configured
  outbox-relay --config new.toml cursor reshard booking_events --timeout 2m

Run it with the new configuration, while replicas with the former one run: they read what is left up to one instant, and there \
the new cursors begin, in the transaction that ends the former. Writers go on; delivery stands still for a moment, and until \
replicas with the new configuration run. If something stands against it, nothing changes.

It connects as [postgres] url says: as a role that may write the table and owns the schema, like `migrate`.

Exit codes: 0 done, or nothing to do; 1 nothing has changed; 2 usage, or an unknown relay.")]
pub struct Args {
    /// The relay's name
    #[arg(value_name = "RELAY")]
    pub name: String,
    /// How long it may take
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_duration)]
    pub timeout: Duration,
}

/// Hands over.
pub(super) async fn run(config: Config, args: &Args) -> anyhow::Result<ExitCode> {
    let config = config.only(std::slice::from_ref(&args.name))?;
    anyhow::ensure!(
        config.relays.iter().all(|relay| relay.relay == args.name),
        "{} is one of the cursors: name its relay, because all are handed over together",
        args.name
    );
    let sessions = crate::cli::sessions(&config, "cursor");
    let session = sessions.open().await?;
    crate::migrate::require(&session).await?;
    let watcher = crate::cli::watcher(&config, "cursor");
    let name = &args.name;
    let said = match reshard(&session, &sessions, &watcher, &config.relays, args.timeout, &operator()).await? {
        Resharded::Already => "its cursors are those that are configured".to_owned(),
        Resharded::Done { at, slices } => {
            let cursors: Vec<&str> = config.relays.iter().map(|relay| relay.name.as_str()).collect();
            let audit = if slices == 0 {
                String::new()
            } else {
                format!(
                    "\n{name}: {slices} slices of the audit have ended with the former cursors: rows that committed behind their positions \
                     within the last hour are not looked for (Kafka: `outbox-relay verify {name} --since 1h` looks)"
                )
            };
            format!("handed over to {} {}{audit}", cursors.join(", "), at_place(at.as_ref()))
        }
    };
    print(&format!("{name}: {said}\n"))?;
    Ok(ExitCode::SUCCESS)
}
