//! `outbox-relay cursor`: what operators do with cursors. None of it needs the cursor's lock.

use std::process::ExitCode;

use super::format::Format;
use crate::config::Config;

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
pub async fn run(_config: Config, _args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
