//! Rules that are almost right.

use super::*;
use crate::garbled::Garbled;

#[test]
fn garbled_rules_end_in_ascending_occurrences_or_problems() {
    let (mut planned, mut refused) = (0, 0);
    for bytes in Garbled::new("recurrence") {
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.splitn(3, '\n');
        let (rule, zone) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let starts_at = lines.next().and_then(|text| Timestamp::parse_rfc3339(text).ok());
        let when = When {
            rule: Some(rule),
            time_zone: zone,
            starts_at,
            ends_at: None,
            changed_at: at("2026-11-23T00:00:00Z"),
        };
        let found = Recurrence::new(&when).and_then(|rule| rule.following(at("2026-11-23T00:00:00Z"), 5));
        match found {
            Ok(occurrences) => {
                planned += 1;
                assert!(occurrences.is_sorted_by_key(|occurrence| occurrence.at), "{occurrences:?}");
            }
            Err(problem) => {
                refused += 1;
                assert!(!problem.to_string().is_empty());
            }
        }
    }
    assert!(planned > 0 && refused > 0, "{planned} planned, {refused} refused");
}
