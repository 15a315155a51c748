//! `outbox-relay cursor`: what operators do with cursors. None of it needs the cursor's lock: what moves a cursor is written
//! down as a change, and carried out by the next turn of whichever replica may.

use std::process::ExitCode;
use std::time::Duration;

use super::confirm::{agreed, operator};
use super::format::Format;
use super::output::print;
use crate::config::Config;
use crate::cursor::control::{self, ControlOutcome};

mod adopt;
mod belongings;
mod create;
mod given_up;
mod list;
mod named;
mod place;
mod remove;
mod rename;
mod reshard;
mod seek;
mod show;
mod skip;
mod subject;
mod unfinished;
mod wait;
mod why;

pub(super) use unfinished::word;

/// Arguments of `cursor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor list
  outbox-relay cursor why booking_sms              why it does not move, and what to do
  outbox-relay cursor pause booking_sms
      no turn begins until it is resumed; all replicas see it
  outbox-relay cursor resume booking_sms           ends a pause, and a halt whose cause is fixed
  outbox-relay cursor skip booking_sms             pass the one message that it is halted at
  outbox-relay cursor seek booking_sms --at 2026-11-21T08:00:00Z --dry-run
  outbox-relay cursor rename booking_sms sms       the relay has another name now
  outbox-relay cursor remove booking_sms           the relay was taken out

All are safe while replicas run: remove and rename refuse while a replica has the relay; of the others only reshard takes cursors' \
locks, for a moment.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with cursors.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// List the cursors of this database
    #[command(after_help = "\
Examples:
  outbox-relay cursor list
  outbox-relay cursor list -o json | jq -r '.cursors[] | select(.halted) | .name'")]
    List {
        /// How to print them
        #[arg(short = 'o', long = "output", value_enum, default_value_t)]
        output: Format,
    },
    /// Show everything about one cursor
    Show(show::Args),
    /// Make a cursor before its relay first runs, at a place of your choice
    Create(create::Args),
    /// Let a cursor go on with another configuration, table, set of partitions or topic
    Adopt(adopt::Args),
    /// Hand a relay's rows over to another number of shards, without loss or repetition
    Reshard(reshard::Args),
    /// Remove a cursor whose relay was taken out
    Remove(remove::Args),
    /// Give a cursor another name, with everything that is kept under the old one
    Rename(rename::Args),
    /// Begin no more turns of a cursor, or of all shards of a relay
    #[command(after_help = "\
Examples:
  outbox-relay cursor pause booking_sms
      the running turn ends, no other begins, on no replica
  outbox-relay cursor pause booking_events
      of a relay with shards: all of them; booking_events#2 is one

Rows wait in the table; nothing is lost. `outbox-relay cursor resume` ends it.

Who paused it is recorded: USER, LOGNAME, or the login name of the user id. In a container without one, give it: \
docker exec -e USER=ada ….")]
    Pause {
        /// The cursor's name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// End a pause or a halt of a cursor, or of all shards of a relay
    #[command(after_help = "\
Examples:
  outbox-relay cursor resume booking_sms           ends a pause, and a halt whose cause is fixed

A halt whose cause is not fixed comes back at once: see `outbox-relay cursor why`.")]
    Resume {
        /// The cursor's name
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Move a cursor: back sends rows again, forward passes rows over
    Seek(seek::Args),
    /// Pass the one message that a cursor is halted at
    Skip(skip::Args),
    /// Say in one sentence why a cursor does not move, and what to do
    Why(why::Args),
}

impl Verb {
    /// How long it waits for replicas by an argument of its own.
    pub(super) fn waits(&self) -> Option<Duration> {
        match self {
            Self::Adopt(args) => Some(args.wait.timeout),
            Self::Seek(args) => Some(args.wait.timeout),
            Self::Skip(args) => Some(args.wait.timeout),
            Self::Reshard(args) => Some(args.timeout),
            Self::List { .. }
            | Self::Show(_)
            | Self::Create(_)
            | Self::Remove(_)
            | Self::Rename(_)
            | Self::Pause { .. }
            | Self::Resume { .. }
            | Self::Why(_) => None,
        }
    }
}

/// Does it.
///
/// # Errors
/// When PostgreSQL cannot be reached, there is no such cursor, or nobody could be asked (exit code 2).
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    match args.verb {
        Verb::List { output } => list::list(&config, output).await,
        Verb::Show(args) => show::run(&config, &args).await,
        Verb::Create(args) => create::run(config, &args).await,
        Verb::Adopt(args) => adopt::run(config, &args).await,
        Verb::Reshard(args) => reshard::run(config, &args).await,
        Verb::Remove(args) => remove::run(&config, &args).await,
        Verb::Rename(args) => rename::run(&config, &args).await,
        Verb::Pause { name } => {
            let mut session = super::schema_session(&config, "cursor").await?;
            for name in named::there(&session, &name).await? {
                let outcome = control::pause(&mut session, &name, &operator()).await?;
                say(outcome, &name, "paused: no turn begins until `outbox-relay cursor resume`", "paused already")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Verb::Resume { name } => {
            let mut session = super::schema_session(&config, "cursor").await?;
            for name in named::there(&session, &name).await? {
                let outcome = control::resume(&mut session, &name, &operator()).await?;
                say(outcome, &name, "resumed", "neither paused nor halted")?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Verb::Seek(args) => seek::run(config, &args).await,
        Verb::Skip(args) => skip::run(config, &args).await,
        Verb::Why(args) => why::run(&config, &args).await,
    }
}

fn say(outcome: ControlOutcome, name: &str, done: &str, already: &str) -> anyhow::Result<()> {
    match outcome {
        ControlOutcome::Done => print(&format!("{name}: {done}\n"))?,
        ControlOutcome::Already => print(&format!("{name}: {already}\n"))?,
        ControlOutcome::Unknown => return Err(unknown(name)),
    }
    Ok(())
}

fn unknown(name: &str) -> anyhow::Error {
    anyhow::anyhow!("there is no cursor {name}; `outbox-relay cursor list` shows them")
}
