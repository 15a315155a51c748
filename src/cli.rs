//! The command line: what a user may ask for, and what a process answers with.
//!
//! Results go to standard output, talk to standard error. A process ends with 0 (done, or drained after a signal),
//! 1 (failed), 2 (usage or configuration), 3 (a threshold or check not met, or a verdict undecided), or 128+n after a
//! second signal.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;

use clap::{Parser, Subcommand};
use tokio_postgres::error::SqlState;

use crate::config::{Config, Environment, Problems, Unchosen};
use crate::database::{Error, Session, Sessions};
use crate::sink::custom::Kinds;
use crate::source::watcher::Watcher;
use crate::telemetry;

pub mod action;
mod admin;
pub mod check;
mod collector;
pub mod completions;
pub mod config_show;
pub mod confirm;
pub mod convert;
pub mod cursor;
pub mod dead_letter;
pub mod deadline;
mod document;
pub mod format;
pub mod health;
mod indexes;
mod intake;
mod known;
pub mod manual;
pub mod migrate;
pub mod output;
pub mod prune;
pub mod replica;
pub mod request;
pub mod run;
pub mod schedule;
pub mod status;
pub mod table;
pub mod verify;

/// Exit code of usage and configuration errors.
pub const USAGE: u8 = 2;
/// Exit code of a threshold or check that is not met, and of an undecided verdict.
pub const THRESHOLD: u8 = 3;

const AFTER_HELP: &str = "\
Examples:
  outbox-relay migrate up --relay-role relay       make the schema, grant what the relay needs
  outbox-relay --config relay.toml check           ask PostgreSQL and Kafka whether all is well
  outbox-relay --config relay.toml run             relay until SIGTERM
  outbox-relay status -o json --max-lag 10s        exit 3 when a relay is behind

Exit codes:
  0      done, or drained after a signal
  1      failed, or not done within --timeout
  2      usage or configuration
  3      a threshold or check not met, or a verdict undecided
  128+n  ended by a second signal n

Environment:
  OUTBOX_RELAY_CONFIG            the configuration file, when --config is not given
  OUTBOX_RELAY__SECTION__KEY     wins over the file, for example OUTBOX_RELAY__POSTGRES__URL
  DATABASE_URL, PGHOST, PGPORT, PGUSER, PGDATABASE, PGPASSWORD, PGSSLMODE, PGSSLROOTCERT,
  PGSSLCERT, PGSSLKEY
                                 defaults of [postgres]
  RUST_LOG                       which logs are written to standard error; the default is info";

/// Moves committed PostgreSQL rows to Kafka, SMS, email and HTTP: in order, without loss, from any number of replicas.
#[derive(Debug, Parser)]
#[command(name = "outbox-relay", version, about, after_help = AFTER_HELP, propagate_version = true)]
pub struct Cli {
    /// The configuration file (TOML); without it OUTBOX_RELAY_CONFIG, then ./outbox-relay.toml
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// How long it may take.
    #[command(flatten)]
    pub limits: deadline::Limits,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Relay rows until a signal, or once
    Run(run::Args),
    /// Make, change or show the schema `outbox`
    Migrate(migrate::Args),
    /// Validate every relay against PostgreSQL and Kafka, and print fixes
    Check(check::Args),
    /// Show lag, backlog, holder and errors of every cursor
    Status(status::Args),
    /// Ask a running replica whether it is alive, or ready
    Health(health::Args),
    /// Manage cursors: list, show, explain, create, pause, resume, move, skip, adopt, reshard, rename, remove
    Cursor(cursor::Args),
    /// List the processes that run relays, and which configuration each has
    Replica(replica::Args),
    /// List, show, send again or give up rows that a receiver would never accept
    DeadLetter(dead_letter::Args),
    /// List, show, settle, send again or give up requests, also those of unknown outcome
    Request(request::Args),
    /// List, show, preview, pause, resume and carry out what applications have scheduled
    Schedule(schedule::Args),
    /// List the occurrences of schedules, and their status
    Action(action::Args),
    /// Delete finished records that are older than configured, and say what keeps the rest
    Prune(prune::Args),
    /// Compare a table with its topic, or with what the relay has recorded, and name every id that differs
    Verify(Box<verify::Args>),
    /// Show the configuration as it was understood
    Config(config_show::Args),
    /// Translate another product's configuration
    Convert(convert::Args),
    /// Print a shell's completions of commands and options
    #[command(hide = true)]
    Completions(completions::Args),
    /// Write the manual page of every command
    #[command(hide = true)]
    Man(manual::Args),
}

impl Cli {
    /// Does what was asked for and answers how the process should end. Talk goes to standard error.
    pub async fn execute(self, environment: &Environment, kinds: &Kinds) -> ExitCode {
        if let Err(error) = telemetry::init(environment.get("RUST_LOG").map(String::as_str)) {
            output::complain(format_args!("error: {error}"));
            return ExitCode::from(USAGE);
        }
        let limit = self.limits.of(&self.verb).filter(|_| !self.limits_itself());
        let asked = OnceLock::new();
        match deadline::within(limit, self.dispatch(environment, kinds, &asked)).await {
            Ok(code) => code,
            Err(error) => {
                output::complain(format_args!("error: {}", told(&error)));
                if let Some(target) = asked.get().filter(|_| error.is::<deadline::Late>()) {
                    output::complain(format_args!(
                        "  -> Check that PostgreSQL at {target} answers, and what the command waits for there; if it needs longer, \
                         raise --timeout."
                    ));
                }
                code_of(&error)
            }
        }
    }

