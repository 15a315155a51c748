//! JSON in a column, for templates that walk through it.

use std::collections::BTreeMap;

use minijinja::{Error, ErrorKind, Value};
use serde_json::value::RawValue;

/// The filter `fromjson`: a list or an object whose members can be named. A number is printed with the digits that stand there.
pub(super) fn from_json(value: &Value) -> Result<Value, Error> {
    let invalid = |what: &str| Error::new(ErrorKind::InvalidOperation, what.to_owned());
    if value.is_none() {
        return Ok(value.clone());
    }
    let text = value.as_str().ok_or_else(|| invalid("fromjson takes a column's text"))?;
    let raw: &RawValue = serde_json::from_str(text).map_err(|_| invalid("fromjson: no JSON"))?;
    parsed(raw).map_err(|_| invalid("fromjson: no JSON"))
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
        // What would lose a digit as a number of ours stays the text that it is.
        _ => text.parse::<i64>().map_or_else(|_| Value::from(text), Value::from),
    })
}
