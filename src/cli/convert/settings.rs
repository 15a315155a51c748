//! A Debezium configuration as keys and values, whichever form it has.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};
use serde_json::Value;

/// Prefixes that Debezium Server has before a connector's keys.
const PREFIXES: [&str; 2] = ["debezium.source.", "debezium."];

/// The keys that have not been translated yet. Those of Debezium Server are named as Kafka Connect has them: `database.hostname` for
/// `debezium.source.database.hostname`, `transforms` for `debezium.transforms`, `sink.type` for `debezium.sink.type`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Reads properties, or the JSON of a connector, with or without its `config`.
    pub(super) fn read(text: &str) -> anyhow::Result<Self> {
        // Editors of Windows begin a file with a mark of its encoding.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let pairs = if text.trim_start().starts_with('{') { json(text)? } else { properties(text)? };
        let short = |key: String| match PREFIXES.iter().find_map(|prefix| key.strip_prefix(prefix)) {
            Some(short) => short.to_owned(),
            None => key,
        };
        Ok(Self(pairs.into_iter().map(|(key, value)| (short(key), value.trim().to_owned())).collect()))
    }

    /// The value of a key, which then counts as translated; none where it is absent or empty.
    pub(super) fn take(&mut self, key: &str) -> Option<String> {
        self.0.remove(key).filter(|value| !value.is_empty())
    }

    /// Removes all keys that begin so; what follows the prefix, with its value.
    pub(super) fn take_all(&mut self, prefix: &str) -> Vec<(String, String)> {
        let keys: Vec<String> = self.0.keys().filter(|key| key.starts_with(prefix)).cloned().collect();
        keys.into_iter().filter_map(|key| Some((key[prefix.len()..].to_owned(), self.0.remove(&key)?))).collect()
    }

    /// The first of these keys whose name or value has a control character, and that character. A text that is never copied may have some.
    pub(super) fn control_character(&self, is_asked: impl Fn(&str) -> bool) -> Option<(&str, char)> {
        let is_copied = |key: &str| !key.ends_with("password") && !key.ends_with("sasl.jaas.config");
        self.0.iter().filter(|(key, _)| is_copied(key) && is_asked(key)).find_map(|(key, value)| {
            let found = key.chars().chain(value.chars()).find(|letter| letter.is_control())?;
            Some((key.as_str(), found))
        })
    }

    /// The keys that are left.
    pub(super) fn left(self) -> Vec<String> {
        self.0.into_keys().collect()
    }
}

fn json(text: &str) -> anyhow::Result<Vec<(String, String)>> {
    let document: Value = serde_json::from_str(text).context("it is no JSON")?;
    let config = document.get("config").unwrap_or(&document);
    let Some(object) = config.as_object() else { bail!("its `config` is no object") };
    let value = |(key, value): (&String, &Value)| match value {
        Value::String(text) => Ok((key.clone(), text.clone())),
        Value::Number(_) | Value::Bool(_) => Ok((key.clone(), value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            bail!("the value of {key} is no text, number or truth value")
        }
    };
    object.iter().map(value).collect()
}

fn properties(text: &str) -> anyhow::Result<Vec<(String, String)>> {
    Ok(java_properties::read(text.as_bytes()).context("its properties cannot be read")?.into_iter().collect())
}
