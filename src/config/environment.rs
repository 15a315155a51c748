//! The environment as a source: `OUTBOX_RELAY__SECTION__KEY` laid over the file.

use std::collections::BTreeMap;

use super::keys;
use super::problem::{Place, Problem, Report};
use super::tree::{Node, TomlTable, Value};

/// Environment variables by name. An argument everywhere, so that tests never touch the process's own.
pub type Environment = BTreeMap<String, String>;

const PREFIX: &str = "OUTBOX_RELAY__";

/// Sections that variables may fill; relays stand in the file, because their order and names matter.
fn sections() -> impl Iterator<Item = &'static str> {
    keys::of("").iter().copied().filter(|section| *section != "relay")
}

/// Variables that mean something by themselves, the tests' among them.
const KNOWN: [&str; 6] = ["CONFIG", "ALLOW_LOSS", "PG_BIN", "PG_MAJOR", "KAFKA_JARS", "SEED"];

/// The environment of this process. Values that are no UTF-8 keep a replacement character instead of what is none.
#[must_use]
pub fn of_process() -> Environment {
    std::env::vars_os()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
        .collect()
}

/// Lays the variables over the tree; a variable wins over the file.
pub(super) fn overlay(root: &mut TomlTable, environment: &Environment, report: &Report) {
    for (name, value) in environment {
        let Some(rest) = name.strip_prefix(PREFIX) else {
            unknown(name, value, report);
            continue;
        };
        let place = Place::Variable(name.clone());
        let lower = rest.to_ascii_lowercase();
        let node = Node { place: place.clone(), value: Value::Text(value.clone()) };
        match lower.split("__").collect::<Vec<_>>()[..] {
            ["kafka", "properties", property] if !property.is_empty() => {
                let kafka = table(root, "kafka", &place);
                let properties = kafka.and_then(|kafka| table(kafka, "properties", &place));
                if let Some(properties) = properties {
                    properties.insert(property.replace('_', "."), (place, node));
                }
            }
            [section, key] if sections().any(|known| known == section) => {
                if let Some(table) = table(root, section, &place) {
                    table.insert(key.to_owned(), (place, node));
                }
            }
            _ => report.add(stranger(place, &lower)),
        }
    }
}

/// The table of that key, made when it is absent; `None` when something else stands there, which its reader reports.
fn table<'a>(parent: &'a mut TomlTable, key: &str, place: &Place) -> Option<&'a mut TomlTable> {
    let empty = || (place.clone(), Node { place: place.clone(), value: Value::Table(TomlTable::new()) });
    match &mut parent.entry(key.to_owned()).or_insert_with(empty).1.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}

/// Refuses a variable that was meant for a key, and warns of any other that has our name and no meaning.
fn unknown(name: &str, value: &str, report: &Report) {
    let Some(rest) = name.strip_prefix("OUTBOX_RELAY_").filter(|rest| !KNOWN.contains(rest)) else { return };
    if of_kubernetes(rest, value) {
        return;
    }
    let lower = rest.to_ascii_lowercase();
    if let Some((key, meant)) = meant(&lower) {
        let what = "sets nothing: the name needs two underscores where it has one".to_owned();
        let place = Place::Variable(name.to_owned());
        report.add(Problem { place, key, value: None, what, fix: format!("write {meant}"), missing: false });
        return;
    }
    let hint = match keys::nearest(rest, KNOWN) {
        Some(near) => format!("Write OUTBOX_RELAY_{near}, or remove it."),
        None => format!("Remove it, or write {PREFIX}SECTION__KEY, which sets a key of the configuration."),
    };
    tracing::warn!(variable = name, hint, "unknown environment variable ignored");
}

/// The key that a name with single underscores was meant for, and the variable that sets it.
fn meant(lower: &str) -> Option<(String, String)> {
    let (section, key) = sections().find_map(|section| {
        let key = lower.strip_prefix(section)?.strip_prefix('_')?.trim_start_matches('_');
        (!key.is_empty()).then_some((section, key))
    })?;
    let parts = match key.strip_prefix("properties_").filter(|_| section == "kafka") {
        Some(property) => vec![section, "properties", property.trim_start_matches('_')],
        None => vec![section, key],
    };
    Some((parts.join("."), format!("{PREFIX}{}", parts.join("__").to_ascii_uppercase())))
}

/// Kubernetes describes a service called outbox-relay, or outbox-relay-…, by variables.
fn of_kubernetes(rest: &str, value: &str) -> bool {
    let protocols = ["TCP", "UDP", "SCTP"];
    let has_port = rest.starts_with("PORT_") || rest.contains("_PORT_");
    protocols.iter().any(|protocol| value.starts_with(&format!("{}://", protocol.to_ascii_lowercase())))
        || rest.ends_with("SERVICE_HOST")
        || rest.contains("SERVICE_PORT")
        || (has_port && rest.split('_').any(|word| protocols.contains(&word)))
}

fn stranger(place: Place, lower: &str) -> Problem {
    let section = lower.split("__").next().unwrap_or_default();
    let (what, fix) = if section == "relay" {
        ("relays cannot be set by variables".to_owned(), "write them in the file".to_owned())
    } else if let Some((_, meant)) = meant(lower) {
        ("names no key that a variable can set".to_owned(), format!("write {meant}"))
    } else {
        let what = "names no key that a variable can set".to_owned();
        let fix = match keys::nearest(section, sections()) {
            Some(meant) if meant != section => format!("did you mean {PREFIX}{}__…?", meant.to_ascii_uppercase()),
            _ => {
                let sections = sections().collect::<Vec<_>>().join(", ").to_ascii_uppercase();
                format!("the form is {PREFIX}SECTION__KEY, the sections are {sections}")
            }
        };
        (what, fix)
    };
    Problem { place, key: lower.replace("__", "."), value: None, what, fix, missing: false }
}
