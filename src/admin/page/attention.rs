//! What needs an operator: why, and what to type; the worst first. Cursors that the same steps help stand together.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::time::Instant;

use super::html::{Esc, prose, step};
use super::lines::{Line, Need};
use crate::relay::inspect::explain::Why;

/// So many names of cursors stand above their steps.
const NAMED: usize = 8;

/// Cursors that the same steps help; the first is told about.
struct Group<'a> {
    why: &'a Why,
    members: Vec<(usize, &'a Line<'a>)>,
}

/// `none` is said where no cursor needs it.
pub(super) fn write(lines: &[Line<'_>], none: &str, now: Instant, page: &mut String) {
    let groups = groups(lines);
    page.push_str("<section id=attention data-live aria-labelledby=h-attention>");
    let (class, heading) = if groups.is_empty() { (" class=none", none) } else { ("", "Needs attention") };
    let _ = write!(page, "<h2 id=h-attention{class}>{heading}</h2>");
    groups.iter().for_each(|group| group.write(now, page));
    page.push_str("</section>\n");
}

/// By how bad they are, and then by name.
fn groups<'a>(lines: &'a [Line<'a>]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut needy: Vec<(usize, &Line<'_>)> =
        lines.iter().enumerate().filter(|(_, line)| line.need >= Need::Warn).collect();
    needy.sort_by_key(|(_, line)| Reverse(line.need));
    for (number, line) in needy {
        let Some(why) = line.why else { continue };
        let same = |group: &&mut Group<'_>| {
            let of = &group.members[0].1;
            let steps = (&group.why.advice, &group.why.instead);
            !why.advice.is_empty()
                && of.need == line.need
                && of.state == line.state
                && steps == (&why.advice, &why.instead)
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.members.push((number, line)),
            None => groups.push(Group { why, members: vec![(number, line)] }),
        }
    }
    groups
}

impl Group<'_> {
    fn write(&self, now: Instant, page: &mut String) {
        let Some((number, first)) = self.members.first() else { return };
        let class = first.need.class();
        let _ = write!(page, "<article class=\"card {class}\" aria-labelledby=t-{number}><h3 id=t-{number}>");
        for (at, (number, line)) in self.members.iter().enumerate() {
            let comma = if at > 0 && at < NAMED { ", " } else { "" };
            let name = if at < NAMED { Esc(line.name).to_string() } else { String::new() };
            let _ = write!(page, "{comma}<span id=a-{number}>{name}</span>");
        }
        if let more @ 1.. = self.members.len().saturating_sub(NAMED) {
            let _ = write!(page, " and {more} more");
        }
        let (state, lag) = (Esc(&first.state), first.lag(now));
        let _ =
            write!(page, " <span class=\"badge {class}\">{state}</span> <span class=lag>lag {}</span></h3>", Esc(&lag));
        let _ = write!(page, "<p>{}</p>", prose(&self.why.sentence));
        steps(&self.why.advice, page);
        for instead in &self.why.instead {
            let _ = write!(page, "<div class=or><span>or</span> <div>{}</div></div>", step(instead));
        }
        page.push_str("</article>\n");
    }
}

/// The steps in order; commands stand below the step that ends with a colon.
fn steps(advice: &[String], page: &mut String) {
    let mut below = false;
    for advice in advice.iter().filter(|advice| !advice.is_empty()) {
        let begin = match (below, page.ends_with("</p>")) {
            (true, _) => "",
            (false, true) => "<ol><li>",
            (false, false) => "<li>",
        };
        let _ = write!(page, "{begin}{}", step(advice));
        below |= advice.ends_with(':');
    }
    if !page.ends_with("</p>") {
        page.push_str("</ol>");
    }
}
