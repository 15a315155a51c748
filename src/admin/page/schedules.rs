//! Schedules with their next dates, and the actions that are running. What a command says of its progress is not shown: it may
//! be about rows.

use std::fmt::Write as _;

use super::cursors::{cell, head};
use super::html::{Esc, prose};
use crate::jobs::timetable::ScheduleSummary;
use crate::position::Timestamp;
use crate::relay::inspect::overview::{Overview, SCHEDULES};
use crate::relay::inspect::planned::{local, state, words};
use crate::relay::inspect::status::in_one_unit;

pub(super) fn write(overview: &Overview, page: &mut String) {
    page.push_str("<section id=schedules data-live aria-labelledby=h-schedules><h2 id=h-schedules>Schedules</h2>");
    for action in &overview.status.actions {
        let tenant =
            if action.tenant.is_empty() { String::new() } else { format!(" (tenant {})", Esc(&action.tenant)) };
        let times = format!("{:.0} s of {:.0} s", action.running_seconds, action.timeout_seconds);
        let _ = write!(page, "<p>running: {}{tenant} for <span data-ages>{times}</span></p>", Esc(&action.schedule));
    }
    if overview.schedules.is_empty() {
        page.push_str("<p class=none>No schedules.</p></section>\n");
        return;
    }
    page.push_str("<table role=table><caption>The next dates of schedules, by the clocks of their zones.</caption>");
    head(&["Schedule", "Relay", "When", "Next"], page);
    let now = Timestamp::parse_rfc3339(&overview.status.observed_at).ok();
    for schedule in &overview.schedules {
        let tenant = if schedule.tenant.is_empty() { String::new() } else { format!(" ({})", schedule.tenant) };
        let _ = write!(page, "<tr role=row><th role=rowheader scope=row>{}{}</th>", Esc(&schedule.name), Esc(&tenant));
        cell("Relay", &Esc(&schedule.relay).to_string(), page);
        cell("When", &Esc(&words(schedule)).to_string(), page);
        cell("Next", &next(schedule, now), page);
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table>");
    if overview.schedules.len() >= SCHEDULES {
        page.push_str("<p>There may be more: <code>outbox-relay schedule list</code></p>");
    }
    page.push_str("</section>\n");
}

/// Whether one of them cannot run.
pub(super) fn fail(overview: &Overview) -> bool {
    overview.schedules.iter().any(|schedule| schedule.problem.is_some())
}

fn next(schedule: &ScheduleSummary, now: Option<Timestamp>) -> String {
    let state = state(schedule);
    if let Some(problem) = &schedule.problem {
        return format!("<span class=\"badge bad\">problem</span> {}", prose(problem));
    }
    let Some(at) = schedule.next_at.filter(|_| state == "planned") else { return state.to_owned() };
    let clocks = local(at, &schedule.time_zone).unwrap_or_else(|| at.to_string());
    let away = match now {
        Some(now) if at > now => format!("<span data-ages>in {}: </span>", in_one_unit(at.since(now))),
        Some(_) => "overdue since ".to_owned(),
        None => String::new(),
    };
    format!("{away}{}", Esc(&clocks))
}
