//! `outbox-relay migrate`: the schema `outbox`.

use std::process::ExitCode;

use anyhow::Context as _;

use super::indexes;
use super::output::print;
use crate::config::Config;
use crate::database::Session;
use crate::jobs::ledger::register;
use crate::{migrate, relay, source};

/// The version from which on `outbox.message` has partitions, and what is said of one that has not.
const PARTITIONED: i32 = 5;
const PLAIN: &str = "outbox.message has no partitions: SELECT outbox.partition_messages(), as its owner, makes them\n";

/// Arguments of `migrate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay migrate up --relay-role relay
      make the schema, grant the relay's role exactly what it needs
  outbox-relay migrate up --app-role app
      let the application write outbox.message and ask for requests
  outbox-relay migrate up --notify
      have inserts wake the relays that ask for it (it changes their tables)
  outbox-relay migrate up --indexes
      also make the indexes that relays with shards read by
  outbox-relay migrate up --print-sql              print the SQL for another role to run
  outbox-relay migrate up --print-sql --from 19
      the same, for a schema that has version 19 (migrate status)
  outbox-relay migrate status                      show which migrations are applied
  outbox-relay migrate down --to 1                 go back to version 1

It connects as [postgres] url says: as an owner of the database. `run` never migrates.

Exit codes: 0 done; 1 failed; 2 usage or configuration; 3 status: a migration is missing.")]
pub struct Args {
    /// What to do with the schema; `up` when nothing is said
    #[command(subcommand)]
    pub step: Option<Step>,
    /// Print the SQL instead of running it
    #[arg(long, global = true)]
    pub print_sql: bool,
    /// With --print-sql: the version that the schema has now; 0 by default, for down the newest
    #[arg(
        long,
        global = true,
        value_name = "N",
        value_parser = clap::value_parser!(i32).range(0..=i64::from(migrate::VERSION))
    )]
    pub from: Option<i32>,
    /// With up: grant this role what a relay needs, on the schema and on the configured tables
    #[arg(long, global = true, value_name = "ROLE")]
    pub relay_role: Option<String>,
    /// With up: make the indexes that relays with shards need on their tables; writers wait only where the table is partitioned
    #[arg(long, global = true, conflicts_with = "print_sql")]
    pub indexes: bool,
    /// With up: grant this role what an application needs: to write outbox.message and outbox.schedule, to enqueue requests, to
    /// read and cancel actions
    #[arg(long, global = true, value_name = "ROLE")]
    pub app_role: Option<String>,
    /// With up: make the trigger that wakes relays, on the tables of those with [relay.poll] notify = true
    #[arg(long, global = true)]
    pub notify: bool,
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
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=i64::from(migrate::VERSION)))]
        to: i32,
    },
    /// Show which migrations are applied
    Status,
}

/// An option that does nothing without another. A usage error: the command ends with 2. Clap cannot tell: of two options, one may stand
/// before the subcommand and one behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} goes with {with}")]
pub struct Misplaced {
    option: &'static str,
    with: &'static str,
}

impl Args {
    /// Which option has nothing to do beside the others.
    fn misplaced(&self, step: Step) -> Option<Misplaced> {
        let is_up = step == Step::Up;
        let pairs = [
            (self.notify && !is_up, "--notify", "up"),
            (self.indexes && !is_up, "--indexes", "up"),
            (self.from.is_some() && !self.print_sql, "--from", "--print-sql"),
            (self.print_sql && step == Step::Status, "--print-sql", "up and down"),
        ];
        pairs.into_iter().find_map(|(is_wrong, option, with)| is_wrong.then_some(Misplaced { option, with }))
    }
}

