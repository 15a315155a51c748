//! What each cursor has passed, compared with its table: the last comparison, as far as this replica has made it. The list is closed to
//! begin with: a line says what was found.

use std::fmt::Write as _;
use std::time::Instant;

use super::cursors::{cell, head};
use super::html::Esc;
use super::lines::Line;
use crate::metrics::AuditResult;
use crate::metrics::trail::Audited;
use crate::relay::inspect::status::in_one_unit;

pub(super) fn write(lines: &[Line<'_>], now: Instant, page: &mut String) {
    page.push_str("<section id=audits data-live aria-labelledby=h-audits><h2 id=h-audits>Compared with tables</h2>");
    let made = |line: &Line<'_>| line.trail.as_ref().and_then(|trail| trail.audited());
    let audits: Vec<(&str, Audited)> = lines.iter().filter_map(|line| Some((line.name, made(line)?))).collect();
    if audits.is_empty() {
        page.push_str("<p class=none>This replica has not compared delivered rows with a table yet.</p></section>\n");
        return;
    }
    let _ = write!(
        page,
        "<details id=audited><summary>{}</summary><table role=table><caption>The last comparison of each cursor that this \
         replica has made.</caption>",
        found(&audits)
    );
    head(&["Cursor", "Found", "When"], page);
    for (name, audited) in &audits {
        let ago = in_one_unit(now.saturating_duration_since(audited.at));
        let _ = write!(page, "<tr role=row><th role=rowheader scope=row>{}</th>", Esc(name));
        cell("Found", words(audited.result), page);
        cell("When", &format!("<span data-ages>{ago} ago</span>"), page);
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></details></section>\n");
}

/// What was found, with the number of cursors of each kind.
fn found(audits: &[(&str, Audited)]) -> String {
    let count = |result: AuditResult| audits.iter().filter(|(_, audited)| audited.result == result).count();
    let kinds = AuditResult::ALL.into_iter().map(|result| (count(result), words(result)));
    let kinds: Vec<String> =
        kinds.filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect();
    kinds.join(", ")
}

const fn words(result: AuditResult) -> &'static str {
    match result {
        AuditResult::Equal => "equal",
        AuditResult::Gone => "without a missing row, and with rows deleted since",
        AuditResult::Late => "with rows that came late",
        AuditResult::Unnamed => "with missing rows that cannot be named",
        AuditResult::Unclear => "could not tell: too many rows were deleted or changed",
        AuditResult::Skipped => "not compared in time",
        AuditResult::Over => "could not tell: another table or other columns are read now",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::page::lines::lines;
    use crate::metrics::{audit_begins, audited, trail};

    #[test]
    fn last_comparison_of_each_cursor_is_shown() {
        let configured = ["audited_a", "audited_b", "audited_c"].map(str::to_owned);
        let now = Instant::now();
        let page = || {
            let mut page = String::new();
            write(&lines(None, &configured), now, &mut page);
            page
        };
        configured.iter().for_each(|name| drop(trail::of(name)));
        audit_begins("audited_a");
        assert!(page().contains("has not compared"), "counters that begin at 0 are no comparison: {}", page());
        audited("audited_a", AuditResult::Late, 1);
        audited("audited_a", AuditResult::Equal, 1);
        audited("audited_b", AuditResult::Unclear, 3);
        audited("audited_elsewhere", AuditResult::Equal, 1);
        assert!(trail::find("audited_elsewhere").is_none(), "nothing is kept of relays of other processes");
        let html = page();
        assert!(html.contains("<summary>1 equal, 1 could not tell: too many rows"), "{html}");
        assert_eq!(html.matches("<th role=rowheader").count(), 2, "{html}");
        let ago = "<td role=cell data-label=\"When\"><span data-ages>0.0 s ago</span></td>";
        assert!(html.contains(&format!("audited_a</th><td role=cell data-label=\"Found\">equal</td>{ago}")), "{html}");
    }
}
