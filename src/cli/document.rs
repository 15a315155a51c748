//! JSON documents in one form: instants are RFC 3339 in UTC with `Z`, keys are arrays, times are in seconds.

use serde_json::Value;

/// Values that belong to the user: what is in them is printed as it is.
const OF_THE_USER: &[&str] = &["payload", "row", "parameters", "reply", "result"];

/// The document in one line.
pub(super) fn line(mut document: Value) -> String {
    utc(&mut document);
    format!("{document}\n")
}

/// Writes the instants of a document as every other is written: PostgreSQL's own JSON has `+00:00` where others have `Z`.
pub(super) fn utc(document: &mut Value) {
    match document {
        Value::Array(values) => values.iter_mut().for_each(utc),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut().filter(|(name, _)| !OF_THE_USER.contains(&name.as_str())) {
                match value {
                    Value::String(text) if name == "at" || name.ends_with("_at") || name.ends_with("_until") => {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_end_with_z_and_user_values_stay() {
        let document = serde_json::json!({ "requests": [{
            "due_at": "2026-11-21T08:00:00.5+00:00",
            "dedupe_until": null,
            "error": { "at": "2026-11-21T08:00:00+00:00", "message": "2026-11-21T08:00:00+00:00" },
            "parameters": { "starts_at": "2026-11-21T08:00:00+00:00" },
        }] });
        let expected = serde_json::json!({ "requests": [{
            "due_at": "2026-11-21T08:00:00.5Z",
            "dedupe_until": null,
            "error": { "at": "2026-11-21T08:00:00Z", "message": "2026-11-21T08:00:00+00:00" },
            "parameters": { "starts_at": "2026-11-21T08:00:00+00:00" },
        }] });
        assert_eq!(line(document), format!("{expected}\n"));
    }
}
