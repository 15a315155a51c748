//! `outbox-relay cursor why`: one sentence, and what to do.

use std::process::ExitCode;

use super::{named, unknown};
use crate::cli::format::Format;
use crate::cli::output::print;
use crate::cli::table::visible;
use crate::config::Config;
use crate::relay::diagnose;
use crate::relay::facts::Facts;
use crate::relay::why::{Why, why};

/// Arguments of `cursor why`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor why booking_sms
  outbox-relay cursor why booking_sms -o json | jq -r '.do[]'

Reasons: paused, halted, missing, no_replica, clock_regression, circuit_open, backing_off, unreadable, held, lock_held, \
not_taken; and moving, idle. It looks for two seconds at the most. Lines of SQL are for a superuser, or a role that is a \
member of pg_signal_backend.

Exit codes: 0 it moves or has nothing to do; 3 it does not move; 1 there is no such cursor, or PostgreSQL could not be asked.")]
pub struct Args {
    /// The cursor's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How to print it
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

/// Looks, decides and tells.
pub(super) async fn run(config: &Config, args: &Args) -> anyhow::Result<ExitCode> {
    named::one(config, &args.name)?;
    let session = crate::cli::session(config, "cursor").await?;
    let relay = config.relays.iter().find(|relay| relay.name == args.name);
    let watcher = crate::cli::watcher(config, "cursor");
    let facts = diagnose::facts(&session, &watcher, relay, &args.name).await?.ok_or_else(|| unknown(&args.name))?;
    let why = why(&facts);
    print(&match args.output {
        Format::Json => crate::cli::document::line(document(&facts, &why)),
        Format::Table => render(&why),
    })?;
    Ok(if why.well { ExitCode::SUCCESS } else { ExitCode::from(crate::cli::THRESHOLD) })
}

/// The sentence, then what to do, a line each. Errors are others' words: they play no tricks on a terminal.
fn render(why: &Why) -> String {
    let mut text = format!("{}\n", visible(&why.sentence));
    for advice in why.advice.iter().filter(|advice| !advice.is_empty()) {
        text.push_str(&format!("  -> {}\n", visible(advice)));
    }
    text
}

fn document(facts: &Facts, why: &Why) -> serde_json::Value {
    serde_json::json!({
        "name": facts.name,
        "reason": why.reason,
        "moves": why.well,
        "sentence": why.sentence,
        "do": why.advice,
        "lag_seconds": facts.waiting.map(|waiting| waiting.lag_seconds),
        "backlog_rows": facts.waiting.map(|waiting| waiting.rows),
        "backlog_capped": facts.waiting.map(|waiting| waiting.capped),
        "replicas": facts.replicas,
        "schedules": facts.schedules.as_ref().map(|schedules| serde_json::json!({
            "running": schedules.running,
            "due": schedules.due,
            "problems": schedules.problems,
            "next_at": schedules.next_at,
        })),
    })
}
