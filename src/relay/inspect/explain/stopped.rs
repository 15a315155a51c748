//! Of cursors that an operator or a failure has stopped.

use super::{Why, answer, left};
use crate::relay::inspect::facts::{CursorFacts, LastError};
use crate::sink::named;

pub(super) fn paused(facts: &CursorFacts, at: &str, by: &str) -> Why {
    let also = if facts.halted { "; it is halted, too, and `cursor resume` ends both" } else { "" };
    let why = answer("paused", false, format!("{} is paused since {at} by {by}{also}{}", facts.name, left(facts)));
    let resume = format!("outbox-relay cursor resume {}", facts.name);
    match &facts.error {
        Some(error) if facts.halted => why.then(fix(error, &facts.name)).then(resume),
        _ => why.then(resume),
    }
}

pub(super) fn halted(facts: &CursorFacts, error: &LastError) -> Why {
    let name = &facts.name;
    let at = error.message_id.as_ref().map_or_else(String::new, |id| format!(" at message {id}"));
    let LastError { class, code, message, .. } = error;
    let told = message.trim_end_matches('.');
    let why = answer(
        "halted",
        false,
        format!("{name} is halted{at} since {}: {class} {code}: {told}{}", error.at, left(facts)),
    )
    .then(fix(error, name));
    // A hint that has its own verbs says which of them cure it.
    let why = if facts.by_check {
        why.then("No resume is needed: the halt ends when the relay passes its checks, within seconds.")
    } else if fix(error, name).contains("outbox-relay cursor ") {
        why
    } else {
        why.then(format!("outbox-relay cursor resume {name}"))
    };
    if class == "poison" && error.message_id.is_some() {
        let pass = if facts.due_work {
            "To give the row up, mark it as sent yourself; then resume.".to_owned()
        } else {
            format!("outbox-relay cursor skip {name}")
        };
        return why.or(pass).or(
            "on_poison = \"dead_letter\" stores such messages in outbox.dead_letter, and the rows after them go on.",
        );
    }
    why
}

/// The hint without the step that follows it anyway: to resume.
fn fix(error: &LastError, name: &str) -> String {
    // Sinks name their relay, whichever of its cursors it is.
    let relay = name.split('#').next().unwrap_or(name);
    let without = |hint: String, of: &str| hint.replace(&format!(", then `outbox-relay cursor resume {of}`"), "");
    without(without(named(&error.hint, name), name), relay)
}
