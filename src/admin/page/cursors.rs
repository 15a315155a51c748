//! The table of all cursors.

use std::fmt::Write as _;

use super::chart::{chart, in_words};
use super::html::{Esc, prose};
use super::lines::{Line, Need};
use super::{View, seen_at, stages};
use crate::metrics::trail::POINTS;

const COLUMNS: [&str; 8] = ["Cursor", "State", "Lag", "Last hour", "Waiting", "Rows/s here", "Advanced", "Holder"];

/// So many bytes of the page are pictures of the lag, and what does not fit is in words: a thousand cursors are to fit into 1 MiB.
const PICTURES: usize = 256 << 10;

pub(super) fn write(view: &View<'_>, lines: &[Line<'_>], page: &mut String) {
    page.push_str(
        "<section id=cursors data-live aria-labelledby=h-cursors><h2 id=h-cursors>Cursors</h2><table role=table>\
         <caption>Lag is the age of the oldest committed row that is not delivered yet; rows a second are those that this \
         replica delivers.</caption>",
    );
    head(&COLUMNS, page);
    let now = seen_at(view);
    let stages = stages::of_the_worst(lines, view.now);
    let mut room = PICTURES;
    for (number, line) in lines.iter().enumerate() {
        let _ = write!(page, "<tr role=row><th role=rowheader scope=row>{}</th>", Esc(line.name));
        cell("State", &state(number, line), page);
        cell("Lag", &Esc(&line.lag(view.now)).to_string(), page);
        let points = line.trail.as_ref().map_or([None; POINTS], |trail| trail.lags(view.now));
        let mut lag = chart(&points);
        match room.checked_sub(lag.len()) {
            Some(left) => room = left,
            None => lag = in_words(&points),
        }
        cell("Last hour", &(lag + stages.get(&number).map_or("", String::as_str)), page);
        cell("Waiting", &Esc(&line.rows()).to_string(), page);
        cell("Rows/s here", &line.rate(view.now, view.replica), page);
        cell("Advanced", &line.advanced(now), page);
        cell("Holder", &Esc(line.holder()).to_string(), page);
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></section>\n");
}

/// The head of a table, and the beginning of its body. Roles stand there because a narrow screen shows rows as cards.
pub(super) fn head(columns: &[&str], page: &mut String) {
    page.push_str("<thead role=rowgroup><tr role=row>");
    for column in columns {
        let _ = write!(page, "<th role=columnheader scope=col>{column}</th>");
    }
    page.push_str("</tr></thead><tbody role=rowgroup>\n");
}

/// A cell with its column's name, for narrow screens; `html` is safe.
pub(super) fn cell(column: &str, html: &str, page: &mut String) {
    let _ = write!(page, "<td role=cell data-label=\"{column}\">{html}</td>");
}

/// The state in a word: a way to what needs attention, or to the sentence that explains it.
fn state(number: usize, line: &Line<'_>) -> String {
    let class = line.need.class();
    let word = Esc(&line.state);
    match line.why {
        Some(_) if line.need >= Need::Warn => format!("<a class=\"badge {class}\" href=#a-{number}>{word}</a>"),
        Some(why) => format!(
            "<details id=w-{number}><summary class=\"badge {class}\">{word}</summary>{}</details>",
            prose(&why.sentence)
        ),
        None => format!("<span class=\"badge {class}\">{word}</span>"),
    }
}
