//! JSON in a column, for templates that walk through it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr, ValueKind};
use minijinja::{Error, ErrorKind, Value};
use serde_json::value::RawValue;

/// A number that would lose a digit as a number of ours: printed as it stands in the JSON.
#[derive(Debug)]
struct Digits(String);

impl Object for Digits {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The filter `fromjson`: a list or an object whose members can be named. A number is printed with the digits that stand there.
pub(super) fn from_json(value: &Value) -> Result<Value, Error> {
    let invalid = |what: &str| Error::new(ErrorKind::InvalidOperation, what.to_owned());
    // NULL, and what is a list or an object already.
    if value.is_none() || is_structured(value) {
        return Ok(value.clone());
    }
    let text = value.as_str().ok_or_else(|| invalid("fromjson takes a column's text"))?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|_| invalid("fromjson: no JSON"))?;
    parsed(raw).map_err(|_| invalid("fromjson: no JSON"))
}

/// A JSON document as a template's value.
pub(super) fn value(json: &[u8]) -> Result<Value, Error> {
    let parsed = serde_json::from_slice::<&RawValue>(json).and_then(parsed);
    parsed.map_err(|_| Error::new(ErrorKind::InvalidOperation, "the value is no JSON"))
}

/// What is printed of a value: lists, objects, true and false as JSON.
pub(super) fn text(value: &Value) -> String {
    match value.kind() {
        ValueKind::Seq | ValueKind::Map | ValueKind::Bool => document(value),
        _ => value.to_string(),
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

fn parsed(raw: &RawValue) -> Result<Value, serde_json::Error> {
    let text = raw.get();
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(text)?;
            let members = members.into_iter().map(|(name, raw)| Ok((name, parsed(&raw)?)));
            Value::from_pairs(members.collect::<Result<Vec<_>, serde_json::Error>>()?)
        }
        Some(b'[') => {
            let elements: Vec<Box<RawValue>> = serde_json::from_str(text)?;
            Value::from(elements.iter().map(|raw| parsed(raw)).collect::<Result<Vec<_>, _>>()?)
        }
        Some(b'"') => Value::from(serde_json::from_str::<String>(text)?),
        Some(b't' | b'f') => Value::from(text == "true"),
        Some(b'n') => Value::from(()),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Value::from(number),
            (_, Ok(number)) if number.to_string() == text => Value::from(number),
            _ => Value::from_object(Digits(text.to_owned())),
        },
    })
}