    /// Each poll of a watch has the limit; prune and check that reach it still say what they have done and found, and health who is silent.
    fn limits_itself(&self) -> bool {
        let watches = matches!(&self.verb, Verb::Status(status::Args { watch: true, .. }));
        watches || matches!(&self.verb, Verb::Prune(_) | Verb::Check(_) | Verb::Health(_))
    }

    /// `asked` learns which server is asked, for what is said when it does not answer.
    async fn dispatch(
        self,
        environment: &Environment,
        kinds: &Kinds,
        asked: &OnceLock<String>,
    ) -> anyhow::Result<ExitCode> {
        let load = || {
            let config = self.limits.applied(Config::load_with(self.config.as_deref(), environment, kinds)?);
            let _ = asked.set(config.postgres.target());
            Ok(config)
        };
        let limit = self.limits.of(&self.verb);
        match self.verb {
            Verb::Run(args) => run::run(load()?, args).await,
            Verb::Migrate(args) => migrate::run(load()?, args).await,
            Verb::Check(args) => check::run(load()?, args, limit).await,
            Verb::Status(args) => status::run(load()?, args, limit).await,
            Verb::Health(args) => health::run(load, args, limit).await,
            Verb::Cursor(args) => cursor::run(load()?, args).await,
            Verb::Replica(args) => replica::run(load()?, args).await,
            Verb::DeadLetter(args) => dead_letter::run(load()?, args).await,
            Verb::Request(args) => request::run(load()?, args).await,
            Verb::Schedule(args) => schedule::run(load, args).await,
            Verb::Action(args) => action::run(load()?, args).await,
            Verb::Prune(args) => prune::run(load()?, args, limit).await,
            Verb::Verify(args) => verify::run(load()?, *args).await,
            Verb::Config(args) => config_show::run(&load()?, &args),
            Verb::Convert(args) => convert::run(&args),
            Verb::Completions(args) => completions::run(&args),
            Verb::Man(args) => manual::run(&args),
        }
    }
}

/// What to do when a role may not do what a command needs.
const UNPRIVILEGED: &str = "`outbox-relay check` names what the relay's role lacks, with the GRANT. `migrate` and `cursor reshard` need an \
                            owner's [postgres] url.";

/// An error and its causes in one line, and what to do about it in the next.
fn told(error: &anyhow::Error) -> String {
    let hint = hint(error).map(|hint| format!("\n  -> {hint}"));
    story(error) + &hint.unwrap_or_default()
}

/// An error and its causes in one line; many errors tell their cause already, and it is not told twice.
fn story(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// What to do about a PostgreSQL that cannot be reached, or refuses, and about what keeps `verify` from comparing.
fn hint(error: &anyhow::Error) -> Option<&str> {
    if let Some(problem) = error.downcast_ref::<crate::verify::Problem>() {
        return Some(problem.hint.as_str()).filter(|hint| !hint.is_empty());
    }
    let error = error.downcast_ref::<Error>()?;
    if let Error::Statement(_) = error {
        let is = |state: &SqlState| error.state() == Some(state);
        if is(&SqlState::INSUFFICIENT_PRIVILEGE) {
            return Some(UNPRIVILEGED);
        }
        return is(&SqlState::LOCK_NOT_AVAILABLE).then(|| error.fix());
    }
    // The others say it themselves.
    let connecting = matches!(
        error,
        Error::Connect { .. }
            | Error::Opening { .. }
            | Error::Silent { .. }
            | Error::PasswordFile { .. }
            | Error::PasswordCommand { .. }
            | Error::Identity(_)
            | Error::PasswordMissing(_)
            | Error::PasswordEmpty { .. }
            | Error::Method { .. }
            | Error::Authorities(_)
    );
    connecting.then(|| error.fix())
}

/// Errors of configuration and usage end with 2, wherever they are found; everything else failed.
fn code_of(error: &anyhow::Error) -> ExitCode {
    let usage = error.chain().any(|cause| {
        cause.is::<Problems>()
            || cause.is::<Unchosen>()
            || cause.is::<migrate::Misplaced>()
            || cause.is::<confirm::Unconfirmed>()
            || cause.is::<known::Unknown>()
            || cause.is::<health::NoAddress>()
            || cause.is::<request::settle::Unnamed>()
            || cause.is::<crate::schedule::Problem>()
            || cause.is::<status::NoSuchCursor>()
    });
    if usage { ExitCode::from(USAGE) } else { ExitCode::FAILURE }
}

/// A verb's sessions. They do not call themselves what a replica's do, so that nobody takes a verb for one.
fn sessions(config: &Config, verb: &str) -> Sessions {
    Sessions::new(config.postgres.clone(), run::limits(&config.relays), format!("outbox-relay {verb}"))
        .opened_within(deadline::opening(config))
}

/// A session for a verb that asks once and ends.
async fn session(config: &Config, verb: &str) -> Result<Session, Error> {
    sessions(config, verb).open().await
}

/// A session for a verb that needs the schema `outbox`, in a version that it knows and with rights on it.
async fn schema_session(config: &Config, verb: &str) -> anyhow::Result<Session> {
    let session = session(config, verb).await?;
    crate::migrate::require(&session).await?;
    Ok(session)
}

/// A watcher for a verb.
fn watcher(config: &Config, verb: &str) -> Watcher {
    Watcher::new(sessions(config, verb), run::limits(&config.relays).statement)
}

#[cfg(test)]
mod tests;
