//! A configuration as a tree of values that know where they stand: from a TOML text, with the environment laid over it.
//!
//! The tree is read by hand because deserialising stops at the first problem, and all are to be reported together.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{Place, Report};
use super::syntax::{self, Unchecked};

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A TOML value. Values of environment variables are texts; where a number is needed they are read as one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Instant(String),
    Array(Vec<Node>),
    Table(TomlTable),
}

/// Keys, each with its own place and its value.
pub(super) type TomlTable = BTreeMap<String, (Place, Node)>;

impl Node {
    /// What the value is, with its article, for people.
    pub(super) const fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Boolean(_) => "a boolean",
            Value::Instant(_) => "a date-time",
            Value::Array(_) => "an array",
            Value::Table(_) => "a table",
        }
    }

    /// The value as it was written, for people; long ones are cut.
    pub(super) fn print(&self) -> String {
        match &self.value {
            Value::Text(text) if text.chars().count() > 80 => {
                format!("{:?}…", text.chars().take(80).collect::<String>())
            }
            Value::Text(text) => format!("{text:?}"),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(yes) => yes.to_string(),
            Value::Instant(text) => text.clone(),
            Value::Array(_) => "[…]".to_owned(),
            Value::Table(_) => "{…}".to_owned(),
        }
    }
}

/// A parsed text. After an error that leaves the rest in doubt, `certain` is the number of the last line that is not.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) root: TomlTable,
    pub(super) certain: usize,
}

/// Reads a TOML text, reports its syntax errors and goes on with what can still be read.
pub(super) fn parse(text: &str, report: &Report) -> Document {
    let (root, errors) = DeTable::parse_recoverable(text);
    let lines = LineStarts::of(text);
    let root = table(&lines, root.get_ref());
    let mut certain = usize::MAX;
    for error in &errors {
        let place = lines.place_of(error.span().unwrap_or(0..0));
        if syntax::doubt(error.message()) == Unchecked::Rest
            && let Place::Line(line, _) = place
        {
            certain = certain.min(line.saturating_sub(1));
        }
        report.add(syntax::problem(error.message(), text, place, &root));
    }
    Document { root, certain }
}

fn table(lines: &LineStarts<'_>, from: &DeTable<'_>) -> TomlTable {
    from.iter()
        .map(|(key, value)| (key.get_ref().to_string(), (lines.place_of(key.span()), node(lines, value))))
        .collect()
}

fn node(lines: &LineStarts<'_>, from: &Spanned<DeValue<'_>>) -> Node {
    let value = match from.get_ref() {
        DeValue::String(value) => Value::Text(value.to_string()),
        DeValue::Integer(value) => {
            Value::Integer(i128::from_str_radix(value.as_str(), value.radix()).unwrap_or(i128::MAX))
        }
        DeValue::Float(value) => Value::Float(value.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(value) => Value::Instant(value.to_string()),
        DeValue::Array(values) => Value::Array(values.iter().map(|value| node(lines, value)).collect()),
        DeValue::Table(values) => Value::Table(table(lines, values)),
    };
    Node { place: lines.place_of(from.span()), value }
}

/// A text and where its lines begin: each of thousands of relays asks for the places of all its values.
#[derive(Debug)]
struct LineStarts<'a> {
    text: &'a str,
    begins: Vec<usize>,
}

impl<'a> LineStarts<'a> {
    fn of(text: &'a str) -> Self {
        let begins = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, begins }
    }

    /// Line and column of a span's begin, both counted from 1, columns in characters.
    fn place_of(&self, span: Range<usize>) -> Place {
        let at = span.start.min(self.text.len());
        let line = self.begins.partition_point(|begin| *begin <= at);
        let begin = self.begins.get(line - 1).copied().unwrap_or_default();
        let column = self.text.get(begin..at).map_or(0, |before| before.chars().count()) + 1;
        Place::Line(line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_line_and_column() {
        let report = Report::default();
        let text = "# ä\n[postgres]\nurl = 'x'\n[[relay]]\nname = \"ä\" # b\n[relay.turn]\nrows = 1_000\n";
        let document = parse(text, &report);
        assert!(report.is_empty());
        assert_eq!(document.certain, usize::MAX);
        let Value::Table(postgres) = &document.root["postgres"].1.value else { panic!("no table") };
        assert_eq!(postgres["url"].0, Place::Line(3, 1));
        assert_eq!(postgres["url"].1, Node { place: Place::Line(3, 7), value: Value::Text("x".to_owned()) });
        let Value::Array(relays) = &document.root["relay"].1.value else { panic!("no array") };
        let Value::Table(relay) = &relays[0].value else { panic!("no table") };
        let Value::Table(turn) = &relay["turn"].1.value else { panic!("no table") };
        assert_eq!(turn["rows"].1, Node { place: Place::Line(7, 8), value: Value::Integer(1000) });
    }

    #[test]
    fn syntax_errors_say_from_where_on_nothing_is_certain() {
        let report = Report::default();
        let document = parse("[postgres]\nurl = 'x'\nurl = 'y'\nbad\n[admin]\n", &report);
        assert_eq!(document.certain, 3);
        assert_eq!(report.into_list().len(), 2);
    }
}
