//! A table of the configuration while it is read: knows its path and its keys, and reports what is wrong in it.

use super::keys::{self, Standing};
use super::problem::{Place, Problem, Report, Wrong};
use super::tree::{Node, TomlTable, Value};
use super::{redact, sink, syntax, units};

/// A section that may be absent: then every key has its default, or is missing.
#[derive(Debug)]
pub(super) struct Section<'a> {
    report: &'a Report,
    /// As printed: `relay[booking_sms].turn`.
    path: String,
    /// As in the list of keys: `relay.turn`.
    name: String,
    place: Place,
    table: Option<&'a TomlTable>,
}

impl<'a> Section<'a> {
    /// The whole document.
    pub(super) fn root(report: &'a Report, table: &'a TomlTable) -> Self {
        Self::open(report, String::new(), String::new(), Place::File, Some(table))
    }

    /// The section of that name, wherever it stands.
    #[cfg(test)]
    pub(super) fn named(report: &'a Report, name: &str, table: &'a TomlTable) -> Self {
        Self::open(report, name.to_owned(), name.to_owned(), Place::File, Some(table))
    }

    fn open(report: &'a Report, path: String, name: String, place: Place, table: Option<&'a TomlTable>) -> Self {
        let section = Self { report, path, name, place, table };
        section.report_strangers();
        section
    }

    /// The section of that key. One that is absent stands where this one stands.
    pub(super) fn section(&self, key: &'static str) -> Section<'a> {
        let path = self.path_of(key);
        let name = if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) };
        match self.node(key) {
            Some(Node { place, value: Value::Table(table) }) => {
                Self::open(self.report, path, name, place.clone(), Some(table))
            }
            Some(node) => {
                let what = format!("a table is needed here, this is {}", node.kind());
                self.problem(key, Wrong::new(what, format!("write it as a section: [{name}]")));
                Self { report: self.report, path, name, place: node.place.clone(), table: None }
            }
            None => Self { report: self.report, path, name, place: self.place.clone(), table: None },
        }
    }

    /// The sections of an array of tables, each named by its own `name`, or by its number.
    pub(super) fn sections(&self, key: &'static str) -> Vec<Section<'a>> {
        let Some(node) = self.node(key) else { return Vec::new() };
        let Value::Array(nodes) = &node.value else {
            let what = format!("an array of tables is needed here, this is {}", node.kind());
            self.problem(key, Wrong::new(what, format!("write two brackets: [[{key}]]")));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            let Value::Table(table) = &node.value else {
                self.problem(key, Wrong::new("every element must be a table", format!("write [[{key}]]")));
                continue;
            };
            let path = format!("{key}[{}]", syntax::label(table, at));
            sections.push(Self::open(self.report, path, key.to_owned(), node.place.clone(), Some(table)));
        }
        sections
    }

    /// The sections below that key, each under a name that is the user's own.
    pub(super) fn named_sections(&self, key: &'static str) -> Vec<(&'a str, Section<'a>)> {
        let Some(Node { value, .. }) = self.node(key) else { return Vec::new() };
        let name = format!("{}.{key}", self.name);
        let Value::Table(table) = value else {
            self.problem(key, Wrong::new("a table of sections is needed here", format!("write [{name}.NAME]")));
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (own, (_, node)) in table {
            let Value::Table(table) = &node.value else {
                let what = format!("a table is needed here, this is {}", node.kind());
                self.problem_at(Some(node), &format!("{key}.{own}"), Wrong::new(what, format!("write [{name}.{own}]")));
                continue;
            };
            let path = self.path_of(&format!("{key}.{own}"));
            sections.push((own.as_str(), Self::open(self.report, path, name.clone(), node.place.clone(), Some(table))));
        }
        sections
    }

    /// Whether the section stands in the configuration.
    pub(super) const fn is_present(&self) -> bool {
        self.table.is_some()
    }

    /// Whether nothing stands in the section.
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_none_or(TomlTable::is_empty)
    }

    /// Whether the key stands in the section, a key of this version or not.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.is_some_and(|table| table.contains_key(key))
    }

    pub(super) fn node(&self, key: &str) -> Option<&'a Node> {
        debug_assert!(keys::of(&self.name).contains(&key), "{key} is not in the list of keys of [{}]", self.name);
        self.table?.get(key).map(|(_, node)| node)
    }

    /// The value of a key; `None` when it is absent, or wrong and reported.
    pub(super) fn read<T>(&self, key: &'static str, convert: impl Fn(&Node) -> Result<T, Wrong>) -> Option<T> {
        match convert(self.node(key)?) {
            Ok(value) => Some(value),
            Err(wrong) => {
                self.problem(key, wrong);
                None
            }
        }
    }

    /// The value of a key that must be there.
    pub(super) fn require<T>(
        &self,
        key: &'static str,
        convert: impl Fn(&Node) -> Result<T, Wrong>,
        fix: &str,
    ) -> Option<T> {
        if !self.has(key) {
            self.missing(key, "missing", fix);
        }
        self.read(key, convert)
    }

    /// The keys that are the user's own, in a section that has such.
    pub(super) fn own(&self) -> impl Iterator<Item = (&'a str, &'a Node)> {
        let known = keys::of(&self.name);
        let all = self.table.into_iter().flatten();
        all.filter(move |(key, _)| !known.contains(&key.as_str())).map(|(key, (_, node))| (key.as_str(), node))
    }

    /// Reports what is wrong with a key of the user's own, as `a.b[0]`, or with the section when there is no such key.
    pub(super) fn own_problem(&self, key: &str, Wrong { what, fix }: Wrong) {
        let mut path = key.split('.').map(|part| part.split('[').next().unwrap_or_default());
        let mut node = self.table.zip(path.next()).and_then(|(table, key)| table.get(key)).map(|(_, node)| node);
        for part in path {
            let Some(Node { value: Value::Table(table), .. }) = node else { break };
            node = table.get(part).map(|(_, node)| node).or(node);
        }
        let value = node.filter(|_| !sink::sounds_secret(key)).and_then(harmless);
        let place = node.map_or(&self.place, |node| &node.place).clone();
        self.report.add(Problem { place, key: self.path_of(key), value, what, fix, missing: false });
    }

    /// Reports that a key is not there.
    pub(super) fn missing(&self, key: &str, what: &str, fix: &str) {
        let key = self.path_of(key);
        let (what, fix) = (what.to_owned(), fix.to_owned());
        self.report.add(Problem { place: self.place.clone(), key, value: None, what, fix, missing: true });
    }

    /// Reports what is wrong with the value of a key, or with the section when the key is absent.
    pub(super) fn problem(&self, key: &str, wrong: Wrong) {
        let node = self.table.and_then(|table| table.get(key)).map(|(_, node)| node);
        self.problem_at(node, key, wrong);
    }

    /// Reports what is wrong with a node below a key, for example `properties.acks`.
    pub(super) fn problem_at(&self, node: Option<&Node>, key: &str, wrong: Wrong) {
        let place = node.map_or(&self.place, |node| &node.place).clone();
        let value = node.map(|node| shown(key, node));
        let Wrong { what, fix } = wrong;
        self.report.add(Problem { place, key: self.path_of(key), value, what, fix, missing: false });
    }

    fn path_of(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", key) => key.to_owned(),
            (path, "") => path.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    fn report_strangers(&self) {
        if keys::is_open(&self.name) {
            return;
        }
        for (key, (place, node)) in self.table.into_iter().flatten() {
            let (what, fix) = match keys::standing(&self.name, key) {
                Standing::Known => continue,
                Standing::Elsewhere(section) => ("unknown key here".to_owned(), format!("it belongs to [{section}]")),
                Standing::Unknown(Some(meant)) => ("unknown key".to_owned(), format!("did you mean {meant:?}?")),
                Standing::Unknown(None) => ("unknown key".to_owned(), self.known()),
            };
            let (place, key) = (place.clone(), self.path_of(key));
            self.report.add(Problem { place, key, value: harmless(node), what, fix, missing: false });
        }
    }

    fn known(&self) -> String {
        match keys::of(&self.name) {
            [] => "remove it; nothing is configured here".to_owned(),
            keys => format!("remove it; known here: {}", keys.join(", ")),
        }
    }
}