/// Migrates.
///
/// # Errors
/// When PostgreSQL cannot be reached or refuses, or an option does nothing for the others (exit code 2).
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let grants = grants(&config, &args);
    let step = args.step.unwrap_or_default();
    if let Some(misplaced) = args.misplaced(step) {
        return Err(misplaced.into());
    }
    let triggers = if args.notify { triggers(&config)? } else { String::new() };
    if args.print_sql {
        let sql = match step {
            Step::Down { to } => migrate::down_sql(args.from.unwrap_or(migrate::VERSION), to),
            Step::Up | Step::Status => format!("{}{grants}{triggers}", migrate::up_sql(args.from.unwrap_or(0))),
        };
        print(&sql)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut session = super::session(&config, "migrate").await?;
    match step {
        Step::Up => {
            apply(&mut session, &config).await?;
            if !grants.is_empty() {
                migrate::grant(&session, &grants).await.context("the grants were not made")?;
                print(&format!("granted:\n{grants}"))?;
            }
            if !triggers.is_empty() {
                migrate::make_triggers(&session, &triggers).await.context("the triggers were not made")?;
                print(&format!("made:\n{triggers}"))?;
            }
            if args.indexes {
                indexes::make(&config).await?;
            }
        }
        Step::Down { to } => {
            let undone = migrate::down(&mut session, to).await?;
            for version in &undone {
                print(&format!("took back migration {version}\n"))?;
            }
            if undone.is_empty() {
                print(&format!("nothing to take back: the schema is at version {to} or below\n"))?;
            }
        }
        Step::Status => {
            let found = migrate::version(&session).await?;
            let known = migrate::VERSION;
            print(&format!("schema version {}, this program knows {known}\n", found.version))?;
            if found.version >= PARTITIONED && !migrate::messages_partitioned(&session).await? {
                print(PLAIN)?;
            }
            if found.version < known {
                print("missing migrations: `outbox-relay migrate up`, as an owner, applies them\n")?;
                return Ok(ExitCode::from(super::THRESHOLD));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Applies the missing migrations and registers the templates of relays.
async fn apply(session: &mut Session, config: &Config) -> anyhow::Result<()> {
    let applied = migrate::up(session).await?;
    for version in &applied {
        print(&format!("applied migration {version}\n"))?;
    }
    if applied.is_empty() {
        let found = migrate::version(session).await?.version;
        print(&format!("schema outbox is at version {found} already\n"))?;
    }
    // Producers may request them before a relay has run.
    for relay in &config.relays {
        let source::Config::Requests(requests) = &relay.source else { continue };
        if let Some((template, other)) = register(session, &relay.name, &requests.templates).await? {
            anyhow::bail!("template {template} of relay {} belongs to relay {other}", relay.name);
        }
    }
    Ok(())
}

/// The triggers on the tables of relays that ask for them.
fn triggers(config: &Config) -> anyhow::Result<String> {
    let mut tables: Vec<_> =
        config.relays.iter().filter(|relay| relay.poll.notify).map(|relay| relay.source.table()).collect();
    anyhow::ensure!(!tables.is_empty(), "--notify: no relay has [relay.poll] notify = true");
    tables.sort_unstable();
    tables.dedup();
    let tables: Vec<_> = tables.iter().map(|table| (table.schema.as_str(), table.name.as_str())).collect();
    Ok(migrate::notify_triggers(&tables))
}

fn grants(config: &Config, args: &Args) -> String {
    let mut sql = String::new();
    if let Some(role) = &args.relay_role {
        let mut tables: Vec<_> = config.relays.iter().map(|relay| relay.source.table()).collect();
        tables.sort_unstable();
        tables.dedup();
        let tables: Vec<_> = tables.iter().map(|table| (table.schema.as_str(), table.name.as_str())).collect();
        let marks: Vec<_> = config.relays.iter().filter_map(mark).collect();
        sql.push_str(&migrate::relay_grants(role, &tables));
        sql.push_str(&migrate::mark_grants(role, &marks));
    }
    if let Some(role) = &args.app_role {
        sql.push_str(&migrate::app_grants(role));
    }
    sql
}

/// The column that a relay of due work sets, with its table.
fn mark(relay: &relay::Config) -> Option<(migrate::GrantedTable<'_>, &str)> {
    let source::Config::Pending(pending) = &relay.source else { return None };
    let table = (pending.table.schema.as_str(), pending.table.name.as_str());
    Some((table, pending.sent.as_deref()?))
}
