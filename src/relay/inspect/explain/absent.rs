//! A cursor whose relay no live replica has: nothing tries it, whatever its last error was.

use super::{Why, answer, left};
use crate::relay::inspect::facts::{CursorFacts, LastError};

/// Whether a replica must be started before anything else can change.
pub(super) fn holds(facts: &CursorFacts) -> bool {
    facts.absent || facts.replicas.is_empty()
}

/// The last error is told with its time, and without its hint: no replica is there that could try again.
pub(super) fn no_replica(facts: &CursorFacts) -> Why {
    let CursorFacts { relay, .. } = facts;
    let waits = match &facts.open_work {
        Some(open) => format!("; {open} {}", open.wait()),
        None => left(facts),
    };
    let last = facts.error.as_ref().map_or_else(String::new, |LastError { code, message, at, .. }| {
        format!("; its last error, {at}, was {code}: {}", message.trim_end_matches('.'))
    });
    answer("no_replica", false, format!("No live replica has relay {relay}{last}{waits}"))
        .then("Start a replica whose configuration has it; `outbox-relay replica list` shows what each has.")
        .or(format!("if the relay was renamed: `outbox-relay cursor rename {relay} NEW`"))
        .or(format!("if the relay was taken out: `outbox-relay cursor remove {relay}`"))
}
