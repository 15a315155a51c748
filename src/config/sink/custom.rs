//! `[relay.sink.custom]`: a kind that the program has registered, and keys that are the sink's own.

use toml::Value as Toml;

use crate::config::keys;
use crate::config::problem::Wrong;
use crate::config::redact::{HIDDEN, is_secret};
use crate::config::section::Section;
use crate::config::show::{Secrets, TomlLines, quote};
use crate::config::tree::{Node, Value};
use crate::config::units;
use crate::config::value;
use crate::sink::Kind;
use crate::sink::custom::{Config, Kinds, Table};

/// Numbers above it may be secrets.
const LARGEST_PLAIN: i64 = 999_999;

pub(super) fn read(section: &Section<'_>, kinds: &Kinds) -> Option<Config> {
    let fix = "name the sink that the program registers: kind = \"unix_socket\"";
    let kind = section.require("kind", value::text, fix)?;
    let own = section.own().map(|(key, node)| (key.to_owned(), plain(node))).collect();
    match kinds.make(&kind, Table(own)) {
        Some(Ok(config)) => Some(config),
        Some(Err(invalid)) => {
            let fix = format!("write what the sink {kind} takes: it reads this section itself");
            section.own_problem(&invalid.key, Wrong::new(invalid.problem, fix));
            None
        }
        None => {
            section.problem("kind", unknown(&kind, kinds));
            None
        }
    }
}

/// What is said of a kind that nobody has registered.
fn unknown(kind: &str, kinds: &Kinds) -> Wrong {
    let names: Vec<&str> = kinds.names().collect();
    if Kind::of_name(kind).is_some_and(|kind| kind != Kind::Custom) {
        return Wrong::new("a sink that every program has", format!("write [relay.sink.{kind}]"));
    }
    if names.is_empty() {
        let fix = "use one of [relay.sink.kafka], .http, .sms, .webhook, .email, .sql, .stdout; or run the program that \
                    registers this kind: a few lines of Rust, see docs/howto/own-sink.md";
        return Wrong::new("this program has no sinks of its own", fix);
    }
    let fix = match keys::nearest(kind, names.iter().copied()) {
        Some(meant) => format!("did you mean {meant:?}? Registered are: {}", names.join(", ")),
        None => format!("registered are: {}", names.join(", ")),
    };
    Wrong::new("no sink of this kind is registered in this program", fix)
}

/// The value as it stands in the file.
fn plain(node: &Node) -> Toml {
    match &node.value {
        Value::Text(text) => Toml::String(text.clone()),
        Value::Integer(number) => Toml::Integer(i64::try_from(*number).unwrap_or(i64::MAX)),
        Value::Float(number) => Toml::Float(*number),
        Value::Boolean(yes) => Toml::Boolean(*yes),
        Value::Instant(text) => text.parse().map_or_else(|_| Toml::String(text.clone()), Toml::Datetime),
        Value::Array(nodes) => Toml::Array(nodes.iter().map(plain).collect()),
        Value::Table(table) => Toml::Table(table.iter().map(|(key, (_, node))| (key.clone(), plain(node))).collect()),
    }
}

/// As it was understood. Nobody here knows what the sink's own keys hold, so texts are hidden, but for durations and sizes.
pub(in crate::config) fn write(lines: &mut TomlLines, config: &Config, secrets: Secrets) {
    lines.text("kind", config.kind);
    lines.comment(&format!("target: {}", config.description.target));
    for (key, value) in &config.table.0 {
        let value = if secrets == Secrets::Hidden { hidden(key, value) } else { value.clone() };
        let bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
        lines.raw(&if bare { key.clone() } else { quote(key) }, value);
    }
}

fn hidden(key: &str, value: &Toml) -> Toml {
    let is_plain = |text: &str| text.is_empty() || units::duration(text).is_ok() || units::size(text).is_ok();
    match value {
        Toml::Array(values) => Toml::Array(values.iter().map(|value| hidden(key, value)).collect()),
        Toml::Table(table) => below(key, table, hidden),
        _ if sounds_secret(key) => Toml::String(HIDDEN.to_owned()),
        Toml::String(text) if !is_plain(text) => Toml::String(HIDDEN.to_owned()),
        Toml::Integer(number) if *number > LARGEST_PLAIN => Toml::String(HIDDEN.to_owned()),
        Toml::String(_) | Toml::Integer(_) | Toml::Float(_) | Toml::Boolean(_) | Toml::Datetime(_) => value.clone(),
    }
}

/// The keys that replicas compare: all but those that sound like secrets, whose change changes nothing that is delivered.
pub(in crate::config) fn without_secrets(config: &Config) -> String {
    Toml::Table(config.table.0.iter().map(|(key, value)| (key.clone(), unnamed(key, value))).collect()).to_string()
}

fn unnamed(key: &str, value: &Toml) -> Toml {
    match value {
        Toml::Array(values) => Toml::Array(values.iter().map(|value| unnamed(key, value)).collect()),
        Toml::Table(table) => below(key, table, unnamed),
        _ if sounds_secret(key) => Toml::String(HIDDEN.to_owned()),
        Toml::String(_) | Toml::Integer(_) | Toml::Float(_) | Toml::Boolean(_) | Toml::Datetime(_) => value.clone(),
    }
}

/// A table whose own name sounds like a secret's has nothing else in it.
fn below(key: &str, table: &toml::Table, each: impl Fn(&str, &Toml) -> Toml) -> Toml {
    let name = |inner: &str| if sounds_secret(key) { key.to_owned() } else { inner.to_owned() };
    Toml::Table(table.iter().map(|(inner, value)| (inner.clone(), each(&name(inner), value))).collect())
}

/// As the names of this program's own keys and of headers do.
pub(in crate::config) fn sounds_secret(key: &str) -> bool {
    !key.ends_with("_file") && (is_secret(key) || is_secret(&key.replace('_', "-")))
}
