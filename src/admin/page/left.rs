//! What waits for a decision of an operator: dead letters, parked keys, unknown outcomes, rows that came late.

use std::fmt::Write as _;

use super::cursors::{cell, head};
use super::html::{Esc, step};
use crate::relay::inspect::overview::Overview;
use crate::relay::inspect::status::CursorStatus;

pub(super) fn write(overview: &Overview, page: &mut String) {
    page.push_str("<section id=left data-live aria-labelledby=h-left><h2 id=h-left>Waiting for a decision</h2>");
    let left: Vec<(&CursorStatus, Kinds)> = overview
        .status
        .cursors
        .iter()
        .map(|cursor| (cursor, kinds(cursor)))
        .filter(|(_, kinds)| !kinds.is_empty())
        .collect();
    if left.is_empty() {
        page.push_str("<p class=none>No dead letters, parked keys, unknown outcomes or late rows.</p></section>\n");
        return;
    }
    page.push_str(
        "<table role=table><caption>Rows that the relay has passed and that an operator may have to act on.</caption>",
    );
    head(&["Cursor", "What", "Rows", "To list them"], page);
    for (cursor, kinds) in left {
        for (what, rows, command) in kinds {
            let _ = write!(page, "<tr role=row><th role=rowheader scope=row>{}</th>", Esc(&cursor.name));
            cell("What", what, page);
            cell("Rows", &rows.to_string(), page);
            cell("To list them", &step(&command), page);
            page.push_str("</tr>\n");
        }
    }
    page.push_str("</tbody></table></section>\n");
}

/// Whether an operator has to decide about rows; those that came late are delivered.
pub(super) fn waits(overview: &Overview) -> bool {
    let open = |cursor: &CursorStatus| cursor.dead_letters + cursor.parked_keys + cursor.unknown_outcomes > 0;
    overview.status.cursors.iter().any(open)
}

type Kinds = Vec<(&'static str, i64, String)>;

/// Each kind of which there are some, with the command that lists them.
fn kinds(cursor: &CursorStatus) -> Kinds {
    let CursorStatus { name, relay, dead_letters, parked_keys, unknown_outcomes, late_rows, .. } = cursor;
    let all = [
        ("dead letters", *dead_letters, format!("outbox-relay dead-letter list --cursor {name}")),
        ("parked keys", *parked_keys, format!("outbox-relay cursor why {name}")),
        ("unknown outcomes", *unknown_outcomes, format!("outbox-relay request list --unknown --relay {relay}")),
        ("late rows", *late_rows, format!("outbox-relay cursor why {name}")),
    ];
    all.into_iter().filter(|(_, rows, _)| *rows > 0).collect()
}
