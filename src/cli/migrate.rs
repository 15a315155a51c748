//! `outbox-relay migrate`: the schema `outbox`.

use std::process::ExitCode;

use crate::config::Config;

/// Arguments of `migrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay migrate up --relay-role relay       make the schema, grant the relay's role exactly what it needs
  outbox-relay migrate up --app-role app           let the application write the ready-made outbox.message
  outbox-relay migrate up --print-sql              print the SQL for somebody else to run
  outbox-relay migrate status                      show which migrations are applied
  outbox-relay migrate down --to 1                 go back to version 1

It connects as [postgres] url says: as an owner of the database. `run` never migrates.")]
pub struct Args {
    /// What to do with the schema; `up` when nothing is said
    #[command(subcommand)]
    pub step: Option<Step>,
    /// Print the SQL instead of running it
    #[arg(long, global = true)]
    pub print_sql: bool,
    /// Grant this role what a relay needs, on the schema and on the configured tables
    #[arg(long, global = true, value_name = "ROLE")]
    pub relay_role: Option<String>,
    /// Grant this role INSERT on outbox.message
    #[arg(long, global = true, value_name = "ROLE")]
    pub app_role: Option<String>,
}

/// What to do with the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Subcommand)]
pub enum Step {
    /// Apply every migration that is not applied
    #[default]
    Up,
    /// Undo migrations
    Down {
        /// The version to go back to; 0 removes the schema
        #[arg(long, value_name = "N")]
        to: u32,
    },
    /// Show which migrations are applied
    Status,
}

/// Migrates.
///
/// # Errors
/// When PostgreSQL cannot be reached or refuses.
pub async fn run(_config: Config, _args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not built yet")
}
