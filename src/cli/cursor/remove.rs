//! `outbox-relay cursor remove`.

use std::process::ExitCode;

use super::belongings::NamedRelay;
use super::{agreed, given_up};
use crate::cli::confirm::{Consent, operator};
use crate::cli::output::print;
use crate::config::Config;
use crate::cursor::relay::{remove, unhurried};

/// Arguments of `cursor remove`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor remove booking_sms --dry-run
      what is removed, what is kept, what must be finished first
  outbox-relay cursor remove booking_sms
      the relay is taken out: its cursor goes, of shards all of them

It removes the cursor, its pause and its reported errors; what is finished stays as history: settled dead letters, completed \
requests, marks of rows sent. It refuses while a running replica has the relay, and while something of it is not finished: \
open dead letters, parked keys, unknown outcomes, unfinished sends, rows in flight, requests, actions, schedules. Rows after the \
position are given up: it prints how many. A row in outbox.operation keeps the position and that number.

A relay that is configured again creates its cursor where `start` says.

Exit codes: 0 done; 1 refused, failed or declined; 2 standard input is no terminal: add --yes.")]
pub struct Args {
    /// The cursor's name: its relay's
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
}

/// Shows what goes and what stays, asks, and removes it.
pub(super) async fn run(config: &Config, args: &Args) -> anyhow::Result<ExitCode> {
    let session = crate::cli::schema_session(config, "cursor").await?;
    unhurried(&session).await?;
    let name = args.name.as_str();
    let named = NamedRelay::find(&session, name).await?;
    named.refuse_running(&session).await?;
    named.refuse_open(&session, config).await?;
    let counted = given_up::count(config, &named.cursors).await?;
    for (cursor, counted) in named.cursors.iter().zip(&counted) {
        print(&format!("removes: cursor {cursor}\n{}", given_up::line(name, counted)))?;
    }
    for kept in &named.belongings {
        print(&format!("kept as history: {}\n", named.number(kept, kept.rows)))?;
    }
    if config.relays.iter().any(|relay| relay.relay == name) {
        print(&format!(
            "WARNING: relay {name} is configured here: `run` creates the cursor again where `start` says\n"
        ))?;
    }
    if let Some(code) = agreed(args.consent, &format!("Remove {name}?"))? {
        return Ok(code);
    }
    // A person takes time to answer: a replica may have begun meanwhile.
    let named = NamedRelay::find(&session, name).await?;
    named.refuse_running(&session).await?;
    named.refuse_open(&session, config).await?;
    remove(&session, name, &operator(), &given_up::detail(&named.cursors, &counted)).await?;
    print(&format!("{name}: removed\n"))?;
    Ok(ExitCode::SUCCESS)
}
