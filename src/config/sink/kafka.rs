//! `[relay.sink.kafka]`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::template;
use crate::config::problem::Wrong;
use crate::config::section::Section;
use crate::config::value;
use crate::sink::kafka::{Config, OnPartitionChange, Payload, RegistryConfig};

mod format;
mod schema;

pub(in crate::config) use schema::write as write_schema;

/// What such a sink depends on beside its own section.
#[derive(Clone, Copy, Debug)]
pub(in crate::config) struct Around<'a> {
    /// Whether `[kafka]` stands there.
    pub(in crate::config) has_cluster: bool,
    /// `[schema_registry]`, as [`crate::config::schema_registry::read`] gives it.
    pub(in crate::config) registry: Option<&'a Arc<RegistryConfig>>,
    /// Whether that section stands there at all.
    pub(in crate::config) has_registry: bool,
}

/// Headers that the relay writes itself.
const OURS: [&str; 5] = ["id", "created_at", "relay", "late", "replayed"];

pub(super) fn read(section: &Section<'_>, around: Around<'_>) -> Option<Config> {
    if !around.has_cluster {
        let fix = "add [kafka] with bootstrap_servers = \"127.0.0.1:9092\"";
        section.missing("", "no cluster is configured: the section [kafka] is missing", fix);
    }
    let key = section.read("key", value::column);
    let unordered = section.read("unordered", value::boolean).unwrap_or(false);
    if key.is_some() && unordered {
        let what = "a key keeps the order of its rows, unordered gives it up";
        section.problem("unordered", Wrong::new(what, "remove one of the two"));
    }
    let on_partition_change = section.read(
        "on_partition_change",
        value::word(&[("halt", OnPartitionChange::Halt), ("continue", OnPartitionChange::Continue)], &[]),
    );
    let payload = read_payload(section);
    let headers = read_headers(section);
    let format = format::read(section, payload.as_ref(), &headers, around);
    let topic = section.require("topic", value::parsed(topic), "name the topic: topic = \"bookings\"")?;
    Some(Config {
        topic,
        key,
        unordered,
        payload: payload?,
        headers,
        on_partition_change: on_partition_change.unwrap_or_default(),
        format: format?,
    })
}

fn topic(text: &str) -> Result<String, Wrong> {
    let text = template::parse(text)?;
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if template::is_fixed(&text) && (text.len() > 249 || text == "." || text == ".." || !text.chars().all(is_legal)) {
        let fix = "write 1 to 249 letters, digits, dots, underscores or hyphens";
        return Err(Wrong::new("Kafka has no topics of such a name", fix));
    }
    Ok(text)
}

fn read_payload(section: &Section<'_>) -> Option<Payload> {
    if !section.has("payload") {
        return Some(Payload::Row);
    }
    let payload = section.section("payload");
    let forms = "write { row = true }, { column = \"payload\" } or { columns = [\"id\", \"at\"] }";
    let row = payload.read("row", value::boolean);
    let column = payload.read("column", value::column);
    let columns = payload.read("columns", value::columns);
    let given = ["row", "column", "columns"].into_iter().filter(|key| payload.has(key)).count();
    if payload.is_present() && given != 1 {
        let what = format!("{given} of row, column and columns are given, one is needed");
        section.problem("payload", Wrong::new(what, forms));
        return None;
    }
    if row == Some(false) {
        payload.problem("row", Wrong::new("says what the payload is not", forms));
        return None;
    }
    row.map(|_| Payload::Row).or(column.map(Payload::Column)).or(columns.map(Payload::Columns))
}

fn read_headers(section: &Section<'_>) -> BTreeMap<String, String> {
    let headers = section.read("headers", value::texts).unwrap_or_default();
    for (name, column) in &headers {
        let wrong = if OURS.contains(&name.as_str()) {
            Wrong::new(format!("the header {name:?} is the relay's own"), "choose another name")
        } else if name.is_empty() || column.is_empty() || column.len() > 63 {
            Wrong::new(format!("the header {name:?} needs a name and a column"), "write { name = \"column\" }")
        } else {
            continue;
        };
        section.problem("headers", wrong);
    }
    headers
}
