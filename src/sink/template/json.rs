//! JSON in a column, for templates that walk through it.

use std::borrow::Cow;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

mod reader;

pub(super) use reader::{DEEPEST, LONGEST, Refused};

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
        let text = std::str::from_utf8(json).map_err(|_| error("the value", Refused::NoJson))?;
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

fn error(what: &str, refused: Refused) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("{what}: {refused}")).with_source(refused)
}

/// What is printed of a value: lists, objects, true and false as JSON.
pub(super) fn text(value: &Value) -> Cow<'_, str> {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Bool => Cow::Owned(document(value)),
        // A large text is not copied for its output.
        _ => value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed),
    }
}

fn document(value: &Value) -> String {
    let elements = || value.try_iter().into_iter().flatten();
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match value.kind() {
        ValueKind::Seq => format!("[{}]", elements().map(|element| document(&element)).collect::<Vec<_>>().join(",")),
        ValueKind::Map => {
            let member = |name: Value| {
                let value = value.get_item(&name).unwrap_or_default();
                format!("{}:{}", quoted(&name.to_string()), document(&value))
            };
            format!("{{{}}}", elements().map(member).collect::<Vec<_>>().join(","))
        }
        ValueKind::None | ValueKind::Undefined => "null".to_owned(),
        ValueKind::Bool => value.is_true().to_string(),
        _ => value.as_str().map_or_else(|| value.to_string(), quoted),
    }
}

fn is_structured(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Map)
}
