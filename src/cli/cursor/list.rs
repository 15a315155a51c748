//! `outbox-relay cursor list`.

use std::collections::HashMap;
use std::process::ExitCode;

use crate::cli::format::Format;
use crate::cli::output::print;
use crate::cli::table::Table;
use crate::config::Config;
use crate::cursor::control;
use crate::relay::inspect::status::{Status, status};

/// Lists the cursors, and the names that a live replica has and that were refused before they had one; the state of each is the one that
/// `status` prints.
pub(super) async fn list(config: &Config, output: Format) -> anyhow::Result<ExitCode> {
    let session = crate::cli::schema_session(config, "cursor").await?;
    let mut cursors = control::list(&session).await?;
    let status = status(&session, &crate::cli::watcher(config, "cursor"), &config.relays).await?;
    cursors.retain(|cursor| cursor.exists || !status.fleet.lacks(&cursor.name));
    let states = states(&status);
    // One that was removed meanwhile has none.
    let state = |name: &str| states.get(name).copied().unwrap_or("-");
    let text = match output {
        Format::Json => {
            let cursors: Vec<_> = cursors.iter().map(|cursor| json(cursor, state(&cursor.name))).collect();
            crate::cli::document::line(serde_json::json!({ "cursors": cursors }))
        }
        Format::Table => {
            let mut table = Table::new(["CURSOR", "RELAY", "POSITION", "HOLDER", "ADVANCED", "STATE"]);
            for cursor in &cursors {
                let position = match (&cursor.position_created_at, &cursor.position_id) {
                    (None, _) => "beginning".to_owned(),
                    (Some(at), Some(id)) => format!("{at} {id}"),
                    (Some(at), None) => at.to_string(),
                };
                let state = state(&cursor.name).to_owned();
                let advanced = cursor.advanced_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
                let holder = cursor.holder.clone().unwrap_or_else(|| "-".to_owned());
                table.row([cursor.name.clone(), cursor.relay.clone(), position, holder, advanced, state]);
            }
            table.render()
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The state of each cursor, by its name.
fn states(status: &Status) -> HashMap<&str, &'static str> {
    status.cursors.iter().map(|cursor| (cursor.name.as_str(), cursor.state)).collect()
}

fn json(cursor: &control::CursorSummary, state: &str) -> serde_json::Value {
    let error = cursor.last_error.as_deref().and_then(|text| serde_json::from_str::<serde_json::Value>(text).ok());
    serde_json::json!({
        "key": [cursor.name],
        "name": cursor.name,
        "relay": cursor.relay,
        "state": state,
        "position": { "created_at": cursor.position_created_at.map(|at| at.to_string()), "id": cursor.position_id },
        "holder": cursor.holder,
        "advanced_at": cursor.advanced_at.map(|at| at.to_string()),
        "paused": cursor.paused,
        "halted": cursor.halted,
        "last_error": error,
    })
}
