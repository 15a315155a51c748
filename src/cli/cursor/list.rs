//! `outbox-relay cursor list`.

use std::process::ExitCode;

use crate::cli::format::Format;
use crate::cli::output::print;
use crate::cli::table::Table;
use crate::cursor::control;
use crate::database::Session;
use crate::relay::engine::replicas::{Fleet, fleet};
use crate::relay::inspect::status::without_replica;

/// Lists the cursors, and the names that a live replica has and that were refused before they had one.
pub(super) async fn list(session: &Session, configured: &[&str], output: Format) -> anyhow::Result<ExitCode> {
    let mut cursors = control::list(session).await?;
    let fleet = fleet(session).await?;
    cursors.retain(|cursor| cursor.exists || !fleet.lacks(&cursor.name));
    let text = match output {
        Format::Json => {
            let cursors: Vec<_> =
                cursors.iter().map(|cursor| json(cursor, state(cursor, &fleet, configured))).collect();
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
                let state = state(cursor, &fleet, configured);
                let advanced = cursor.advanced_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
                let holder = cursor.holder.clone().unwrap_or_else(|| "-".to_owned());
                table.row([cursor.name.clone(), cursor.relay.clone(), position, holder, advanced, state.to_owned()]);
            }
            table.render()
        }
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The state that `status` gives it, as far as the cursor's row and the replicas tell.
fn state(cursor: &control::CursorSummary, fleet: &Fleet, configured: &[&str]) -> &'static str {
    let state = match (cursor.halted, cursor.paused, &cursor.last_error) {
        (true, ..) => "halted",
        (false, true, _) => "paused",
        (false, false, Some(_)) => "backing_off",
        (false, false, None) => "running",
    };
    if !fleet.lacks(&cursor.name) {
        return state;
    }
    without_replica(state, cursor.halted && cursor.by_check, configured.contains(&cursor.name.as_str()))
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
