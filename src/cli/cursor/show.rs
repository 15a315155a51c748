//! `outbox-relay cursor show`: everything about one cursor.

use std::process::ExitCode;

use super::{named, unknown};
use crate::cli::format::Format;
use crate::cli::output::print;
use crate::cli::table::Table;
use crate::config::Config;
use crate::cursor::{Detail, detail};
use crate::position::Timestamp;
use crate::relay::inspect::status::{CursorStatus, status};

/// Arguments of `cursor show`.
#[derive(Clone, Debug, PartialEq, Eq, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay cursor show booking_events
  outbox-relay cursor show booking_events -o json | jq .identity")]
pub struct Args {
    /// The cursor's name
    #[arg(value_name = "NAME")]
    pub name: String,
    /// How to print it
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
}

/// Shows it.
pub(super) async fn run(config: &Config, args: &Args) -> anyhow::Result<ExitCode> {
    named::one(config, &args.name)?;
    let session = crate::cli::session(config, "cursor").await?;
    let relays: Vec<_> = config.relays.iter().filter(|relay| relay.name == args.name).cloned().collect();
    let all = status(&session, &crate::cli::watcher(config, "cursor"), &relays).await?;
    let cursor = all.cursors.into_iter().find(|cursor| cursor.name == args.name).ok_or_else(|| unknown(&args.name))?;
    let detail = detail(&session, &args.name).await?;
    let document = document(&cursor, &detail)?;
    print(&match args.output {
        Format::Json => crate::cli::document::line(document),
        Format::Table => render(&document),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The document of `status`, and what is written down besides.
fn document(cursor: &CursorStatus, detail: &Detail) -> anyhow::Result<serde_json::Value> {
    let mut document = serde_json::to_value(cursor)?;
    let at = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let identity: Option<serde_json::Value> = detail.identity.as_deref().map(serde_json::from_str).transpose()?;
    let in_flight: Option<serde_json::Value> = detail.in_flight.as_deref().map(serde_json::from_str).transpose()?;
    let more = serde_json::json!({
        "key": [cursor.name],
        "identity": identity,
        "relations": detail.relations,
        "partitions": detail.partitions,
        "snapshot": detail.snapshot,
        "observed_at": at(detail.observed_at),
        "created_at": at(detail.created_at),
        "updated_at": at(detail.updated_at),
        "paused_at": at(detail.paused_at),
        "paused_by": detail.paused_by,
        "message_id": detail.message_id,
        "reported_at": at(detail.reported_at),
        "in_flight": in_flight,
        "change": { "requested": detail.change, "applied": detail.change_done, "pending": detail.change > detail.change_done },
    });
    if let (Some(document), serde_json::Value::Object(more)) = (document.as_object_mut(), more) {
        document.extend(more);
    }
    crate::cli::document::utc(&mut document);
    Ok(document)
}

/// A line for each fact; a fact of several parts has a line for each part.
fn render(document: &serde_json::Value) -> String {
    let mut table = Table::new(["FIELD", "VALUE"]);
    let mut add = |name: &str, value: &serde_json::Value| {
        let text = match value {
            serde_json::Value::Null => "-".to_owned(),
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        table.row([name.to_owned(), text]);
    };
    for (name, value) in document.as_object().into_iter().flatten().filter(|(name, _)| *name != "key") {
        match value {
            serde_json::Value::Object(parts) => {
                parts.iter().for_each(|(part, value)| add(&format!("{name}.{part}"), value));
            }
            value => add(name, value),
        }
    }
    table.render()
}
