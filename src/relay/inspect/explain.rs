//! Why a cursor does not move: one sentence, and what to do. Pure; [`crate::relay::inspect::diagnose`] gathers the facts.

use crate::relay::engine::not_ready::RENAMED;
use crate::relay::inspect::facts::{CursorFacts, LastError, Retrying, Waiting};
use crate::relay::stream::lane_pause::ONLY_ITS_LANE;

mod absent;
mod beside;
mod blocked;
mod stopped;
mod unknown;

use blocked::{held, stuck};
use stopped::{halted, paused};

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// A stable word.
    pub reason: &'static str,
    /// It moves, or has nothing to do.
    pub well: bool,
    /// Why, in one sentence.
    pub sentence: String,
    /// What to do, in this order; commands stand alone.
    pub advice: Vec<String>,
    /// What can be done instead.
    pub instead: Vec<String>,
}

/// A cursor that advanced so lately moves, however slow its sink is.
const LATELY: f64 = 5.0;

/// Decides.
#[must_use]
pub fn why(facts: &CursorFacts) -> Why {
    let mut why = reason(facts);
    beside::add(&mut why, facts);
    why
}

/// The first reason that holds is the one whose end lets the others be seen.
fn reason(facts: &CursorFacts) -> Why {
    let name = &facts.name;
    let lately = facts.rested.is_some_and(|rested| rested < LATELY);
    let nothing = facts.waiting.is_some_and(|waiting| waiting.rows == 0);
    let absent = absent::holds(facts);
    match (&facts.paused, &facts.error) {
        (Some((at, by)), _) => paused(facts, at, by),
        (None, Some(error)) if facts.halted && !(facts.by_check && absent) => halted(facts, error),
        _ if !facts.exists => missing(facts),
        _ if facts.moved => moving(facts),
        // Due work is also done by a job that runs from time to time: between its runs nothing waits.
        (None, None) if facts.due_work && absent && nothing && !is_overdue(facts) && !has_open_work(facts) => {
            answer("idle", true, format!("{name} has nothing to do: nothing that is due is left"))
        }
        (None, None) if facts.due_work && absent && facts.retrying.is_some() => {
            retrying(facts).then("No live replica has the relay: the next `outbox-relay run`, or `run --once`, tries them again.")
        }
        _ if absent => absent::no_replica(facts),
        _ if facts.regressed_until.is_some() => regressed(facts),
        (None, error) if facts.circuit_opened_at.is_some() => circuit(facts, error.as_ref()),
        (None, Some(error)) => backing_off(facts, error),
        _ if nothing && facts.unknown > 0 => answer("idle", true, format!("{name} has nothing to do")),
        _ if nothing && facts.schedules.is_some() => answer("idle", true, format!("no action of {name} waits")),
        _ if nothing => answer("idle", true, format!("{name} has nothing to do: no committed row waits after the position")),
        _ if facts.held => held(facts),
        _ if facts.waiting.is_some_and(|waiting| facts.retrying.as_ref().is_some_and(|r| r.rows >= waiting.rows)) => {
            retrying(facts)
        }
        (None, None) if facts.due_work && facts.has_lanes && facts.retrying.is_some() && !lately => retrying(facts),
        _ if facts.waiting.is_none() => answer(
            "unreadable",
            false,
            format!("what waits for {name} is not known: its relay is not in this configuration, or its table cannot be read"),
        )
        .then("outbox-relay check")
        .then("Run this with the configuration that the replicas have."),
        _ if lately => moving(facts),
        (None, None) if facts.schedules.as_ref().is_some_and(|schedules| schedules.running > 0) => busy(facts),
        (None, None) => stuck(facts),
    }
}

fn retrying(facts: &CursorFacts) -> Why {
    let Some(Retrying { rows, next_in, code }) = &facts.retrying else { return stuck(facts) };
    let (name, next_in) = (&facts.name, next_in.max(0.0));
    let sentence = if facts.waiting.is_some_and(|waiting| waiting.rows > *rows) && facts.has_lanes {
        format!(
            "lanes of {name} wait until the first of each is accepted: {rows} failed, the next is retried in {next_in:.0} s, after {code}{}",
            left(facts)
        )
    } else {
        format!(
            "all that is due has failed and waits to be retried: {rows} of {name}, the next in {next_in:.0} s, after {code}"
        )
    };
    let list = if facts.schedules.is_some() { "action list --status due" } else { "request list" };
    answer("retrying", false, sentence).then(format!("outbox-relay {list} --relay {}", facts.name))
}

/// Actions run, and others wait for them.
fn busy(facts: &CursorFacts) -> Why {
    let running = facts.schedules.as_ref().map_or(0, |schedules| schedules.running);
    let sentence =
        format!("{} carries out {running} actions, and others wait for their ends{}", facts.name, left(facts));
    answer("busy", true, sentence)
        .then("They wait for an earlier one of their tenant (per_tenant_concurrency), or for a free place (in_flight):")
        .then(format!("outbox-relay action list --relay {} --status running", facts.name))
}

impl Why {
    fn then(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }

    fn or(mut self, instead: impl Into<String>) -> Self {
        self.instead.push(instead.into());
        self
    }
}

fn answer(reason: &'static str, well: bool, sentence: String) -> Why {
    Why { reason, well, sentence: format!("{sentence}."), advice: Vec::new(), instead: Vec::new() }
}

/// What waits, as the end of a sentence.
fn left(facts: &CursorFacts) -> String {
    match facts.waiting {
        Some(Waiting { rows: 0, .. }) => "; nothing waits".to_owned(),
        Some(Waiting { lag_seconds, rows, capped }) => {
            let more = if capped { "+" } else { "" };
            let waiting = if rows == 1 { "row waits" } else { "rows wait" };
            format!("; {rows}{more} {waiting}, the oldest for {lag_seconds:.1} s")
        }
        None => String::new(),
    }
}

