//! What a rule means, held to the standard's own examples, to the clocks of real zones, and to the crate behind it.

use super::*;
use crate::position::Timestamp;

mod bounds;
mod ends;
mod garbled;
mod properties;
mod refusals;
mod rfc;
mod words;
mod zones;

fn at(text: &str) -> Timestamp {
    Timestamp::parse_rfc3339(text).expect(text)
}

/// A rule in a zone from a start, written long before.
fn rule<'a>(rule: &'a str, zone: &'a str, start: &str) -> When<'a> {
    When {
        rule: Some(rule),
        time_zone: zone,
        starts_at: Some(at(start)),
        ends_at: None,
        changed_at: Timestamp::NEG_INFINITY,
    }
}

/// The first occurrences, each found from the one before, in RFC 3339.
#[track_caller]
fn first(when: &When<'_>, count: usize) -> Vec<String> {
    let recurrence = Recurrence::new(when).expect("a rule that can be planned");
    let mut found = Vec::new();
    let mut after = Timestamp::NEG_INFINITY;
    while found.len() < count
        && let Some(next) = recurrence.next(after).expect("a search that ends")
    {
        assert!(next > after, "{next} does not lie after {after}");
        found.push(next.to_string().replace(".000000Z", "Z"));
        after = next;
    }
    found
}
