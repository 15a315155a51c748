//! What is told beside the reason: it holds whatever the reason is.

use super::{Why, seek_before, unknown};
use crate::relay::inspect::facts::{CursorFacts, Schedules};

/// Adds it to the sentence, and to the steps those that nothing else comes before.
pub(super) fn add(why: &mut Why, facts: &CursorFacts) {
    for named in facts.out_of_reach.named() {
        why.sentence.pop();
        why.sentence.push_str(&format!("; {named}."));
    }
    for note in &facts.notes {
        why.sentence.pop();
        why.sentence.push_str(&format!("; {note}."));
    }
    if let Some(step) = &facts.clock_step {
        why.sentence.pop();
        why.sentence.push_str(&format!(
            "; the clock has stepped back: rows stamped {} may not have been delivered (`{}` sends them).",
            step.between(),
            seek_before(facts)
        ));
    }
    if facts.unknown > 0 {
        let listed = format!("`outbox-relay request list --unknown --relay {}`", facts.name);
        why.sentence.pop();
        why.sentence.push_str(&format!("; unknown outcomes: {} ({listed}).", facts.unknown));
    }
    // What moves, or has nothing to do, needs no other step.
    if why.well {
        why.advice.extend(unknown::steps(facts));
    }
    if facts.late_rows > 0 {
        why.sentence.pop();
        why.sentence.push_str(&format!("; rows that came late, behind the position: {}.", facts.late_rows));
    }
    if facts.parked_keys > 0 {
        why.sentence.pop();
        why.sentence.push_str(&match facts.parked_keys {
            1 => "; 1 key is parked: its rows wait for a dead letter.".to_owned(),
            keys => format!("; {keys} keys are parked: their rows wait for dead letters."),
        });
        // Their rows are the only ones that an operator must do something for.
        if why.well {
            why.advice.extend([
                format!("outbox-relay dead-letter list --cursor {}", facts.name),
                "Fix what was refused and redrive it, or discard it: the rows behind it are sent then, in order."
                    .to_owned(),
            ]);
        }
    }
    if facts.dead_letters > 0 {
        why.sentence.pop();
        why.sentence.push_str(&format!("; {}.", dead_letters(facts)));
    }
    if let Some(schedules) = &facts.schedules {
        why.sentence.pop();
        why.sentence.push_str(&format!("; {}.", standing(schedules)));
    }
    if let Some(number) = facts.change {
        why.sentence.pop();
        let what = facts.requested.as_ref().map_or_else(String::new, |what| format!(" ({what})"));
        why.sentence.push_str(&format!("; change {number} of an operator{what} waits for a turn."));
    }
}

/// How many messages wait for an operator, and what lists them.
fn dead_letters(facts: &CursorFacts) -> String {
    let CursorFacts { name, dead_letters, .. } = facts;
    if facts.of_requests {
        return format!("failed requests: {dead_letters} (`outbox-relay request list --status failed --relay {name}`)");
    }
    format!("dead letters: {dead_letters} (`outbox-relay dead-letter list --cursor {name}`)")
}

/// How schedules stand, as the end of a sentence.
fn standing(schedules: &Schedules) -> String {
    let Schedules { running, due, problems, next_at, overdue } = schedules;
    let next = match next_at {
        None => "none comes".to_owned(),
        Some(at) if *overdue => format!("one has been due since {at}"),
        Some(at) => format!("the next comes at {at}"),
    };
    let problems = match problems {
        0 => String::new(),
        some => format!("; schedules with a problem {some} (`outbox-relay schedule list --problems`)"),
    };
    format!("actions running {running}, due {due}{problems}; {next}")
}
