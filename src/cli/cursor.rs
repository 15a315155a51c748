//! `outbox-relay cursor`: what operators do with cursors. None of it needs the cursor's lock.

use std::process::ExitCode;

use super::confirm::operator;
use super::format::Format;
use super::output::print;
use super::table::Table;
use crate::config::Config;
use crate::cursor::control::{self, Outcome};
use crate::database::Session;

/// Arguments of `cursor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor list
  outbox-relay cursor pause booking_sms            no turn begins until it is resumed; all replicas see it
  outbox-relay cursor resume booking_sms           ends a pause, and a halt whose cause is mended")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with cursors.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// List the cursors of this database
    List {
        /// How to print them
        #[arg(short = 'o', long = "output", value_enum, default_value_t)]
        output: Format,
    },
    /// Begin no more turns of a cursor
    Pause {
        /// The cursor's name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// End a pause or a halt
    Resume {
        /// The cursor's name
        #[arg(value_name = "NAME")]
        name: String,
    },
}

/// Does it.
///
/// # Errors
/// When PostgreSQL cannot be reached, or there is no such cursor.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let mut session = super::session(&config, "cursor").await?;
    match args.verb {
        Verb::List { output } => {
            let names: Vec<&str> = config.relays.iter().map(|relay| relay.name.as_str()).collect();
            list(&session, &names, output).await
        }
        Verb::Pause { name } => {
            let outcome = control::pause(&mut session, &name, &operator()).await?;
            say(outcome, &name, "paused: no turn begins until `outbox-relay cursor resume`", "paused already")
        }
        Verb::Resume { name } => {
            let outcome = control::resume(&mut session, &name, &operator()).await?;
            say(outcome, &name, "resumed", "neither paused nor halted")
        }
    }
}

async fn list(session: &Session, configured: &[&str], output: Format) -> anyhow::Result<ExitCode> {
    let mut cursors = control::list(session).await?;
    cursors.extend(control::refused(session, configured).await?);
    let text = match output {
        Format::Json => {
            let cursors: Vec<_> = cursors.iter().map(json).collect();
            format!("{}\n", serde_json::json!({ "cursors": cursors }))
        }
        Format::Table => {
            let mut table = Table::new(["CURSOR", "RELAY", "POSITION", "HOLDER", "ADVANCED", "STATE"]);
            for cursor in &cursors {
                let position = match (&cursor.position_created_at, &cursor.position_id) {
                    (None, _) => "beginning".to_owned(),
                    (Some(at), Some(id)) => format!("{at} {id}"),
                    (Some(at), None) => at.to_string(),
                };
                let state = match (cursor.halted, cursor.paused) {
                    (true, _) => "halted",
                    (false, true) => "paused",
                    (false, false) => "running",
                };
                let advanced = cursor.advanced_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
                let holder = cursor.holder.clone().unwrap_or_else(|| "-".to_owned());
                table.row([cursor.name.clone(), cursor.relay.clone(), position, holder, advanced, state.to_owned()]);
            }
            table.render()
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn json(cursor: &control::Listed) -> serde_json::Value {
    let error = cursor.last_error.as_deref().and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    serde_json::json!({
        "key": [cursor.name],
        "name": cursor.name,
        "relay": cursor.relay,
        "position": { "created_at": cursor.position_created_at.map(|at| at.to_string()), "id": cursor.position_id },
        "holder": cursor.holder,
        "advanced_at": cursor.advanced_at.map(|at| at.to_string()),
        "paused": cursor.paused,
        "halted": cursor.halted,
        "last_error": error,
    })
}

fn say(outcome: Outcome, name: &str, done: &str, already: &str) -> anyhow::Result<ExitCode> {
    match outcome {
        Outcome::Done => print(&format!("{name}: {done}\n"))?,
        Outcome::Already => print(&format!("{name}: {already}\n"))?,
        Outcome::Unknown => anyhow::bail!("there is no cursor {name}; `outbox-relay cursor list` shows them"),
    }
    Ok(ExitCode::SUCCESS)
}
