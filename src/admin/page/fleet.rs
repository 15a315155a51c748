//! The live replicas: versions, configurations, and where they do not agree.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::cursors::{cell, head};
use super::html::{Esc, ago, prose};
use crate::cursor::replicas::Replica;
use crate::position::Timestamp;
use crate::relay::inspect::overview::Overview;

/// So many relays of a replica are listed.
const LISTED: usize = 50;

pub(super) fn write(overview: &Overview, page: &mut String) {
    let fleet = &overview.status.fleet;
    page.push_str("<section id=replicas data-live aria-labelledby=h-replicas><h2 id=h-replicas>Replicas</h2>");
    let versions: BTreeSet<&str> = fleet.replicas.iter().map(|replica| replica.version.as_str()).collect();
    let mut notes = fleet.notes();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        notes.push(format!("replicas run several versions: {}", versions.join(", ")));
    }
    if !fleet.unwritten.is_empty() {
        let names = fleet.unwritten.join(", ");
        notes.push(format!("connected, and not listed, because they have only started or are older: {names}"));
    }
    for note in notes {
        let _ = write!(page, "<p class=note>{}</p>", prose(&note));
    }
    if fleet.replicas.is_empty() {
        page.push_str("<p>No replica is listed.</p></section>\n");
        return;
    }
    page.push_str("<table role=table><caption>Replicas of one configuration show the same hash for a relay.</caption>");
    head(&["Replica", "Version", "Started", "Configuration"], page);
    let now = Timestamp::parse_rfc3339(&overview.status.observed_at).ok();
    for (number, replica) in fleet.replicas.iter().enumerate() {
        let _ = write!(page, "<tr role=row><th role=rowheader scope=row>{}</th>", Esc(&replica.id));
        cell("Version", &Esc(&replica.version).to_string(), page);
        let started = now.map_or_else(|| "–".to_owned(), |now| ago(replica.started_at, now));
        cell("Started", &started, page);
        cell("Configuration", &configuration(number, replica), page);
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></section>\n");
}

/// The hash of each relay; how many relays, to begin with.
fn configuration(number: usize, replica: &Replica) -> String {
    if let Some(why) = &replica.unreadable {
        return format!("not readable: {}", prose(why));
    }
    let count = replica.relays.len();
    let refused = replica.relays.iter().filter(|relay| relay.refused.is_some()).count();
    let not = if refused == 0 { String::new() } else { format!(", {refused} not run") };
    let relays = if count == 1 { "relay" } else { "relays" };
    let mut html = format!("<details id=r-{number}><summary>{count} {relays}{not}</summary><ul>");
    for relay in replica.relays.iter().take(LISTED) {
        let _ = write!(html, "<li>{} <code>{}</code>", Esc(&relay.name), Esc(&relay.config_hash));
        if let Some(refused) = &relay.refused {
            let _ = write!(html, " not run: {}", Esc(&refused.code));
        }
    }
    if count > LISTED {
        let _ = write!(html, "<li>and {} more: <code>outbox-relay replica list</code>", count - LISTED);
    }
    html.push_str("</ul></details>");
    html
}
