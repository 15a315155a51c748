//! The status page as HTML: what is wrong, what to type, then everything else. Whole without a script; the script only
//! fetches the same page again when it shows something else.
//!
//! Pure: what was seen, and what this process knows, become a text. Rows are never in it.

use std::fmt::Write as _;
use std::time::Instant;

use self::html::{Esc, prose};
use self::lines::{Line, Need, lines};
use super::board::Standing;
use crate::position::Timestamp;
use crate::relay::inspect::status::in_one_unit;

mod attention;
mod audits;
mod chart;
mod cursors;
mod fleet;
mod html;
mod left;
mod lines;
mod schedules;
mod stages;
mod version;

/// The look of it.
pub(super) const STYLE: &str = include_str!("page/page.css");
/// What keeps it up to date.
pub(super) const SCRIPT: &str = include_str!("page/page.js");

/// What the page is made of.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) standing: &'a Standing,
    /// This replica's name.
    pub(super) replica: &'a str,
    /// The cursors that this process is configured for.
    pub(super) configured: &'a [String],
    /// What the start still waits for.
    pub(super) missing: &'a [String],
    pub(super) is_alive: bool,
    pub(super) now: Instant,
}

/// The whole page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) html: String,
    /// Another number when it shows something else; ages do not count.
    pub(super) version: u64,
}

/// Renders it.
pub(super) fn render(view: &View<'_>) -> Page {
    let overview = view.standing.seen.as_ref().map(|seen| &*seen.overview);
    let lines = lines(overview, view.configured);
    let verdict = verdict(view, &lines);
    let main = main(view, &lines, &verdict);
    let version = version::of(&main);
    let mut html = String::with_capacity(main.len() + (2 << 10));
    let _ = write!(
        html,
        "<!doctype html>\n<html lang=en>\n<head>\n<meta charset=utf-8>\n\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>{} · outbox-relay</title>\n\
         <link rel=stylesheet href=page.css>\n<script src=page.js defer></script>\n</head>\n<body>\n\
         <a class=skip href=#main>Skip to the cursors</a>\n\
         <header><h1>outbox-relay</h1><p>replica <b>{}</b>, version {}</p><p id=live></p></header>\n\
         <main id=main data-version={version:016x}>\n{main}</main>\n</body>\n</html>\n",
        Esc(&verdict.text),
        Esc(view.replica),
        env!("CARGO_PKG_VERSION"),
    );
    Page { html, version }
}

/// Everything below the head.
fn main(view: &View<'_>, lines: &[Line<'_>], verdict: &Verdict) -> String {
    let mut main = String::with_capacity(8 << 10);
    verdict.write(view, &mut main);
    attention::write(lines, without_need(view), view.now, &mut main);
    cursors::write(view, lines, &mut main);
    if let Some(seen) = &view.standing.seen {
        left::write(&seen.overview, &mut main);
        fleet::write(&seen.overview, &mut main);
        schedules::write(&seen.overview, &mut main);
    }
    audits::write(lines, view.now, &mut main);
    own(view, &mut main);
    main
}

/// What is said where no cursor needs attention: no more than what is known, and than is so.
fn without_need(view: &View<'_>) -> &'static str {
    match (&view.standing.seen, &view.standing.trouble) {
        (Some(seen), None) if left::waits(&seen.overview) || schedules::fail(&seen.overview) => {
            "No cursor needs attention; rows or schedules below wait for a decision"
        }
        (Some(_), None) => "Nothing needs attention",
        _ => "Whether a cursor needs attention is not known",
    }
}

/// When it was seen, by the database's clock.
fn seen_at(view: &View<'_>) -> Option<Timestamp> {
    let seen = view.standing.seen.as_ref()?;
    Timestamp::parse_rfc3339(&seen.overview.status.observed_at).ok()
}

/// The first thing to see.
struct Verdict {
    need: Need,
    text: String,
}

fn verdict(view: &View<'_>, lines: &[Line<'_>]) -> Verdict {
    let is = |need, text: &str| Verdict { need, text: text.to_owned() };
    if let Some(trouble) = &view.standing.trouble {
        return match trouble.silent {
            true => is(Need::Bad, "PostgreSQL does not answer"),
            false => is(Need::Bad, "PostgreSQL cannot be asked"),
        };
    }
    if view.standing.seen.is_none() {
        return is(Need::Unknown, "The first look is not over yet");
    }
    let mut states: Vec<(&str, usize)> = Vec::new();
    let needy: Vec<&Line<'_>> = lines.iter().filter(|line| line.need >= Need::Warn).collect();
    for line in &needy {
        match states.iter_mut().find(|(state, _)| *state == line.state) {
            Some((_, count)) => *count += 1,
            None => states.push((&line.state, 1)),
        }
    }
    let states: Vec<String> = states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let all = lines.len();
    let need = needy.iter().map(|line| line.need).max().unwrap_or(Need::Well);
    let text = match (needy.len(), all) {
        (_, 0) => return is(Need::Unknown, "There is no cursor yet"),
        (0, 1) => "The cursor is well".to_owned(),
        (0, _) => format!("All {all} cursors are well"),
        (some, _) => {
            let needs = if some == 1 { "needs" } else { "need" };
            format!("{some} of {all} {needs} attention: {}", states.join(", "))
        }
    };
    Verdict { need, text }
}

impl Verdict {
    fn write(&self, view: &View<'_>, page: &mut String) {
        let _ = write!(
            page,
            "<section id=verdict data-live class=\"verdict {}\" aria-label=\"In short\"><p><strong>{}</strong></p>",
            self.need.class(),
            Esc(&self.text)
        );
        if let Some(trouble) = &view.standing.trouble {
            let _ = write!(page, "<p>{}: {}</p>", prose(&trouble.what), prose(&trouble.fix));
        }
        match &view.standing.seen {
            Some(seen) => {
                let at = seen_at(view).map_or_else(String::new, |at| at.to_string());
                let ago = in_one_unit(view.now.saturating_duration_since(seen.at));
                let _ = write!(
                    page,
                    "<p class=seen>Seen <span data-ages>{ago} ago, at {} UTC</span></p>",
                    Esc(&at.get(..19).unwrap_or(&at).replace('T', " "))
                );
            }
            None => page.push_str(
                "<p class=seen>Below is what this replica has measured by itself. Load the page again for more.</p>",
            ),
        }
        for note in view.missing {
            let _ = write!(page, "<p>This replica is not ready: {}</p>", prose(note));
        }
        page.push_str("</section>\n");
    }
}

/// What this process says of itself.
fn own(view: &View<'_>, page: &mut String) {
    let alive = if view.is_alive { "alive" } else { "not alive: its engine does not move" };
    let ready = if view.missing.is_empty() { "ready" } else { "not ready" };
    let _ = writeln!(
        page,
        "<section id=own data-live aria-labelledby=h-own><h2 id=h-own>This replica</h2><p>{} is {alive} and {ready}. \
         <a href=metrics>Metrics</a>, <a href=readyz>readiness</a>, <a href=livez>liveness</a>. Rates and charts are what this \
         replica has measured since it started. The database is asked only while this page is open.</p></section>",
        Esc(view.replica)
    );
}

#[cfg(test)]
#[path = "page_tests.rs"]
pub(super) mod tests;
