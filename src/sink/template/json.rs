//! JSON in a column, for templates that walk through it.

use std::borrow::Cow;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

use super::work::{Exhausted, MADE};

mod reader;

pub(super) use reader::{DEEPEST, LONGEST, NotJson};

/// How many bytes of JSON a template has read of one row.
#[derive(Default)]
pub(super) struct Read(usize);

impl Read {
    fn value(&mut self, what: &str, text: &str) -> Result<Value, Error> {
        self.0 = self.0.saturating_add(text.len());
        reader::read(text, self.0).map_err(|refused| error(what, refused))
    }

    /// A column that is JSON, as a template's value.
    pub(super) fn column(&mut self, json: &[u8]) -> Result<Value, Error> {
        let text = std::str::from_utf8(json).map_err(|_| error("the value", NotJson::NoJson))?;
        self.value("the value", text)
    }
}

/// The filter `fromjson`: a list or an object whose members can be named. A number is printed with the digits that are there.
pub(super) fn from_json(state: &mut State<'_, '_>, value: &Value) -> Result<Value, Error> {
    // NULL, and what is a list or an object already.
    if value.is_none() || is_structured(value) {
        return Ok(value.clone());
    }
    let text =
        value.as_str().ok_or_else(|| Error::new(ErrorKind::InvalidOperation, "fromjson takes a column's text"))?;
    state.get_or_insert_extension_with(Read::default).value("fromjson", text)
}

fn error(what: &str, refused: NotJson) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{what}: {refused}")).with_source(refused)
}

/// What is printed of a value: lists, objects, true and false as JSON.
pub(super) fn text(value: &Value) -> Result<Cow<'_, str>, Error> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map | ValueKind::Bool => {
            let mut out = String::new();
            document(value, &mut out)?;
            Ok(Cow::Owned(out))
        }
        // A large text is not copied for its output.
        _ => Ok(value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)),
    }
}

/// Appends the value as JSON.
fn document(value: &Value, out: &mut String) -> Result<(), Error> {
    if out.len() > MADE {
        return Err(Exhausted::Memory.into());
    }
    let elements = || value.try_iter().into_iter().flatten().enumerate();
    let comma = |number: usize, out: &mut String| out.push_str(if number > 0 { "," } else { "" });
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[');
            for (number, element) in elements() {
                comma(number, out);
                document(&element, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (number, name) in elements() {
                comma(number, out);
                out.push_str(&quoted(&name.to_string()));
                out.push(':');
                document(&value.get_item(&name).unwrap_or_default(), out)?;
            }
            out.push('}');
        }
        ValueKind::None | ValueKind::Undefined => out.push_str("null"),
        ValueKind::Bool => out.push_str(&value.is_true().to_string()),
        _ => match value.as_str() {
            Some(text) => out.push_str(&quoted(text)),
            None => out.push_str(&value.to_string()),
        },
    }
    Ok(())
}

fn is_structured(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map)
}
