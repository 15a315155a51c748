//! From a node to a value: what each kind of key accepts, and what it says otherwise.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::keys;
use super::problem::{Place, Wrong};
use super::tree::{Node, Value};
use super::units;

fn kind(node: &Node, wanted: &str, fix: impl Into<String>) -> Wrong {
    Wrong::new(format!("{wanted} is needed here, this is {}", node.kind()), fix)
}

/// A text that is not empty.
pub(super) fn text(node: &Node) -> Result<String, Wrong> {
    match &node.value {
        Value::Text(text) if text.trim().is_empty() => Err(Wrong::new("empty", "write a value, or remove the key")),
        Value::Text(text) if text.contains('\0') => Err(Wrong::new("contains a NUL character", "remove it")),
        Value::Text(text) => Ok(text.clone()),
        Value::Array(nodes) if nodes.len() == 1 => Err(kind(node, "a string", "write the string without brackets")),
        Value::Array(_) => {
            Err(kind(node, "a string", "write one string; where several are allowed, commas separate them: \"a,b\""))
        }
        _ => Err(kind(node, "a string", "put the value in quotation marks")),
    }
}

/// A text, further checked.
pub(super) fn parsed<T>(parse: impl Fn(&str) -> Result<T, Wrong>) -> impl Fn(&Node) -> Result<T, Wrong> {
    move |node| parse(&text(node)?)
}

/// Whether a name of the user's own is one that a row, a log and a command line can hold as it is.
pub(super) fn is_name(text: &str) -> bool {
    (1..=100).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
}

/// A path of a file.
pub(super) fn path(node: &Node) -> Result<PathBuf, Wrong> {
    text(node).map(PathBuf::from)
}

/// The name of a column.
pub(super) fn column(node: &Node) -> Result<String, Wrong> {
    let name = text(node)?;
    match name.len() {
        0..=63 => Ok(name),
        _ => Err(Wrong::new("longer than a column's name can be (63 bytes)", "write the name as in the catalog")),
    }
}

/// A whole number within bounds.
pub(super) fn integer(bounds: RangeInclusive<u64>) -> impl Fn(&Node) -> Result<u64, Wrong> {
    move |node| {
        let fix = format!("write a whole number from {} to {}", bounds.start(), bounds.end());
        let number = match (&node.value, &node.place) {
            (Value::Integer(number), _) => *number,
            (Value::Text(text), Place::Variable(_)) => {
                text.trim().parse().map_err(|_| Wrong::new("not a whole number", fix.clone()))?
            }
            _ => return Err(kind(node, "an integer", fix)),
        };
        u64::try_from(number)
            .ok()
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| Wrong::new("out of bounds", fix.clone()))
    }
}

/// A positive number that need not be whole.
pub(super) fn rate(node: &Node) -> Result<f64, Wrong> {
    let fix = "write a number from 0.001 to 1000000, for example 2.5";
    let number = match node.value {
        Value::Integer(number) => u32::try_from(number).map_or(f64::INFINITY, f64::from),
        Value::Float(number) => number,
        _ => return Err(kind(node, "a number", fix)),
    };
    if (0.001..=1e6).contains(&number) { Ok(number) } else { Err(Wrong::new("out of bounds", fix)) }
}

/// A number from 0 to 1.
pub(super) fn share(node: &Node) -> Result<f64, Wrong> {
    let fix = "write a number from 0 to 1, for example 0.05";
    let number = match (&node.value, &node.place) {
        (Value::Integer(number), _) => u32::try_from(*number).map_or(f64::INFINITY, f64::from),
        (Value::Float(number), _) => *number,
        (Value::Text(text), Place::Variable(_)) => text.trim().parse().map_err(|_| Wrong::new("not a number", fix))?,
        _ => return Err(kind(node, "a number", fix)),
    };
    if (0.0..=1.0).contains(&number) { Ok(number) } else { Err(Wrong::new("out of bounds", fix)) }
}

/// Yes or no.
pub(super) fn boolean(node: &Node) -> Result<bool, Wrong> {
    match node.value {
        Value::Boolean(yes) => Ok(yes),
        _ => Err(kind(node, "a boolean", "write true or false, without quotation marks")),
    }
}