/// A value for people: secrets hidden by the name of their key, passwords taken out of URLs.
fn shown(key: &str, node: &Node) -> String {
    let property = key.strip_prefix("properties.");
    match &node.value {
        Value::Text(text) if property.is_some_and(|name| !redact::is_plain_property(name, text)) => {
            redact::HIDDEN.to_owned()
        }
        Value::Integer(number)
            if property.is_some_and(|name| !redact::is_plain_property(name, &number.to_string())) =>
        {
            redact::HIDDEN.to_owned()
        }
        _ if redact::is_secret(key) => redact::HIDDEN.to_owned(),
        Value::Text(text) => match redact::text(key, text) {
            hidden if hidden == redact::HIDDEN => hidden,
            text => Node { place: node.place.clone(), value: Value::Text(text) }.print(),
        },
        _ => node.print(),
    }
}

/// The value of an unknown key: it may be a secret under a mistyped name, so only values that cannot be one are shown.
fn harmless(node: &Node) -> Option<String> {
    match &node.value {
        Value::Text(text) if units::duration(text).is_err() && units::size(text).is_err() => None,
        Value::Integer(number) if *number > 999_999 => None,
        Value::Array(_) | Value::Table(_) => None,
        Value::Text(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) | Value::Instant(_) => {
            Some(node.print())
        }
    }
}
