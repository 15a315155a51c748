//! JSON documents in one form: instants are RFC 3339 in UTC with `Z`, keys are arrays, times are in seconds.

use serde_json::Value;

pub(super) use crate::position::utc;

/// The document in one line.
pub(super) fn line(mut document: Value) -> String {
    utc(&mut document);
    format!("{document}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_end_with_z_and_user_values_stay() {
        let document = serde_json::json!({ "requests": [{
            "due_at": "2026-11-21T08:00:00.5+00:00",
            "not_before": "2026-11-21T08:00:00+00:00",
            "dedupe_until": null,
            "user_id": "2026-11-21T08:00:00+00:00",
            "error": { "at": "2026-11-21T08:00:00+00:00", "since": "2026-11-21T08:00:00+00:00", "message": "2026-11-21T08:00:00+00:00" },
            "parameters": { "starts_at": "2026-11-21T08:00:00+00:00" },
        }] });
        let expected = serde_json::json!({ "requests": [{
            "due_at": "2026-11-21T08:00:00.5Z",
            "not_before": "2026-11-21T08:00:00Z",
            "dedupe_until": null,
            "user_id": "2026-11-21T08:00:00+00:00",
            "error": { "at": "2026-11-21T08:00:00Z", "since": "2026-11-21T08:00:00Z", "message": "2026-11-21T08:00:00+00:00" },
            "parameters": { "starts_at": "2026-11-21T08:00:00+00:00" },
        }] });
        assert_eq!(line(document), format!("{expected}\n"));
    }
}
