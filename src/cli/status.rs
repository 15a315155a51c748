//! `outbox-relay status`: how far is every cursor?

use std::process::ExitCode;
use std::time::Duration;

use super::format::Format;
use super::output::{complain, print};
use super::table::visible;
use crate::config::{Config, parse_duration};
use crate::database::Session;
use crate::relay;
use crate::relay::inspect::status::{NO_REPLICA, SinkStatus, Status, status};
use crate::source::watcher::Watcher;

mod table;
mod watch;

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay status
  outbox-relay status -o json | jq '.cursors[] | {name, lag_seconds}'
  outbox-relay status booking_events booking_sms   only these cursors, or all shards of these relays
  outbox-relay status --max-lag 10s
      exit 3 when a cursor lags more than that, or its lag is not known
  outbox-relay status booking_sms --max-lag 10s    the same, of this cursor only
  outbox-relay status --watch                      again every 2 s, until Ctrl-C
  outbox-relay status --watch --max-lag 10s
      until the first cursor lags more than that: exit 3, naming it

Below the cursors stand the actions of schedules that are running, each with what its command said last.

Lag is the age of the oldest committed row that is not delivered yet, held back or not.

Exit codes: 0 done; 1 PostgreSQL could not be asked; 2 usage or configuration, or no cursor of that name; 3 --max-lag is exceeded, \
or a lag is not known.")]
pub struct Args {
    /// Only the cursors of these names, or of these relays
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// How to print the cursors
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
    /// Exit with 3 when a cursor lags more than this, for example 10s, or its lag is not known, as that of a relay without a cursor
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub max_lag: Option<Duration>,
    /// Show the cursors again every 2 seconds
    #[arg(long)]
    pub watch: bool,
}

/// Shows the cursors; `limit` is how long each poll of `--watch` may take.
///
/// # Errors
/// When PostgreSQL cannot be asked.
pub async fn run(config: Config, args: Args, limit: Option<Duration>) -> anyhow::Result<ExitCode> {
    if args.watch {
        return watch::run(&config, &args, limit).await;
    }
    let session = super::session(&config, "status").await?;
    let status = look(&session, &super::watcher(&config, "status"), &config, &args.names).await?;
    print(&text(&status, args.output)?)?;
    if status.cursors.is_empty() {
        complain("no cursor yet: `outbox-relay run` makes them");
    }
    if let Some(breach) = breach(&status, &config, &args) {
        complain(breach);
        return Ok(ExitCode::from(super::THRESHOLD));
    }
    Ok(ExitCode::SUCCESS)
}

/// A name that neither a cursor nor a relay with cursors has. A usage error: the command ends with 2.
#[derive(Debug, thiserror::Error)]
#[error("there is no cursor {name}; the cursors are: {}", if known.is_empty() { "none" } else { known })]
pub struct NoSuchCursor {
    name: String,
    known: String,
}

/// The cursors of these names, or of the relays of these names; all of them when there are no names.
async fn look(session: &Session, watcher: &Watcher, config: &Config, names: &[String]) -> anyhow::Result<Status> {
    let chosen = |name: &str, relay: &str| is_chosen(names, name, relay);
    let relays: Vec<_> = config.relays.iter().filter(|relay| chosen(&relay.name, &relay.relay)).cloned().collect();
    let mut status = status(session, watcher, &relays).await?;
    let Status { cursors, fleet, .. } = &mut status;
    cursors.retain(|cursor| cursor.exists || !fleet.lacks(&cursor.name));
    let has = |name: &String| status.cursors.iter().any(|cursor| cursor.name == *name || cursor.relay == *name);
    if let Some(name) = names.iter().find(|name| !has(name)) {
        let known: Vec<String> = status.cursors.iter().map(|cursor| visible(&cursor.name)).collect();
        return Err(NoSuchCursor { name: name.clone(), known: known.join(", ") }.into());
    }
    status.cursors.retain(|cursor| chosen(&cursor.name, &cursor.relay));
    status.actions.retain(|action| chosen(&action.relay, &action.relay));
    Ok(status)
}

/// Whether a cursor, or its relay, is among these names; all are where there are none.
fn is_chosen(names: &[String], cursor: &str, relay: &str) -> bool {
    names.is_empty() || names.iter().any(|name| name == cursor || name == relay)
}

/// The first cursor that lags more than `--max-lag`, or whose lag is not known: also of a relay that has none yet.
fn breach(status: &Status, config: &Config, args: &Args) -> Option<String> {
    let most = args.max_lag?;
    let has_none = |relay: &&relay::Config| {
        is_chosen(&args.names, &relay.name, &relay.relay)
            && !status.cursors.iter().any(|cursor| cursor.name == relay.name)
    };
    exceeded(status, most).or_else(|| {
        let relay = config.relays.iter().find(has_none)?;
        let name = visible(&relay.name);
        Some(format!("the lag of {name} is not known: it has no cursor yet; `outbox-relay cursor why {name}`"))
    })
}

/// The first cursor that lags more than that, or whose lag is not known.
fn exceeded(status: &Status, most: Duration) -> Option<String> {
    status.cursors.iter().find_map(|cursor| match cursor.lag_seconds {
        None if let Some(open) = &cursor.open_work => {
            Some(format!("{} has no live replica, and {open} {}", cursor.name, open.wait()))
        }
        // Left by a relay that was taken out: replicas run, and none of them has it.
        None if cursor.state == NO_REPLICA && !status.fleet.replicas.is_empty() => None,
        Some(lag) if lag <= most.as_secs_f64() => None,
        Some(lag) => Some(format!("{} lags {lag:.1} s, more than {most:?}", cursor.name)),
        None => {
            let why = match cursor.sink.kind {
                Some(_) => "its table cannot be read by this configuration",
                None => "no relay of this configuration has it; name the cursors that are to be judged",
            };
            Some(format!("the lag of {} is not known: {why}", cursor.name))
        }
    })
}

fn text(status: &Status, output: Format) -> anyhow::Result<String> {
    Ok(match output {
        Format::Json => super::document::line(serde_json::to_value(status)?),
        Format::Table => table::render(status),
    })
}
