//! `[audit]`: what is recorded of the rows that relays pass, and for how long.

use std::time::Duration;

use super::problem::Wrong;
use super::section::Section;
use super::show::TomlLines;
use super::value;
use crate::relay::Audit;

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// What came late is told by its dead letter, which `[retention]` keeps for so long.
pub(super) fn read(section: &Section<'_>, dead_letters: Option<Duration>) -> Audit {
    let enabled = section.read("enabled", value::boolean).unwrap_or(true);
    let keep = section.read("keep", value::duration(Audit::SHORTEST..=YEAR));
    if !enabled && section.has("keep") {
        let what = "nothing is recorded that could be kept: [audit] enabled is false";
        section.problem("keep", Wrong::new(what, "remove the key, or write enabled = true"));
    }
    if let (Some(keep), Some(dead_letters)) = (keep, dead_letters)
        && dead_letters < keep
    {
        let what = "rows that came late are told by their dead letters, which [retention] dead_letters deletes sooner: they would be taken for missing";
        let fix = "keep dead letters for as long, or leave [retention] dead_letters out";
        section.problem("keep", Wrong::new(what, fix));
    }
    Audit { enabled, keep }
}

/// As `config show` prints it.
pub(super) fn write(lines: &mut TomlLines, audit: Audit) {
    lines.section("[audit]");
    lines.raw("enabled", audit.enabled);
    match audit.keep {
        Some(keep) => lines.duration("keep", keep),
        None => lines.comment("keep: two hours, in which comparisons are made up for"),
    }
}
