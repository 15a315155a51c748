//! `outbox-relay cursor why`: one sentence, and what to do.

use std::process::ExitCode;

use tokio_postgres::error::SqlState;

use super::{named, unknown};
use crate::cli::format::Format;
use crate::cli::output::print;
use crate::cli::table::visible;
use crate::config::Config;
use crate::database::Error;
use crate::relay;
use crate::relay::inspect::diagnose;
use crate::relay::inspect::explain::{Why, why};
use crate::relay::inspect::facts::CursorFacts;
use crate::relay::inspect::locked;

/// Members of a JSON object.
type Members = serde_json::Map<String, serde_json::Value>;

/// Arguments of `cursor why`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor why booking_sms
  outbox-relay cursor why booking_sms -o json | jq -r '.next_steps[]'

Reasons: paused, halted, missing, retrying, no_replica, clock_regression, circuit_open, backing_off, unreadable, held, lock_held, \
locked, not_taken; and moving, busy, idle. It looks for two seconds at most. Lines of SQL are for a superuser, or a role that is a \
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
    let session = crate::cli::schema_session(config, "cursor").await?;
    let relay = config.relays.iter().find(|relay| relay.name == args.name);
    let watcher = crate::cli::watcher(config, "cursor");
    let configured: Vec<String> = config.relays.iter().map(|relay| relay.relay.clone()).collect();
    let found = diagnose::facts(&session, &watcher, relay, &configured, &args.name).await;
    let (why, more) = match found {
        Ok(facts) => {
            let facts = facts.ok_or_else(|| unknown(&args.name))?;
            (why(&facts), rest(&facts))
        }
        Err(error) => match waiting(config, relay, &args.name, &error).await {
            Some(why) => (why, Members::new()),
            None => return Err(error),
        },
    };
    print(&match args.output {
        Format::Json => crate::cli::document::line(document(&args.name, &why, more)),
        Format::Table => render(&why),
    })?;
    Ok(if why.well { ExitCode::SUCCESS } else { ExitCode::from(crate::cli::THRESHOLD) })
}

/// Which lock on a table the question has waited for in vain; none when it failed otherwise.
async fn waiting(config: &Config, relay: Option<&relay::Config>, name: &str, error: &anyhow::Error) -> Option<Why> {
    let state = error.downcast_ref::<Error>().and_then(Error::state)?;
    if *state != SqlState::LOCK_NOT_AVAILABLE {
        return None;
    }
    let tables: Vec<String> = relay.map(|relay| relay.source.table().to_string()).into_iter().collect();
    // What is told without it is the error itself.
    let session = crate::cli::session(config, "cursor").await.ok()?;
    locked::why(name, &locked::locks(&session, &tables).await.ok()?)
}

/// The sentence, then the steps in order, then what can be done instead. Errors are others' words: they play no tricks on a
/// terminal.
fn render(why: &Why) -> String {
    let mut text = format!("{}\n", visible(&why.sentence));
    let (mut number, mut below) = (0, false);
    for advice in why.advice.iter().filter(|advice| !advice.is_empty()) {
        if below {
            text.push_str(&format!("     {}\n", visible(advice)));
        } else {
            number += 1;
            text.push_str(&format!("  {number}. {}\n", visible(advice)));
        }
        // The commands of a step stand below it.
        below |= advice.ends_with(':');
    }
    for instead in &why.instead {
        text.push_str(&format!("  or: {}\n", visible(instead)));
    }
    text
}

fn document(name: &str, why: &Why, more: Members) -> serde_json::Value {
    let mut document = serde_json::json!({
        "cursor": name,
        "reason": why.reason,
        "ok": why.well,
        "summary": why.sentence,
        "next_steps": why.advice.iter().chain(&why.instead).collect::<Vec<_>>(),
    });
    if let Some(members) = document.as_object_mut() {
        members.extend(more);
    }
    document
}

/// What is known only of a cursor that could be looked at.
fn rest(facts: &CursorFacts) -> Members {
    let rest = serde_json::json!({
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
    });
    rest.as_object().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_numbered_and_alternatives_follow() {
        let why = Why {
            reason: "halted",
            well: false,
            sentence: "a is halted.".to_owned(),
            advice: ["Raise the limit.", "outbox-relay cursor resume a"].map(str::to_owned).into(),
            instead: vec!["outbox-relay cursor skip a".to_owned()],
        };
        assert_eq!(
            render(&why),
            "a is halted.\n  1. Raise the limit.\n  2. outbox-relay cursor resume a\n  or: outbox-relay cursor skip a\n"
        );
        let advice = ["End its session:", "SELECT pg_terminate_backend(1);"].map(str::to_owned).into();
        let held = Why { advice, instead: Vec::new(), ..why };
        assert_eq!(render(&held), "a is halted.\n  1. End its session:\n     SELECT pg_terminate_backend(1);\n");
    }
}