/// A duration within bounds.
pub(super) fn duration(bounds: RangeInclusive<Duration>) -> impl Fn(&Node) -> Result<Duration, Wrong> {
    move |node| {
        let from = units::print_duration(*bounds.start());
        let to = units::print_duration(*bounds.end());
        let Value::Text(text) = &node.value else {
            let example = format!("write a string with a unit, from \"{from}\" to \"{to}\"");
            return Err(kind(node, "a duration", example));
        };
        let duration = units::duration(text)?;
        if bounds.contains(&duration) {
            Ok(duration)
        } else {
            Err(Wrong::new("out of bounds", format!("write a duration from \"{from}\" to \"{to}\"")))
        }
    }
}

/// A size within bounds.
pub(super) fn size(bounds: RangeInclusive<u64>) -> impl Fn(&Node) -> Result<u64, Wrong> {
    move |node| {
        let from = units::print_size(*bounds.start());
        let to = units::print_size(*bounds.end());
        let Value::Text(text) = &node.value else {
            let example = format!("write a string with a unit, from \"{from}\" to \"{to}\"");
            return Err(kind(node, "a size", example));
        };
        let size = units::size(text)?;
        if bounds.contains(&size) {
            Ok(size)
        } else {
            Err(Wrong::new("out of bounds", format!("write a size from \"{from}\" to \"{to}\"")))
        }
    }
}

/// One of some words; those of later versions are refused by name.
pub(super) fn word<T: Copy>(
    words: &'static [(&'static str, T)],
    later: &'static [&'static str],
) -> impl Fn(&Node) -> Result<T, Wrong> {
    move |node| {
        let given = text(node)?;
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == given) {
            return Ok(*meaning);
        }
        let all: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let fix = format!("write {}", all.join(" or "));
        if later.contains(&given.as_str()) {
            return Err(Wrong::new("not available in this version", fix));
        }
        let meant = keys::nearest(&given, words.iter().map(|(word, _)| *word));
        let fix = meant.map_or(fix, |word| format!("did you mean \"{word}\"?"));
        Err(Wrong::new("not a word that is known here", fix))
    }
}

/// A table of names and texts.
pub(super) fn texts(node: &Node) -> Result<BTreeMap<String, String>, Wrong> {
    let fix = "write a table of names and strings, for example { name = \"value\" }";
    let Value::Table(table) = &node.value else { return Err(kind(node, "a table", fix)) };
    table
        .iter()
        .map(|(name, (_, node))| match &node.value {
            Value::Text(text) => Ok((name.clone(), text.clone())),
            _ => Err(Wrong::new(format!("{name} is {}, a string is needed", node.kind()), fix)),
        })
        .collect()
}

/// Arguments of a program.
pub(super) fn arguments(node: &Node) -> Result<Vec<String>, Wrong> {
    let fix = "write strings, for example [\"--fast\"]";
    let Value::Array(nodes) = &node.value else { return Err(kind(node, "an array", fix)) };
    let text = |node: &Node| match &node.value {
        Value::Text(text) if !text.contains('\0') => Ok(text.clone()),
        Value::Text(_) => Err(Wrong::new("an argument contains a NUL character", fix)),
        _ => Err(Wrong::new(format!("an argument is {}, a string is needed", node.kind()), fix)),
    };
    nodes.iter().map(text).collect()
}

/// Columns, at least one, none twice.
pub(super) fn columns(node: &Node) -> Result<Vec<String>, Wrong> {
    let fix = "write the names of columns, for example [\"id\", \"at\"]";
    let Value::Array(nodes) = &node.value else { return Err(kind(node, "an array", fix)) };
    let columns = nodes.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    if columns.is_empty() {
        return Err(Wrong::new("names no column", fix));
    }
    match columns.iter().enumerate().find(|(at, column)| columns[..*at].contains(column)) {
        Some((_, twice)) => Err(Wrong::new(format!("names {twice:?} twice"), "name each column once")),
        None => Ok(columns),
    }
}
