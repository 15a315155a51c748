//! `[relay.source.pending]`: due rows.

use std::collections::BTreeMap;
use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use super::source::time_zone;
use super::tree::{Node, Value};
use super::{table_name, value};
use crate::source::Pending;

pub(super) const DEFAULT_LIMIT: u64 = 100;
pub(super) const DEFAULT_IN_FLIGHT: u64 = 10;
/// As many columns as anybody names a row by.
const MOST_KEYS: usize = 4;

pub(super) fn read(section: &Section<'_>) -> Option<Pending> {
    let key = section.require("key", key, "name the columns that name a row: key = [\"workspace_id\", \"id\"]");
    let due = section.require("due", value::column, "name the column that says when a row is due: due = \"due_at\"");
    let century = Duration::from_secs(100 * 365 * 86_400);
    let due_after = section.read("due_after", value::duration(Duration::ZERO..=century)).unwrap_or_default();
    let sent = section.read("sent", value::column);
    let filter = section.read("where", constants).unwrap_or_default();
    let time_zone = section.read("time_zone", value::parsed(time_zone));
    let limit = section.read("limit", value::integer(1..=10_000)).unwrap_or(DEFAULT_LIMIT);
    let in_flight = section.read("in_flight", value::integer(1..=100)).unwrap_or(DEFAULT_IN_FLIGHT);
    let fix = "name the table or view: [relay.source.pending] table = \"public.todos\"";
    let table = section.require("table", value::parsed(table_name::parse), fix)?;
    if (table.schema.as_str(), table.name.as_str()) == ("outbox", "message") {
        let what = "outbox.message is read as a stream: its days are dropped behind the positions of cursors, and due work has none";
        section.problem("table", Wrong::new(what, "write [relay.source.stream] table = \"outbox.message\""));
    }
    let (key, due) = (key?, due?);
    if sent.as_ref() == Some(&due) {
        let what = format!("due and sent are both {due:?}");
        section.problem("sent", Wrong::new(what, "name the column that says whether a row was sent, or remove `sent`"));
    }
    if let Some(sent) = sent.as_ref().filter(|sent| key.contains(sent)) {
        let what = format!("{sent:?} is part of the key");
        section.problem("sent", Wrong::new(what, "name the column that says whether a row was sent, or remove `sent`"));
    }
    let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (limit, in_flight) = (number(limit), number(in_flight));
    Some(Pending { table, key, due, due_after, sent, filter, time_zone, limit, in_flight, lanes: None })
}

fn key(node: &Node) -> Result<Vec<String>, Wrong> {
    let columns = value::columns(node)?;
    if columns.len() > MOST_KEYS {
        return Err(Wrong::new(format!("{} columns", columns.len()), "name a row by 1 to 4 columns"));
    }
    Ok(columns)
}

/// Columns and constants: no SQL, so that no text of the configuration is ever run.
fn constants(node: &Node) -> Result<BTreeMap<String, String>, Wrong> {
    let fix = "write columns and constants, for example { kind = \"reminder\", active = true }";
    let Value::Table(table) = &node.value else {
        return Err(Wrong::new(format!("{}, a table is needed", node.kind()), fix));
    };
    let mut constants = BTreeMap::new();
    for (column, (_, node)) in table {
        let constant = match &node.value {
            Value::Text(text) if text.contains('\0') => {
                return Err(Wrong::new(format!("{column}: PostgreSQL's text cannot hold a NUL"), fix));
            }
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Boolean(truth) => truth.to_string(),
            _ => return Err(Wrong::new(format!("{column} is {}", node.kind()), fix)),
        };
        constants.insert(column.clone(), constant);
    }
    Ok(constants)
}
