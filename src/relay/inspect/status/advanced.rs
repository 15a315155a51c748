//! When a cursor last advanced.

use crate::cursor::control::CursorSummary;
use crate::position::Timestamp;

/// A claim of due work is noted as an advance when it is made. While no attempt succeeds, none since the first failure is one.
pub(super) fn advanced(listed: &CursorSummary, due_work: bool) -> Option<Timestamp> {
    let at = listed.advanced_at?;
    let since = listed.last_error.as_deref().filter(|_| due_work).and_then(since);
    Some(since.map_or(at, |since| at.min(since)))
}

fn since(error: &str) -> Option<Timestamp> {
    let error: serde_json::Value = serde_json::from_str(error).ok()?;
    Timestamp::parse_rfc3339(error.get("since")?.as_str()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_of_the_first_failure_is_read_from_the_error() {
        let at = Timestamp::parse_rfc3339("2026-11-21T08:00:00Z").expect("valid");
        assert_eq!(since(r#"{"since":"2026-11-21T09:00:00+01:00"}"#), Some(at));
        assert_eq!(since(r#"{"at":"2026-11-21T09:00:00+01:00"}"#), None);
    }
}
