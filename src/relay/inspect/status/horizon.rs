//! How far a cursor's table is safe to read, and who holds that back.

use serde::Serialize;

use crate::source::certainty::Certainty;
use crate::source::shape::Shape;
use crate::source::watcher::Sighting;

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
}

/// Somebody who holds a horizon back.
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
        Self { at: None, rule, proven: certainty.proven(), certainty, held_seconds, held_by }
    }
}

pub(in crate::relay::inspect) fn horizon(shape: &Shape, sighting: &Sighting) -> HorizonStatus {
    let horizon = &sighting.horizon;
    let known = horizon.at.is_finite();
    let margin = shape.margin.window + shape.margin.precision;
    let held_by = horizon.held_by.iter().map(|held| HeldStatus {
        pid: held.holder.pid,
        application: held.holder.application.clone(),
        age_seconds: held.holder.started.or(held.bound).map(|since| horizon.observed_at.since(since).as_secs_f64()),
        reason: held.reason(shape.rule),
        transaction: held.holder.transaction.clone(),
    });
    HorizonStatus {
        at: known.then(|| horizon.at.to_string()),
        rule: shape.rule.as_str(),
        proven: shape.certainty.proven(),
        certainty: shape.certainty,
        held_seconds: known.then(|| horizon.observed_at.since(horizon.at.plus(margin)).as_secs_f64()),
        held_by: held_by.collect(),
    }
}
