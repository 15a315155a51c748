//! `outbox-relay status`: how far is every cursor?

use std::process::ExitCode;
use std::time::Duration;

use super::format::Format;
use super::output::{complain, print};
use super::table::Table;
use crate::config::{Config, parse_duration};
use crate::database::Sessions;
use crate::relay::status::{Status, status};
use crate::source::watcher::Watcher;

/// Arguments of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  outbox-relay status
  outbox-relay status -o json | jq '.cursors[] | {name, lag_seconds}'
  outbox-relay status --max-lag 10s                exit 3 when a cursor lags more than that

Lag is the age of the oldest committed row that is not delivered yet, held back or not.")]
pub struct Args {
    /// How to print the cursors
    #[arg(short = 'o', long = "output", value_enum, default_value_t)]
    pub output: Format,
    /// Exit with 3 when a cursor lags more than this, for example 10s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub max_lag: Option<Duration>,
}

/// Shows the cursors.
///
/// # Errors
/// When PostgreSQL cannot be asked.
pub async fn run(config: Config, args: Args) -> anyhow::Result<ExitCode> {
    let limits = super::run::limits(&config.relays);
    let session = super::session(&config, "status").await?;
    let sessions = Sessions::new(config.postgres.clone(), limits, super::application("status"));
    let watcher = Watcher::new(sessions, limits.statement);
    let status = status(&session, &watcher, &config.relays).await?;
    let text = match args.output {
        Format::Json => format!("{}\n", serde_json::to_string(&status)?),
        Format::Table => render(&status),
    };
    print(&text)?;
    if status.cursors.is_empty() {
        complain("no cursor yet: `outbox-relay run` makes them");
    }
    let breached = args.max_lag.is_some_and(|most| {
        status.cursors.iter().any(|cursor| cursor.lag_seconds.is_none_or(|lag| lag > most.as_secs_f64()))
    });
    Ok(if breached { ExitCode::from(super::THRESHOLD) } else { ExitCode::SUCCESS })
}

fn render(status: &Status) -> String {
    let mut table = Table::new(["CURSOR", "STATE", "LAG", "BACKLOG", "HOLDER", "ADVANCED", "HORIZON", "LAST ERROR"]);
    for cursor in &status.cursors {
        let dash = || "-".to_owned();
        let backlog = cursor
            .backlog_rows
            .map_or_else(dash, |rows| format!("{rows}{}", if cursor.backlog_capped == Some(true) { "+" } else { "" }));
        table.row([
            cursor.name.clone(),
            cursor.state.to_owned(),
            cursor.lag_seconds.map_or_else(dash, |lag| format!("{lag:.1}s")),
            backlog,
            cursor.holder.as_ref().map_or_else(dash, ToString::to_string),
            cursor.advanced_at.clone().unwrap_or_else(|| "never".to_owned()),
            cursor.horizon.as_ref().map_or_else(dash, ToString::to_string),
            cursor.error_line().unwrap_or_else(dash),
        ]);
    }
    table.render()
}
