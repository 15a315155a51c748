//! Errors of the TOML text itself, told like all others: with key, value and fix.

use super::keys;
use super::problem::{Place, Problem, TWIN};
use super::redact;
use super::tree::{Node, TomlTable, Value};

/// What an error leaves of the text behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unchecked {
    /// Only its own line is wrong: the key's first value stands, or the bare word is read as a string.
    Line,
    /// Everything that follows.
    Rest,
}

pub(super) fn doubt(message: &str) -> Unchecked {
    if is_twin(message) || is_bare(message) { Unchecked::Line } else { Unchecked::Rest }
}

fn is_twin(message: &str) -> bool {
    message.contains("duplicate key")
}

fn is_bare(message: &str) -> bool {
    message.contains("must be quoted")
}

/// The problem at that place of the text; `root` is what could be read of it.
pub(super) fn problem(message: &str, text: &str, place: Place, root: &TomlTable) -> Problem {
    let (what, fix) = if is_twin(message) {
        (TWIN.to_owned(), "remove one of the two")
    } else if is_bare(message) {
        ("a value without quotation marks that is no number".to_owned(), "put it in quotation marks")
    } else {
        (format!("not valid TOML: {message}"), "correct the line; what follows it was not checked")
    };
    let (key, value) = match (doubt(message), &place) {
        (Unchecked::Line, Place::Line(line, _)) => key_and_value(text, *line, root),
        _ => (String::new(), None),
    };
    Problem { place, key, value, what, fix: fix.to_owned(), missing: false }
}

/// Key path and value of a line, as far as one can tell from the headers above it.
fn key_and_value(text: &str, line: usize, root: &TomlTable) -> (String, Option<String>) {
    let lines: Vec<&str> = text.lines().take(line).collect();
    let Some(own) = lines.last().map(|line| line.trim()) else { return (String::new(), None) };
    if own.starts_with('[') {
        return (own.trim_matches(['[', ']']).to_owned(), None);
    }
    let (key, value) = own.split_once('=').map_or((own, ""), |(key, value)| (key.trim(), value.trim()));
    let header = lines.iter().rposition(|line| line.trim_start().starts_with('['));
    let section = header.map(|at| {
        let written = lines[at].trim().trim_matches(['[', ']']);
        path_of(root, "", at + 1).unwrap_or_else(|| written.to_owned())
    });
    let path = section.map_or_else(|| key.to_owned(), |section| format!("{section}.{key}"));
    // Under a key that is no key anything may stand, a secret too.
    let is_known = keys::is_known(key);
    let value = redact::text(key, value);
    (path, Some(value).filter(|value| is_known && !value.is_empty()))
}

/// The path of the table whose header stands in that line, relays by their names.
fn path_of(table: &TomlTable, path: &str, line: usize) -> Option<String> {
    table.iter().find_map(|(key, (_, node))| {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match &node.value {
            Value::Table(inner) => of_node(node, inner, path, line),
            Value::Array(nodes) => nodes.iter().enumerate().find_map(|(at, node)| match &node.value {
                Value::Table(inner) => of_node(node, inner, format!("{path}[{}]", label(inner, at)), line),
                _ => None,
            }),
            _ => None,
        }
    })
}

fn of_node(node: &Node, inner: &TomlTable, path: String, line: usize) -> Option<String> {
    match node.place {
        Place::Line(own, _) if own == line => Some(path),
        _ => path_of(inner, &path, line),
    }
}

/// What an element of an array of tables is called: its name, else its number.
pub(super) fn label(table: &TomlTable, at: usize) -> String {
    match table.get("name") {
        Some((_, Node { value: Value::Text(text), .. })) if !text.is_empty() => text.clone(),
        _ => format!("#{}", at + 1),
    }
}
