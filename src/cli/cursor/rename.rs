//! `outbox-relay cursor rename`.

use std::process::ExitCode;

use super::agreed;
use super::belongings::NamedRelay;
use crate::cli::confirm::{Consent, operator};
use crate::cli::output::print;
use crate::config::{Config, relay_name};
use crate::cursor::relay::{rename, unhurried};
use crate::cursor::reshard;

/// Arguments of `cursor rename`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor rename booking_sms sms --dry-run    what moves to the new name
  outbox-relay cursor rename booking_sms sms
      the relay is called sms now: it continues where booking_sms ended

Stop the replicas that have the relay, rename, then start replicas whose configuration has the new name. Everything moves in one \
transaction: positions (of shards, all of them), pauses, dead letters, unknown outcomes, requests, templates, schedules, actions, \
marks of rows sent. It refuses while a running replica has one of the two names (not one that waits with cursor_renamed), and when the \
new name has a cursor.

Receivers see the name: in the Kafka header `relay`, and in the Idempotency-Key <relay>/<key>. A row that was sent under the old \
name and is sent again under the new one has another Idempotency-Key.

Exit codes: 0 done; 1 refused, failed or declined; 2 standard input is no terminal: add --yes.")]
pub struct Args {
    /// The cursor's name: its relay's
    #[arg(value_name = "OLD")]
    pub old: String,
    /// The name that it gets
    #[arg(value_name = "NEW", value_parser = relay_name)]
    pub new: String,
    /// Whether to.
    #[command(flatten)]
    pub consent: Consent,
}

/// Shows what moves, asks, and renames.
pub(super) async fn run(config: &Config, args: &Args) -> anyhow::Result<ExitCode> {
    let session = crate::cli::schema_session(config, "cursor").await?;
    unhurried(&session).await?;
    let (old, new) = (args.old.as_str(), args.new.as_str());
    anyhow::ensure!(old != new, "{old} has that name");
    let named = NamedRelay::find(&session, old).await?;
    anyhow::ensure!(
        reshard::old(&session, new).await?.is_empty(),
        "there is a cursor {new} already. To give it up: stop the replicas that have relay {new}, run `outbox-relay cursor remove \
         {new}`, then `outbox-relay cursor rename {old} {new}`, and start them again. To keep it: `outbox-relay cursor remove {old} \
         --dry-run` prints what waits for {old}"
    );
    named.refuse_running(&session).await?;
    NamedRelay::unused(new).refuse_running(&session).await?;
    for cursor in &named.cursors {
        print(&format!("cursor {cursor} -> {new}{}\n", cursor.name.get(old.len()..).unwrap_or_default()))?;
    }
    for moved in &named.belongings {
        print(&format!("with it: {}\n", named.number(moved, moved.rows)))?;
    }
    if let Some(code) = agreed(args.consent, &format!("Rename {old} to {new}?"))? {
        return Ok(code);
    }
    // A person takes time to answer: a replica may have begun meanwhile.
    NamedRelay::find(&session, old).await?.refuse_running(&session).await?;
    NamedRelay::unused(new).refuse_running(&session).await?;
    rename(&session, old, new, &operator()).await?;
    print(&format!("{old}: renamed to {new}; start replicas that have relay {new}\n"))?;
    Ok(ExitCode::SUCCESS)
}
