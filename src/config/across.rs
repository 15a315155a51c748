//! What is checked across sections.

use super::problem::Wrong;
use super::relay_section;
use super::section::Section;
use super::tree::{Node, Value};

/// A relay's name is its cursor's: two relays of one name would take turns at one position.
pub(super) fn refuse_twins(relays: &[Section<'_>]) {
    let mut seen: Vec<&str> = Vec::new();
    for relay in relays {
        match relay.node("name") {
            Some(Node { value: Value::Text(name), .. }) if seen.contains(&name.as_str()) => {
                relay.problem("name", Wrong::new("a second relay of this name", "give each relay its own name"));
            }
            Some(Node { value: Value::Text(name), .. }) => seen.push(name),
            _ => {}
        }
    }
}

/// One watcher, one for probes, two for a turn, and the dedicated ones; sinks that send one by one get at most half of the
/// turns, so that a provider that hangs leaves the others theirs.
pub(super) fn check_pool(postgres: &Section<'_>, size: usize, dedicated: usize, relays: &[Section<'_>]) {
    let one_by_one = relays.iter().filter(|relay| relay_section::is_one_by_one(relay)).count();
    let least = 4 + dedicated;
    if size < least {
        let what = "too few: one for notifications, one for the claims of a schedule's actions, where relays have these, \
                    beside one watcher, one for probes and two for a turn";
        postgres.problem("pool_size", Wrong::new(what, format!("write at least {least}")));
    }
    if size < least + 2 && one_by_one > 0 && one_by_one < relays.len() {
        let what = "too few for two turns at once, and the configured sinks need one each";
        postgres.problem("pool_size", Wrong::new(what, format!("write at least {}", least + 2)));
    }
}
