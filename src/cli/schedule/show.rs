//! `outbox-relay schedule show`: one schedule, what comes and what was.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::{Format, ScheduleSummary, list, named, print, title};
use crate::cli::action;
use crate::cli::table::visible;
use crate::jobs::journal;
use crate::position::Timestamp;
use crate::relay::inspect::planned::{local, rfc3339, state, utc, when, words};
use crate::schedule::Recurrence;

/// So many occurrences that come.
const NEXT: usize = 5;
/// So many actions that were.
const LAST: i64 = 10;

/// Arguments of `schedule show`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay schedule show report
  outbox-relay schedule show tenant_a/report -o json | jq -r '.next[].utc'

NEXT stands in the schedule's zone and in UTC, as the rule is now; LAST ACTIONS are newest first, and outlive the rule that \
they were made by.")]
pub struct Args {
    /// Its name, TENANT/NAME, or id
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How to print it
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

pub(super) async fn run(client: &tokio_postgres::Client, args: &Args) -> anyhow::Result<ExitCode> {
    let schedule = named(client, &args.name).await?;
    let filter =
        journal::ActionFilter { schedule_id: Some(schedule.id), limit: LAST, ..journal::ActionFilter::default() };
    let actions = journal::list(client, filter).await?;
    let next = next(&schedule);
    print(&match args.output {
        Format::Json => {
            let mut document = document(&schedule, &next, &actions)?;
            crate::cli::document::utc(&mut document);
            format!("{}\n", serde_json::to_string_pretty(&document)?)
        }
        Format::Table => {
            let now = client.query_one("SELECT pg_catalog.clock_timestamp()", &[]).await?.try_get(0)?;
            render(&schedule, (now, &next), &actions)?
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What comes: what a replica has planned, and what follows it by the rule. Nothing while nothing is planned.
fn next(schedule: &ScheduleSummary) -> Vec<Timestamp> {
    let Some(first) = schedule.next_at.filter(|_| state(schedule) == "planned") else { return Vec::new() };
    let following = Recurrence::new(&when(schedule)).and_then(|rule| rule.following(first, NEXT - 1));
    // Past the last year that is computed there is nothing to show.
    let following = following.unwrap_or_default();
    std::iter::once(first).chain(following.into_iter().map(|occurrence| occurrence.at)).collect()
}

fn columns(schedule: &ScheduleSummary) -> anyhow::Result<serde_json::Map<String, serde_json::Value>> {
    let mut columns: serde_json::Value = serde_json::from_str(&schedule.columns)?;
    crate::cli::document::utc(&mut columns);
    Ok(serde_json::from_value(columns)?)
}

fn render(
    schedule: &ScheduleSummary,
    (now, next): (Timestamp, &[Timestamp]),
    actions: &[journal::ActionSummary],
) -> anyhow::Result<String> {
    let mut text = format!("{}\n  when: {}\n", title(schedule), visible(&words(schedule)));
    for (name, value) in columns(schedule)? {
        let value = match value {
            serde_json::Value::Null => "-".to_owned(),
            serde_json::Value::String(text) => text,
            other => other.to_string(),
        };
        let _ = writeln!(text, "  {}: {}", visible(&name), visible(&value));
    }
    let _ = writeln!(text, "NEXT");
    for at in next {
        let here = local(*at, &schedule.time_zone).unwrap_or_else(|| "-".to_owned());
        let due = if *at <= now { "  has been due since then" } else { "" };
        let _ = writeln!(text, "  {here}  {}{due}", utc(*at));
    }
    if next.is_empty() {
        let _ = writeln!(text, "  none: {}", state(schedule));
    }
    let _ = writeln!(text, "LAST ACTIONS");
    if actions.is_empty() {
        let _ = writeln!(text, "  none");
    }
    if !actions.is_empty() {
        text.push_str(&action::render(actions));
    }
    Ok(text)
}

fn document(
    schedule: &ScheduleSummary,
    next: &[Timestamp],
    actions: &[journal::ActionSummary],
) -> anyhow::Result<serde_json::Value> {
    let mut document = list::json(schedule);
    for (name, value) in columns(schedule)? {
        if document[&name].is_null() && name != "next_at" {
            document[name] = value;
        }
    }
    let at = |at: &Timestamp| serde_json::json!({ "utc": utc(*at), "local": rfc3339(*at, &schedule.time_zone) });
    document["next"] = next.iter().map(at).collect();
    document["actions"] = actions.iter().map(action::json).collect();
    Ok(document)
}
