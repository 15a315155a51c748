//! The steps that settle unknown outcomes.

use crate::relay::inspect::facts::CursorFacts;

/// So many keys stand in the command; the list has all.
const KEYS: usize = 5;

/// What the receiver says of them is recorded; nothing when none is unknown.
pub(super) fn steps(facts: &CursorFacts) -> Vec<String> {
    let all = &facts.unknown_keys;
    // Of several rows of one key the list has the instants.
    let is_one_of_several =
        |key: &Vec<String>| all.iter().any(|other| other.len() > key.len() && other.starts_with(key));
    let keys: Vec<&str> =
        all.iter().filter(|key| !is_one_of_several(key)).filter_map(|key| plain(key)).take(KEYS).collect();
    if keys.is_empty() {
        return Vec::new();
    }
    let (keys, relay) = (keys.join(" "), &facts.name);
    let of = if facts.of_requests { String::new() } else { format!(" --relay {relay}") };
    vec![
        "Ask the receiver which of them have arrived, and record it; --lost is for those that have not:".to_owned(),
        format!("outbox-relay request settle {keys}{of} --arrived"),
    ]
}

/// A key of one column that is a word of a shell as it stands; others are in the list.
fn plain(key: &[String]) -> Option<&str> {
    let [key] = key else { return None };
    let safe = |c: char| c.is_ascii_alphanumeric() || "_-.:/".contains(c);
    (!key.is_empty() && !key.starts_with('-') && key.chars().all(safe)).then_some(key)
}
