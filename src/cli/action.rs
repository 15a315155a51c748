//! `outbox-relay action`: the occurrences of schedules, and what became of each.

use std::process::ExitCode;

use super::format::Format;
use super::known;
use super::output::{complain, print};
use super::table::Table;
use crate::config::Config;
use crate::jobs::journal::{self, ActionFilter, ActionSummary};
use crate::retention;

/// So much of a result or an error stands in a table.
const SHOWN: usize = 80;

/// Arguments of `action`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay action list                             the newest actions of all schedules
  outbox-relay action list --status failed             what has failed, and why
  outbox-relay action list --schedule tenant_a/report --limit 5
  outbox-relay action list --status running -o json | jq '.actions[] | {schedule, progress}'

An action is one occurrence of a schedule, for one tenant. It outlives its schedule, until [retention] takes it away.

Exit codes: 0 done; 1 failed; 2 usage or configuration, or no relay or schedule of that name.")]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do with actions.
#[derive(Clone, Debug, PartialEq, Eq, clap::Subcommand)]
pub enum Verb {
    /// List them, the newest first
    List {
        /// Only of this relay
        #[arg(long, value_name = "NAME")]
        relay: Option<String>,
        /// Only of this schedule: the name that it had then, TENANT/NAME, or its id
        #[arg(long, value_name = "NAME")]
        schedule: Option<String>,
        /// Only this tenant's
        #[arg(long, value_name = "TENANT")]
        tenant: Option<String>,
        /// Only in this state
        #[arg(long, value_name = "STATUS", value_parser = ["queued", "due", "running", "completed", "failed", "skipped"])]
        status: Option<String>,
        /// How many to list at most
        #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..))]
        limit: i64,
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
    let session = super::schema_session(&config, "action").await?;
    // A search through a long history is no turn.
    retention::patient(&session).await?;
    let Verb::List { relay, schedule, tenant, status, limit, output } = args.verb;
    known::relay(&session, &config, "relay", relay.as_deref()).await?;
    let schedule_id = schedule.as_deref().and_then(|text| text.parse().ok());
    let filter = ActionFilter {
        relay: relay.as_deref(),
        tenant: tenant.as_deref(),
        status: status.as_deref(),
        schedule_id,
        schedule: schedule.as_deref().filter(|_| schedule_id.is_none()),
        limit,
    };
    let found = journal::list(&session, filter).await?;
    // None of one that there never was is no result.
    if let Some(name) = schedule.as_deref().filter(|_| found.is_empty()) {
        known::schedule(&session, name, schedule_id).await?;
    }
    print(&match output {
        Format::Json => {
            crate::cli::document::line(serde_json::json!({ "actions": found.iter().map(json).collect::<Vec<_>>() }))
        }
        Format::Table => render(&found),
    })?;
    if i64::try_from(found.len()).is_ok_and(|listed| listed == limit) {
        complain(format!("there may be more than these {limit}: choose by --schedule and --status, or raise --limit"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Actions for people.
pub(super) fn render(found: &[ActionSummary]) -> String {
    let mut table = Table::new([
        "ID",
        "SCHEDULE",
        "TENANT",
        "PLANNED",
        "STARTED",
        "TOOK",
        "STATUS",
        "FAILED TRIES",
        "PROGRESS",
        "RESULT OR ERROR",
    ]);
    for action in found {
        let dash = || "-".to_owned();
        let short = |text: &str| match text.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        let manual = if action.manual { " (asked for)" } else { "" };
        table.row([
            action.id.to_string(),
            action.schedule.clone(),
            Some(&action.tenant).filter(|tenant| !tenant.is_empty()).cloned().unwrap_or_else(dash),
            format!("{}{manual}", action.planned_at),
            action.started_at.map_or_else(dash, |at| at.to_string()),
            action.took.map_or_else(dash, |took| format!("{took:.1}s")),
            action.status.clone(),
            action.attempts.to_string(),
            action.progress.as_deref().map_or_else(dash, short),
            outcome(action).map_or_else(dash, |text| short(&text)),
        ]);
    }
    table.render()
}

fn error(action: &ActionSummary) -> Option<serde_json::Value> {
    serde_json::from_str(action.error.as_deref()?).ok()
}

/// What was answered, or else why the last try failed.
fn outcome(action: &ActionSummary) -> Option<String> {
    action.result.clone().or_else(|| {
        let error = error(action)?;
        let word = |key: &str| error[key].as_str().unwrap_or("-");
        Some(format!("{}: {}", word("code"), word("message")))
    })
}

/// An action for programs.
pub(super) fn json(action: &ActionSummary) -> serde_json::Value {
    serde_json::json!({
        "key": [action.id.to_string()],
        "schedule_id": action.schedule_id,
        "schedule": action.schedule,
        "tenant": action.tenant,
        "relay": action.relay,
        "planned_at": action.planned_at.to_string(),
        "due_at": action.due_at.to_string(),
        "started_at": action.started_at.map(|at| at.to_string()),
        "finished_at": action.finished_at.map(|at| at.to_string()),
        "took_seconds": action.took,
        "timeout_seconds": action.timeout,
        "status": action.status,
        "manual": action.manual,
        "attempts": action.attempts,
        "progress": action.progress,
        "result": action.result,
        "error": error(action),
        "by": action.by,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::position::Timestamp;

    #[test]
    fn hostile_results_forge_neither_a_line_nor_a_column_and_are_cut_in_a_table_only() {
        let action = ActionSummary {
            id: 7,
            schedule_id: 1,
            schedule: "\u{1b}[31m\nforged".to_owned(),
            tenant: String::new(),
            relay: "r".to_owned(),
            planned_at: Timestamp::from_pg_micros(1),
            due_at: Timestamp::from_pg_micros(1),
            started_at: Some(Timestamp::from_pg_micros(2)),
            finished_at: None,
            status: "due".to_owned(),
            manual: true,
            attempts: 2,
            progress: None,
            result: None,
            error: Some(format!(r#"{{"code": "http_503", "message": "{}"}}"#, "x\\n".repeat(500))),
            by: None,
            timeout: 60.0,
            took: None,
        };
        let text = render(std::slice::from_ref(&action));
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
        assert!(text.contains("http_503: x") && text.len() < 1_000, "{text}");
        assert!(text.contains("(asked for)"), "{text}");
        assert_eq!(json(&action)["error"]["message"].as_str().expect("text").len(), 1_000);
        assert_eq!((&json(&action)["key"][0], &json(&action)["took_seconds"]), (&"7".into(), &serde_json::Value::Null));
    }
}
