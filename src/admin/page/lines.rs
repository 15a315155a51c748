//! The cursors as the page has them: what was last seen in the database, or else what this process knows by itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::html::ago;
use crate::metrics::trail::{self, Trail};
use crate::position::Timestamp;
use crate::relay::inspect::explain::Why;
use crate::relay::inspect::overview::Overview;
use crate::relay::inspect::status::{CursorStatus, NO_REPLICA, in_one_unit};

/// How much a cursor needs an operator; the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Need {
    Well,
    Unknown,
    Warn,
    Bad,
}

impl Need {
    /// The class that has its look.
    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// One cursor.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) need: Need,
    /// In one word.
    pub(super) state: String,
    pub(super) why: Option<&'a Why>,
    pub(super) status: Option<&'a CursorStatus>,
    pub(super) trail: Option<Arc<Trail>>,
}

/// The cursors that were seen, by name, or those that are configured here.
pub(super) fn lines<'a>(overview: Option<&'a Overview>, configured: &'a [String]) -> Vec<Line<'a>> {
    let Some(overview) = overview else {
        let line = |name: &'a String| Line {
            name,
            need: Need::Unknown,
            state: "unknown".to_owned(),
            why: None,
            status: None,
            trail: trail::find(name),
        };
        return configured.iter().map(line).collect();
    };
    let is_manned = !overview.status.fleet.replicas.is_empty();
    let line = |(cursor, why): (&'a CursorStatus, &'a Why)| Line {
        name: &cursor.name,
        need: need(cursor, why, is_manned),
        state: cursor.state.replace('_', " "),
        why: Some(why),
        status: Some(cursor),
        trail: trail::find(&cursor.name),
    };
    overview.status.cursors.iter().zip(&overview.whys).map(line).collect()
}

/// What goes on by itself when something else is well again, or was an operator's own doing, is a warning.
fn need(cursor: &CursorStatus, why: &Why, is_manned: bool) -> Need {
    match why.reason {
        _ if why.well && cursor.clock_step.is_none() => Need::Well,
        // Left by a relay that was taken out.
        NO_REPLICA if is_manned && cursor.open_work.is_none_or(|open| !open.is_some()) => Need::Warn,
        "paused" | "retrying" | "backing_off" | "circuit_open" | "busy" => Need::Warn,
        _ => Need::Bad,
    }
}

impl Line<'_> {
    /// How old the oldest row is that waits, as far as it is known.
    pub(super) fn lag(&self, now: Instant) -> String {
        let of_status = self.status.and_then(|status| status.lag_seconds);
        let measured = self.trail.as_ref().and_then(|trail| trail.last());
        match (of_status, measured) {
            (Some(lag), _) => in_one_unit(Duration::from_secs_f64(lag.clamp(0.0, 1e12))),
            (None, Some(measured)) => {
                let ago = in_one_unit(now.saturating_duration_since(measured.at));
                format!("{}, {ago} ago", in_one_unit(measured.lag))
            }
            (None, None) => "unknown".to_owned(),
        }
    }

    /// The same in seconds; 0 where it is not known.
    pub(super) fn lag_seconds(&self) -> f64 {
        let measured = || self.trail.as_ref().and_then(|trail| trail.last()).map(|last| last.lag.as_secs_f64());
        self.status.and_then(|status| status.lag_seconds).or_else(measured).unwrap_or_default()
    }

    /// How many rows wait.
    pub(super) fn rows(&self) -> String {
        let more = if self.status.is_some_and(|status| status.backlog_capped == Some(true)) { "+" } else { "" };
        let measured = || self.trail.as_ref().and_then(|trail| trail.last()).map(|last| last.rows.to_string());
        let of_status = self.status.and_then(|status| status.backlog_rows).map(|rows| format!("{rows}{more}"));
        of_status.or_else(measured).unwrap_or_else(|| "unknown".to_owned())
    }

    /// Rows a second that this process has had acknowledged; none of a cursor that another replica has.
    pub(super) fn rate(&self, now: Instant, replica: &str) -> String {
        match self.trail.as_ref().and_then(|trail| trail.rate(now)) {
            Some(0.0) if self.holder() != replica => "–".to_owned(),
            Some(rate) if rate >= 10.0 || rate == 0.0 => format!("{rate:.0}"),
            Some(rate) => format!("{rate:.1}"),
            None => "–".to_owned(),
        }
    }

    /// When it last advanced, as HTML.
    pub(super) fn advanced(&self, now: Option<Timestamp>) -> String {
        let Some(status) = self.status else { return "unknown".to_owned() };
        let at = status.advanced_at.as_deref().and_then(|at| Timestamp::parse_rfc3339(at).ok());
        match (at, now) {
            (Some(at), Some(now)) => ago(at, now),
            _ => "never".to_owned(),
        }
    }

    /// Who has it, or had it last.
    pub(super) fn holder(&self) -> &str {
        let holder = self.status.and_then(|status| status.holder.as_ref());
        holder.map_or("–", |holder| holder.replica.as_str())
    }
}
