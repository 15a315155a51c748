//! The settings of the outbox event router: which columns become what of a record.

use std::fmt::Write as _;

use anyhow::{bail, ensure};

use super::super::settings::Settings;
use super::quoted;

const ROUTER: &str = "io.debezium.transforms.outbox.EventRouter";
const ANY: &str = "(?<routedByValue>.*)";
const ROUTED: &str = "${routedByValue}";

/// The outbox event router's settings.
pub(super) struct Router {
    id: String,
    key: String,
    pub(super) payload: String,
    created_at: Option<String>,
    topic: String,
    headers: Vec<(String, String)>,
    /// The payload was written as JSON, and not as a text in JSON.
    pub(super) expands: bool,
    /// A NULL payload was a null value in every format.
    pub(super) tombstones: bool,
}

impl Router {
    pub(super) fn take(settings: &mut Settings, notes: &mut Vec<String>) -> anyhow::Result<Self> {
        let chain = settings.take("transforms").unwrap_or_default();
        let types: Vec<(&str, Option<String>)> = chain
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(|name| (name, settings.take(&format!("transforms.{name}.type"))))
            .collect();
        let Some(name) = types.iter().find(|(_, kind)| kind.as_deref() == Some(ROUTER)).map(|(name, _)| *name) else {
            bail!(
                "no transform has the type {ROUTER}: messages are changes of whole tables then, and outbox-relay relays the rows of an outbox \
                 (docs/COMPARISON.md says when to use which)"
            );
        };
        if let Some((other, kind)) = types.iter().find(|(other, _)| *other != name) {
            let kind = kind.as_deref().unwrap_or("no type");
            bail!(
                "transforms.{other} ({kind}) changes messages, too, and cannot be translated: take it out, and decide what replaces it"
            );
        }
        let mut option = |key: &str| settings.take(&format!("transforms.{name}.{key}"));
        let or = |value: Option<String>, default: &str| value.unwrap_or_else(|| default.to_owned());
        let id = or(option("table.field.event.id"), "id");
        let key = or(option("table.field.event.key"), "aggregateid");
        let payload = or(option("table.field.event.payload"), "payload");
        let created_at = option("table.field.event.timestamp");
        let topic = topic(&mut option)?;
        let headers = headers(option("table.fields.additional.placement"))?;
        let expands = option("table.expand.json.payload").as_deref() == Some("true");
        let tombstones = option("route.tombstone.on.empty.payload").as_deref() == Some("true");
        let left = settings.take_all(&format!("transforms.{name}."));
        let needless = ["table.op.invalid.behavior", "table.json.payload.null.behavior", "predicate", "negate"];
        let left: Vec<String> =
            left.into_iter().map(|(key, _)| key).filter(|key| !needless.contains(&key.as_str())).collect();
        if !left.is_empty() {
            notes.push(format!("Settings of the event router that are not translated: {}.", left.join(", ")));
        }
        Ok(Self { id, key, payload, created_at, topic, headers, expands, tombstones })
    }

    /// What a table needs that Debezium did not.
    pub(super) fn notes_of_tables(&self, tables: &[String]) -> Vec<String> {
        let created_at = self.created_at.as_deref().unwrap_or("created_at");
        let each = |table: &String| {
            let Self { id, .. } = self;
            let column = match &self.created_at {
                Some(_) => format!(
                    "{table}.{created_at} gives the order: it must be a timestamptz that the database sets, not the application (`check` says how sure \
                     its order is). "
                ),
                None => format!(
                    "{table} needs a column that gives the order: ALTER TABLE {table} ADD COLUMN created_at timestamptz NOT NULL DEFAULT \
                     clock_timestamp(); (it rewrites the table, and gives all present rows about the same instant). "
                ),
            };
            format!(
                "{column}And an index: CREATE UNIQUE INDEX CONCURRENTLY ON {table} ({created_at}, {id}); `check` prints what else it wants, with the SQL."
            )
        };
        tables.iter().map(each).collect()
    }

    pub(super) fn relay(&self, table: &str) -> String {
        let Self { id, key, payload, topic, .. } = self;
        let name: String = table.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let name = name.strip_prefix("public_").unwrap_or(&name);
        let mut text = format!(
            "\n[[relay]]\nname = {}\n# Moving over without a gap begins shortly before the last row that Debezium has delivered: docs/howto/moving-over.md.\n\
             start = \"now\"\n[relay.source.stream]\ntable = {}\nid = {}\ncreated_at = {}\n[relay.sink.kafka]\ntopic = {}\nkey = {}\npayload = {{ column = {} }}\n",
            quoted(name),
            quoted(table),
            quoted(id),
            quoted(self.created_at.as_deref().unwrap_or("created_at")),
            quoted(topic),
            quoted(key),
            quoted(payload),
        );
        if !self.headers.is_empty() {
            let headers: Vec<String> = self
                .headers
                .iter()
                .map(|(header, column)| format!("{} = {}", quoted(header), quoted(column)))
                .collect();
            let _ = writeln!(text, "headers = {{ {} }}", headers.join(", "));
        }
        text
    }
}

/// The topic, perhaps as a template.
fn topic(option: &mut impl FnMut(&str) -> Option<String>) -> anyhow::Result<String> {
    let by = option("route.by.field").unwrap_or_else(|| "aggregatetype".to_owned());
    let pattern = option("route.topic.regex").unwrap_or_else(|| ANY.to_owned());
    let replacement = option("route.topic.replacement").unwrap_or_else(|| format!("outbox.event.{ROUTED}"));
    ensure!(
        pattern == ANY || !replacement.contains('$'),
        "route.topic.regex is {pattern}: only {ANY} can be translated; write the topic as a template of columns by hand"
    );
    let rest = replacement.replace(ROUTED, "");
    ensure!(!rest.contains('$'), "route.topic.replacement is {replacement}: only {ROUTED} can be translated");
    let plain = by.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    ensure!(plain || !replacement.contains(ROUTED), "route.by.field is {by}: a template needs a plain column name");
    Ok(replacement.replace(ROUTED, &format!("{{{{ {by} }}}}")))
}

/// Columns that become headers: `column:header` or `column:header:name`.
fn headers(placement: Option<String>) -> anyhow::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    for item in placement.iter().flat_map(|list| list.split(',')).map(str::trim).filter(|item| !item.is_empty()) {
        let parts: Vec<&str> = item.split(':').collect();
        match parts[..] {
            [column, "header"] => headers.push((column.to_owned(), column.to_owned())),
            [column, "header", name] => headers.push((name.to_owned(), column.to_owned())),
            _ => bail!(
                "table.fields.additional.placement has {item}: only columns in headers can be translated; make the payload in the application, or \
                 send columns by payload = {{ columns = [...] }}"
            ),
        }
    }
    Ok(headers)
}
