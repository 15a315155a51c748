//! Failures of actions that no receiver reports: what a schedule asks for and its relay does not have, or what is in the way.

use super::super::prepare::PreparedSchedule;
use crate::database::Error;
use crate::sink::{Class, Failure};
use crate::source::action_query::Unanswered;
use crate::visible::visible;

pub(super) fn unknown_query(name: &str, prepared: &PreparedSchedule) -> Failure {
    let known: Vec<_> = prepared.schedules.queries.keys().map(String::as_str).collect();
    let message = format!("the schedule names the query {}, which its relay does not have", visible(name));
    let hint = format!(
        "Correct the schedule's column query; the relay has {}.",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    );
    Failure::of(Class::Poison, "unknown_query", message, hint)
}

pub(super) fn locked() -> Failure {
    let hint = "Commit edits of schedules at once. It is retried.";
    Failure::of(Class::Retry, "locked", "a transaction that has edited its schedule is still open", hint)
}

pub(super) fn roleless() -> Failure {
    let hint = "Write the tenant into the schedule, or a role without {{ tenant }} into [relay.source.schedule].";
    Failure::of(
        Class::Poison,
        "query_role",
        "the query runs as its tenant's role, and the schedule has no tenant",
        hint,
    )
}

pub(super) fn unavailable(error: &Error) -> Failure {
    Failure::of(Class::Retry, "database", error.to_string(), "It is retried.")
}

pub(super) fn unanswered(why: Unanswered) -> Failure {
    let class = if why.passing { Class::Retry } else { Class::Poison };
    Failure::of(class, why.code, why.message, why.hint)
}

pub(super) fn sinkless_command() -> Failure {
    let hint = "Take the command out of the schedule, or name a relay of [relay.sink.command].";
    Failure::of(Class::Poison, "command_elsewhere", "the schedule names a command, and its relay starts none", hint)
}

pub(super) fn commandless() -> Failure {
    let hint = "Write the name of one of the relay's programs into the schedule's column command.";
    Failure::of(Class::Poison, "command_missing", "the schedule names no command, and its relay starts commands", hint)
}

pub(super) fn unprintable(error: &serde_json::Error) -> Failure {
    let hint = "Write a payload that is a JSON object, and a query whose rows are.";
    Failure::of(Class::Poison, "unprintable", format!("nothing can be printed of the action: {error}"), hint)
}