fn age(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "for an unknown time".to_owned(), |seconds| format!("for {seconds:.0} s"))
}

/// Whether an instant of a schedule has passed without a replica.
fn is_overdue(facts: &CursorFacts) -> bool {
    facts.schedules.as_ref().is_some_and(|schedules| schedules.overdue)
}

/// Whether schedules, actions or requests wait that no live replica has the relay of.
fn has_open_work(facts: &CursorFacts) -> bool {
    facts.open_work.is_some_and(|open| open.is_some())
}

fn missing(facts: &CursorFacts) -> Why {
    // Also before a replica has reported that it refuses the relay.
    if let Some((evidence, hint)) = &facts.renamed {
        let name = &facts.name;
        let sentence = format!("{name} has no cursor yet, and no replica creates it ({RENAMED}): {evidence}");
        return answer("missing", false, sentence).then(hint.as_str());
    }
    let why = answer("missing", false, format!("{} has no cursor yet", facts.name));
    let absent = absent::holds(facts);
    if absent && facts.due_work {
        return why.then("Start `outbox-relay run`, or `run --once` from a job: it makes the cursor.");
    }
    if absent {
        return why
            .then("Start a replica whose configuration has this relay: it makes the cursor where `start` says.")
            .or(format!(
                "`outbox-relay cursor create {name} --beginning` makes it before every row; with --now, the rows that are \
                 there now are never sent.",
                name = facts.name
            ));
    }
    let replicas = facts.replicas.join(", ");
    why.then(format!("A replica makes it once the relay has passed its checks; see the log of {replicas}."))
        .then("outbox-relay check")
}

fn moving(facts: &CursorFacts) -> Why {
    let pace = match (facts.rate, facts.rested) {
        (Some(rate), _) => format!(" ({rate:.0} rows a second)"),
        // A claim is no success yet.
        (None, Some(rested)) if facts.due_work => format!(" (work was last claimed {rested:.1} s ago)"),
        (None, Some(rested)) => format!(" (last advanced {rested:.1} s ago)"),
        (None, None) => String::new(),
    };
    answer("moving", true, format!("{} is moving{pace}{}", facts.name, left(facts)))
}

fn regressed(facts: &CursorFacts) -> Why {
    let until = facts.regressed_until.as_deref().unwrap_or_default();
    answer(
        "clock_regression",
        false,
        format!(
            "PostgreSQL's clock has stepped back: {} waits until it has passed {until}, the time of the last advance{}",
            facts.name,
            left(facts)
        ),
    )
    .then("If the clock is wrong now, correct it. If it was wrong before, go back to what it showed after the step; rows since are sent, some again:")
    .then(seek_before(facts))
}

/// The command that sends again what was stamped after a step of the clock.
fn seek_before(facts: &CursorFacts) -> String {
    let from = facts.clock_step.as_ref().and_then(|step| step.from.as_deref()).unwrap_or("INSTANT");
    format!("outbox-relay cursor seek {} --at {from}", facts.name)
}

fn circuit(facts: &CursorFacts, error: Option<&LastError>) -> Why {
    let since = facts.circuit_opened_at.as_deref().unwrap_or_default();
    let last =
        error.map_or_else(String::new, |error| format!(": {}: {}", error.code, error.message.trim_end_matches('.')));
    let sentence = format!(
        "the sink of {} is unavailable: its circuit is open since {since}, and it is tried from time to time{last}{}",
        facts.name,
        left(facts)
    );
    let why = answer("circuit_open", false, sentence);
    match error {
        Some(error) => why.then(error.hint.clone()).then("It goes on by itself when the sink is back."),
        None => why.then("It goes on by itself when the sink is back."),
    }
}

/// When the first is retried, where nothing else is due; as the end of a sentence.
fn retried(facts: &CursorFacts) -> String {
    let rows = facts.waiting.map_or(0, |waiting| waiting.rows);
    let all = facts.retrying.as_ref().filter(|retrying| retrying.rows >= rows);
    all.map_or_else(String::new, |all| {
        format!("; all that is due has failed and is retried, the next in {:.0} s", all.next_in.max(0.0))
    })
}

fn backing_off(facts: &CursorFacts, error: &LastError) -> Why {
    let LastError { class, code, message, at, since, .. } = error;
    let told = message.trim_end_matches('.');
    // Each row is attempted on its own, so that no one attempt stands for all.
    if let Some(since) = since.as_ref().filter(|_| facts.due_work) {
        let sentence = format!(
            "no attempt of {} has succeeded since {since}, when several in a row had failed; the last failed at {at}: {class} \
             {code}: {told}{}{}",
            facts.name,
            left(facts),
            retried(facts)
        );
        return answer("backing_off", false, sentence).then(error.hint.clone());
    }
    let name = &facts.name;
    let row = error.message_id.as_ref().filter(|_| told.ends_with(ONLY_ITS_LANE));
    let Some(id) = row else {
        let sentence = format!("the last try of {name} failed at {at} and is repeated: {code}: {told}{}", left(facts));
        return answer("backing_off", false, sentence).then(error.hint.clone());
    };
    let sentence = format!(
        "the lane of message {id} of {name} waits: the message was not accepted at {at}, and is retried: {code}: {told}{}",
        left(facts)
    );
    let why = answer("backing_off", false, sentence).then(error.hint.clone());
    why.or(format!("outbox-relay cursor skip {name} --id {id} --dry-run"))
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
