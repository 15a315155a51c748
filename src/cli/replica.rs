//! `outbox-relay replica`: the processes of `run`.

use std::process::ExitCode;

use super::format::Format;
use super::output::{complain, print};
use super::table::{Table, visible};
use crate::config::Config;
use crate::cursor::replicas::{self, Replica};
use crate::relay::engine::replicas::{document, fleet};

/// Arguments of `replica`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay replica list
  outbox-relay replica list -o json | jq '.replicas[] | {id, relays}'
  outbox-relay replica list --all                  with those that stopped in the last day

CONFIG is a digest of what decides what the relay delivers, and where: replicas of one configuration have the same. REFUSED \
is why the replica does not run the relay: config_mismatch, while live replicas run another configuration of it, or the code \
of a check. Below the table: ids that several processes have, and relays with several configurations.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with replicas.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// List the replicas, and the configuration of each of their relays
    List {
        /// Also those that have stopped, for a day
        #[arg(long)]
        all: bool,
        /// How to print them
        #[arg(short = 'o', long = "output", value_enum, default_value_t)]
        output: Format,
    },
}

/// Does it.
///
/// # Errors
/// The database's.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let Verb::List { all, output } = args.verb;
    let session = super::schema_session(&config, "replica").await?;
    let replicas = replicas::list(&session, all).await?;
    match output {
        Format::Json => {
            let replicas: Vec<_> = replicas.iter().map(document).collect();
            print(&format!("{}\n", serde_json::json!({ "replicas": replicas })))?;
        }
        Format::Table => {
            let fleet = fleet(&session).await?;
            let mut text = render(&replicas);
            for note in fleet.notes() {
                text.push_str(&format!("{}\n", visible(&note)));
            }
            print(&text)?;
            if replicas.is_empty() {
                complain("no replica runs: start `outbox-relay run`");
            }
            if !fleet.unwritten.is_empty() {
                let names = fleet.unwritten.join(", ");
                complain(format!("connected, and not listed, because they have only started or are older: {names}"));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A line for each relay of each replica.
fn render(replicas: &[Replica]) -> String {
    let mut table = Table::new(["REPLICA", "VERSION", "STARTED", "STATE", "RELAY", "CONFIG", "REFUSED"]);
    for replica in replicas {
        let state = match replica.stopped_at {
            Some(at) => format!("stopped {at}"),
            None if replica.live => "live".to_owned(),
            None => format!("no session, seen {}", replica.seen_at),
        };
        let mut row = |relay: &str, config: &str, refused: &str| {
            let [relay, config, refused] = [relay, config, refused].map(str::to_owned);
            let started = replica.started_at.to_string();
            table.row([replica.id.clone(), replica.version.clone(), started, state.clone(), relay, config, refused]);
        };
        match &replica.unreadable {
            Some(why) => row("-", &format!("configuration not readable: {why}"), "-"),
            None if replica.relays.is_empty() => row("-", "-", "-"),
            None => {}
        }
        for relay in &replica.relays {
            let refused = relay.refused.as_ref().map_or("-", |refused| &refused.code);
            row(&relay.name, &relay.config_hash, refused);
        }
    }
    table.render()
}
