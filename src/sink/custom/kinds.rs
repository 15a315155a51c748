//! Which kinds of sinks a program has of its own, and how one is made of its table.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use toml::Value;

use super::{Config, CustomSink};
use crate::sink::{InvalidSetting, Kind};
use crate::visible::words;

/// What the program's own sinks cannot be called, beside the other kinds: metrics, `status` and identities have these words for others.
const TAKEN: [&str; 4] = ["pending", "requests", "schedule", "stream"];
/// The longest target that is kept.
const LONGEST_TARGET: usize = 500;
/// What stands for a value in an error.
const HIDDEN: &str = "***";

type Make = dyn Fn(&Table) -> Result<Arc<dyn CustomSink>, InvalidSetting> + Send + Sync;

/// The registered kinds, by their names; see [`Program::sink`](crate::Program::sink).
#[derive(Clone, Default)]
pub struct Kinds(BTreeMap<&'static str, Arc<Make>>);

impl Kinds {
    /// Registers a kind.
    ///
    /// # Panics
    /// When the name is no name, or is taken: that is a mistake in the program.
    pub fn add<S: CustomSink>(
        &mut self,
        kind: &'static str,
        make: impl Fn(&Table) -> Result<S, InvalidSetting> + Send + Sync + 'static,
    ) {
        let is_name = kind.starts_with(|c: char| c.is_ascii_lowercase())
            && kind.len() <= 40
            && kind.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        assert!(
            is_name,
            "a kind of sinks is named by at most 40 of a-z, 0-9 and _, and begins with a letter: {kind:?}"
        );
        let is_free = Kind::of_name(kind).is_none() && !TAKEN.contains(&kind) && !self.0.contains_key(kind);
        assert!(is_free, "there is a kind of sinks called {kind:?} already");
        self.0.insert(kind, Arc::new(move |table| Ok(Arc::new(make(table)?))));
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.0.keys().copied()
    }

    /// Makes the sink of a table; none when no such kind is registered.
    #[must_use]
    pub fn make(&self, kind: &str, table: Table) -> Option<Result<Config, InvalidSetting>> {
        let (kind, make) = self.0.get_key_value(kind)?;
        Some(make(&table).map(|sink| {
            let mut description = sink.description();
            // It stands in a column, in logs and on terminals.
            description.target = words(&description.target, LONGEST_TARGET);
            description.one_by_one |= description.min_interval.is_some();
            Config { kind, table, description, sink }
        }))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A sink's own keys in the configuration: all of `[relay.sink.custom]` but `kind`.
#[derive(Clone, PartialEq)]
pub struct Table(pub(crate) toml::Table);

impl Table {
    /// Reads the keys as serde does. Give the type `#[serde(deny_unknown_fields)]`, so that a misspelt key is an error. An
    /// instant is a text.
    ///
    /// # Errors
    /// Names the key that is wrong, without its value: any of them may be a secret.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, InvalidSetting> {
        serde_path_to_error::deserialize(Value::Table(self.0.clone())).map_err(|error| {
            let path = error.path().to_string();
            let key = if path == "." { String::new() } else { path };
            let first = key.split(['.', '[']).next().unwrap_or_default();
            let mut problem = error.inner().message().to_owned();
            match self.0.get(first) {
                Some(value) => hide(value, &mut problem),
                None => self.0.values().for_each(|value| hide(value, &mut problem)),
            }
            InvalidSetting { key, problem }
        })
    }
}

/// Takes a value out of what serde says of it: a text in quotation marks or in backticks, a number in backticks.
fn hide(value: &Value, text: &mut String) {
    match value {
        Value::String(value) if value.is_empty() => {}
        Value::String(value) => {
            *text = text.replace(&format!("{value:?}"), HIDDEN).replace(&format!("`{value}`"), HIDDEN);
        }
        Value::Integer(value) => *text = text.replace(&format!("`{value}`"), HIDDEN),
        Value::Array(values) => values.iter().for_each(|value| hide(value, text)),
        Value::Table(values) => values.values().for_each(|value| hide(value, text)),
        Value::Float(_) | Value::Boolean(_) | Value::Datetime(_) => {}
    }
}

impl fmt::Debug for Table {
    /// The names of the keys alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
