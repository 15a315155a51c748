//! The cursors as a table of at most 120 columns: one line a cursor, and below it what needs attention.

use std::time::Duration;

use super::{SinkStatus, Status};
use crate::cli::table::{Table, visible};
use crate::position::Timestamp;
use crate::relay::inspect::status::{CursorStatus, MOST, NO_REPLICA, in_one_unit};

/// No line is longer than this many characters.
const WIDTH: usize = 120;
/// A longer name has a line of its own, in full: it is copied into commands.
const NAME: usize = 28;
/// A longer name of a replica is cut in its middle: its end tells it from others.
const HOLDER: usize = 20;

/// The whole text.
pub(super) fn render(status: &Status) -> String {
    let now = Timestamp::parse_rfc3339(&status.observed_at).ok();
    let ago = |at: &Option<String>| {
        let since = at.as_deref().and_then(|at| Timestamp::parse_rfc3339(at).ok());
        now.zip(since).map(|(now, since)| in_one_unit(now.since(since)))
    };
    let header = ["CURSOR", "STATE", "LAG", "BACKLOG", "ADVANCED", "DEAD", "SINK", "HOLDER"];
    let mut table = Table::new(header);
    for cursor in &status.cursors {
        let dash = || "-".to_owned();
        let more = if cursor.backlog_capped == Some(true) { "+" } else { "" };
        let name = visible(&cursor.name);
        table.row([
            if name.chars().count() > NAME { dash() } else { name },
            cursor.state.to_owned(),
            cursor.lag_seconds.map_or_else(dash, |lag| in_one_unit(Duration::from_secs_f64(lag.max(0.0)))),
            cursor.backlog_rows.map_or_else(dash, |rows| format!("{rows}{more}")),
            ago(&cursor.advanced_at).map_or_else(|| "never".to_owned(), |ago| format!("{ago} ago")),
            cursor.dead_letters.to_string(),
            cursor.sink.kind.unwrap_or("-").to_owned(),
            cursor.holder.as_ref().map_or_else(dash, |holder| shortened(&visible(&holder.replica), HOLDER)),
        ]);
    }
    let aligned = table.render();
    let mut lines = aligned.lines();
    let mut text = String::new();
    text.extend(lines.next().map(|header| format!("{header}\n")));
    for (cursor, line) in status.cursors.iter().zip(lines) {
        let name = visible(&cursor.name);
        if name.chars().count() > NAME {
            text.push_str(&format!("{name}\n"));
        }
        text.push_str(&format!("{line}\n"));
        for note in notes(cursor, &ago) {
            wrap(&mut text, &visible(&note), 2);
        }
    }
    // They are of no one cursor: what is indented belongs to the one above it.
    for note in status.notes() {
        wrap(&mut text, &visible(&note), 0);
    }
    for action in &status.actions {
        wrap(&mut text, &visible(&action.to_string()), 0);
    }
    if status.actions.len() == MOST {
        text.push_str("there may be more: outbox-relay action list --status running\n");
    }
    text
}

