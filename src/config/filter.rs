//! `where` of `[relay.source.stream]`: which rows are delivered.

use std::collections::BTreeMap;

use super::problem::Wrong;
use super::section::Section;
use super::show::quote;
use super::tree::{Node, Value};
use crate::relay::Guarantee;
use crate::source::Condition;

const FIX: &str = "write columns and constants, for example { status = \"confirmed\", region = [\"eu\", \"us\"], deleted_at = \"null\" }";

/// Columns and constants: no SQL, so that no text of the configuration is ever run.
pub(super) fn read(node: &Node) -> Result<BTreeMap<String, Condition>, Wrong> {
    let Value::Table(table) = &node.value else {
        return Err(Wrong::new(format!("{}, a table is needed", node.kind()), FIX));
    };
    table.iter().map(|(column, (_, node))| Ok((column.clone(), condition(column, node)?))).collect()
}

fn condition(column: &str, node: &Node) -> Result<Condition, Wrong> {
    let nodes = match &node.value {
        Value::Array(nodes) if nodes.is_empty() => {
            return Err(Wrong::new(format!("{column}: an empty list: no row has such a value"), FIX));
        }
        Value::Array(nodes) => nodes.iter().collect(),
        _ => vec![node],
    };
    let mut condition = Condition::default();
    for node in nodes {
        match constant(column, node)? {
            None => condition.null = true,
            Some(value) => condition.values.push(value),
        }
    }
    Ok(condition)
}

/// None is SQL's NULL.
fn constant(column: &str, node: &Node) -> Result<Option<String>, Wrong> {
    match &node.value {
        Value::Text(text) if text.contains('\0') => {
            Err(Wrong::new(format!("{column}: PostgreSQL's text cannot hold a NUL"), FIX))
        }
        Value::Text(text) if text == "null" => Ok(None),
        Value::Text(text) => Ok(Some(text.clone())),
        Value::Integer(number) => Ok(Some(number.to_string())),
        Value::Boolean(truth) => Ok(Some(truth.to_string())),
        _ => Err(Wrong::new(format!("{column} is {}", node.kind()), FIX)),
    }
}

/// What it cannot be together with.
pub(super) fn judge(relay: &Section<'_>, guarantee: Guarantee) {
    let source = relay.section("source");
    if !source.has("stream") {
        return;
    }
    let stream = source.section("stream");
    if guarantee == Guarantee::AtMostOnce && stream.has("where") {
        let what = "not available with guarantee = \"at_most_once\"";
        stream.problem("where", Wrong::new(what, "remove it, or write guarantee = \"at_least_once\""));
    }
}

/// As TOML.
pub(super) fn print(filter: &BTreeMap<String, Condition>) -> String {
    let condition = |condition: &Condition| {
        let null = condition.null.then_some("null");
        let values: Vec<String> = condition.values.iter().map(String::as_str).chain(null).map(quote).collect();
        if let [value] = &*values { value.clone() } else { format!("[{}]", values.join(", ")) }
    };
    let pairs: Vec<String> =
        filter.iter().map(|(column, given)| format!("{} = {}", quote(column), condition(given))).collect();
    format!("{{ {} }}", pairs.join(", "))
}
