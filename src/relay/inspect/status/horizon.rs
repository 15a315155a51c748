//! How far a cursor's table is safe to read, and who holds that back.

use serde::Serialize;

use crate::position::Timestamp;
use crate::source::Rule;
use crate::source::certainty::Certainty;
use crate::source::horizon::Held;
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;
use crate::visible::visible;

/// A horizon.
#[derive(Debug, Serialize)]
pub struct HorizonStatus {
    at: Option<String>,
    pub(super) rule: &'static str,
    proven: bool,
    #[serde(skip)]
    pub(super) certainty: Certainty,
    pub(super) held_seconds: Option<f64>,
    /// Who holds it back.
    pub held_by: Vec<HeldStatus>,
    /// Who is not waited for any longer, as `max_hold` has it; left out of the document where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<HeldStatus>,
}

/// A transaction that holds a horizon back, or did so for too long.
#[derive(Debug, Serialize)]
pub struct HeldStatus {
    /// The server process; none for a prepared transaction.
    pub pid: Option<i32>,
    /// What the session calls itself.
    pub application: Option<String>,
    /// How long it has been there; null when that cannot be read.
    pub age_seconds: Option<f64>,
    /// Why it holds.
    pub reason: &'static str,
    /// The virtual transaction, which names a prepared one.
    #[serde(skip)]
    pub transaction: String,
}

#[cfg(test)]
impl HorizonStatus {
    pub(super) const fn of(
        rule: &'static str,
        certainty: Certainty,
        held_seconds: Option<f64>,
        held_by: Vec<HeldStatus>,
    ) -> Self {
        Self { at: None, rule, proven: certainty.proven(), certainty, held_seconds, held_by, passed_over: Vec::new() }
    }
}

impl HeldStatus {
    fn of(held: &Held, rule: Rule, now: Timestamp) -> Self {
        Self {
            pid: held.holder.pid,
            application: held.holder.application.clone(),
            age_seconds: held.holder.started.or(held.bound).map(|since| now.since(since).as_secs_f64()),
            reason: held.reason(rule),
            transaction: held.holder.transaction.clone(),
        }
    }

    /// That it is not waited for, for people: a sentence without its full stop.
    pub(super) fn passed_over_note(&self) -> String {
        let who = match (self.pid, self.application.as_deref().filter(|text| !text.is_empty())) {
            (Some(pid), Some(application)) => format!("pid {pid} ({})", visible(application)),
            (Some(pid), None) => format!("pid {pid}"),
            (None, _) => "a prepared transaction".to_owned(),
        };
        let open = self.age_seconds.map_or_else(String::new, |age| format!(", open for {age:.0} s,"));
        format!("{who}{open} is not waited for any longer (max_hold): what it commits comes late")
    }
}

pub(in crate::relay::inspect) fn horizon(shape: &Shape, sighting: &Sighting) -> HorizonStatus {
    let horizon = &sighting.horizon;
    let known = horizon.at.is_finite();
    let margin = shape.margin.window + shape.margin.precision;
    let told = |held: &[Held]| held.iter().map(|held| HeldStatus::of(held, shape.rule, horizon.observed_at)).collect();
    HorizonStatus {
        at: known.then(|| horizon.at.to_string()),
        rule: shape.rule.as_str(),
        proven: shape.certainty.proven(),
        certainty: shape.certainty,
        held_seconds: known.then(|| horizon.observed_at.since(horizon.at.plus(margin)).as_secs_f64()),
        held_by: told(&horizon.held_by),
        passed_over: told(&horizon.passed_over),
    }
}