/// What is not as it should be, a line each.
fn notes(cursor: &CursorStatus, ago: &impl Fn(&Option<String>) -> Option<String>) -> Vec<String> {
    let mut notes = Vec::new();
    // Without a replica nothing is tried: an error and an open circuit are of the past.
    let absent = cursor.state == NO_REPLICA;
    match cursor.error_line() {
        Some(error) if absent => {
            let at = ago(&cursor.error_at()).map_or_else(String::new, |ago| format!(", {ago} ago"));
            notes.push(format!("last error{at}: {error}"));
        }
        Some(error) => notes.push(format!("error: {error}")),
        None => {}
    }
    if let Some(open) = &cursor.open_work {
        let (relay, name, wait) = (&cursor.relay, &cursor.name, open.wait());
        notes.push(format!("no live replica has relay {relay}: {open} {wait}; `outbox-relay cursor why {name}`"));
    }
    if let SinkStatus { kind: Some(kind), opened_at: at @ Some(_), .. } = &cursor.sink
        && !absent
    {
        let since = ago(at).map_or_else(String::new, |ago| format!(" for {ago}"));
        notes.push(format!("sink: {kind} is unavailable; its circuit has been open{since}"));
    }
    if let Some(horizon) = cursor.horizon.as_ref().filter(|horizon| horizon.is_notable(cursor.state)) {
        notes.push(format!("horizon: {}", horizon.line(cursor.lag_seconds)));
    }
    if let Some(step) = &cursor.clock_step {
        let between = step.between();
        notes.push(format!(
            "the clock has stepped back: rows stamped {between} may not have been delivered; \
             `outbox-relay cursor why {}`",
            cursor.name
        ));
    }
    if cursor.parked_keys > 0 {
        let (keys, relay) = (cursor.parked_keys, &cursor.relay);
        notes.push(format!("parked keys: {keys}, whose rows wait; `outbox-relay dead-letter list --cursor {relay}`"));
    }
    if cursor.unknown_outcomes > 0 {
        let (rows, relay) = (cursor.unknown_outcomes, &cursor.relay);
        notes.push(format!("unknown outcomes: {rows}; `outbox-relay request list --unknown --relay {relay}`"));
    }
    notes
}

/// At most so many characters, without those in the middle.
fn shortened(text: &str, most: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= most {
        return text.to_owned();
    }
    let (head, tail) = ((most - 1) / 2, most / 2);
    chars[..head].iter().chain(&['…']).chain(&chars[chars.len() - tail..]).collect()
}

/// Appends a note in lines of at most [`WIDTH`] characters, indented by so many, and by two more where it goes on.
fn wrap(text: &mut String, note: &str, indent: usize) {
    let (first, next) = (" ".repeat(indent), " ".repeat(indent + 2));
    let (mut line, mut is_empty) = (first, true);
    for word in note.split(' ') {
        let mut rest: Vec<char> = word.chars().collect();
        if !is_empty && line.chars().count() + 1 + rest.len() > WIDTH {
            text.push_str(&format!("{line}\n"));
            (line, is_empty) = (next.clone(), true);
        }
        while is_empty && line.chars().count() + rest.len() > WIDTH {
            let tail = rest.split_off(WIDTH - line.chars().count());
            text.push_str(&format!("{line}{}\n", rest.iter().collect::<String>()));
            (line, rest) = (next.clone(), tail);
        }
        if !is_empty {
            line.push(' ');
        }
        line.extend(rest);
        is_empty = false;
    }
    text.push_str(&format!("{line}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shortened("outbox-relay-5d8f9c7b6d-x2x4z", 20), "outbox-re…7b6d-x2x4z");
        assert_eq!(shortened("short", 20), "short");
    }

    #[test]
    fn notes_fit_and_lose_nothing() {
        for note in ["one two ".repeat(40), "x".repeat(400), format!("error: {} end", "y".repeat(130))] {
            let note = note.trim();
            for indent in [0, 2] {
                let mut text = String::new();
                wrap(&mut text, note, indent);
                let begins = |number: usize| " ".repeat(if number == 0 { indent } else { indent + 2 });
                let fits = |(number, line): (usize, &str)| {
                    let rest = line.strip_prefix(&*begins(number));
                    line.chars().count() <= WIDTH && rest.is_some_and(|rest| !rest.starts_with(' '))
                };
                assert!(text.lines().enumerate().all(fits), "{text}");
                let joined: String = text.split_whitespace().collect();
                assert_eq!(joined, note.split_whitespace().collect::<String>());
            }
        }
    }

    #[test]
    fn widest_table_fits() {
        let widest =
            [NAME, "clock_regression".len(), "120 min".len(), "10000+".len(), "119 min ago".len(), 5, 7, HOLDER];
        let total: usize = widest.iter().sum::<usize>() + 2 * (widest.len() - 1);
        assert!(total <= WIDTH, "{total}");
    }
}
