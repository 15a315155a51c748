//! Instants in JSON documents that PostgreSQL has made: its own form has `+00:00` where every other output has `Z`.

use serde_json::Value;

/// Values that belong to the user: what is in them is printed as it is.
const OF_THE_USER: &[&str] = &["payload", "row", "parameters", "reply", "result"];

/// Writes the instants of a document as every other is written: RFC 3339 in UTC with `Z`.
pub fn utc(document: &mut Value) {
    match document {
        Value::Array(values) => values.iter_mut().for_each(utc),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut().filter(|(name, _)| !OF_THE_USER.contains(&name.as_str())) {
                match value {
                    Value::String(text) if is_instant(name) => {
                        if let Some(at) = text.strip_suffix("+00:00") {
                            *text = format!("{at}Z");
                        }
                    }
                    other => utc(other),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// By its name: a text of the user may look like an instant.
fn is_instant(name: &str) -> bool {
    matches!(name, "at" | "since" | "not_before") || name.ends_with("_at") || name.ends_with("_until")
}
