//! How much later than their instants actions reach their endpoints, and which of them may be late.
//!
//! The rule: an action is received within a second of its instant. Excused is what came while no replica was there, and a
//! schedule of which a killed replica had an action in hand, until that is taken up: a schedule never runs two at once. On
//! a machine that stalls the metronome's stall is added to the second.

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use super::judge::{Care, Occurrence, Truth};
use super::metronome::Beat;
use outbox_relay::position::Timestamp;

/// Later than this is late.
pub(super) const LIMIT: Duration = Duration::from_secs(1);
/// A claim lasts for 10 seconds; then what has come meanwhile is worked off.
pub(super) const TAKEN_UP: Duration = Duration::from_secs(13);
/// A kill falls into the work on an instant that lies before it by no more than this.
pub(super) const BEFORE: Duration = Duration::from_secs(2);

/// Instants that may be late.
#[derive(Clone, Debug)]
pub(super) struct Excuse {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
    /// Tenant and schedule; none: all.
    pub(super) of: Option<(String, String)>,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Lateness {
    pub(super) judged: usize,
    pub(super) excused: usize,
    /// Beyond the limit.
    pub(super) late: usize,
    pub(super) p50: f64,
    pub(super) p99: f64,
    pub(super) max: f64,
    /// The longest of the machine's own.
    pub(super) stall: f64,
}

impl Excuse {
    fn covers(&self, one: &Occurrence) -> bool {
        let whose =
            self.of.as_ref().is_none_or(|(tenant, schedule)| *tenant == one.tenant && *schedule == one.schedule);
        whose && self.from <= one.planned && one.planned <= self.to
    }
}

/// Of everything whose endpoint answers.
pub(super) fn judge(truth: &Truth, excuses: &[Excuse], beats: &[Beat]) -> Lateness {
    let mut first: HashMap<&Occurrence, Timestamp> = HashMap::new();
    for receipt in &truth.receipts {
        first.entry(&receipt.of).and_modify(|at| *at = receipt.at.min(*at)).or_insert(receipt.at);
    }
    let mut lateness =
        Lateness { stall: millis(stall(beats, Timestamp::NEG_INFINITY, Timestamp::INFINITY)), ..Lateness::default() };
    let mut all = Vec::new();
    for expected in truth.expected.iter().filter(|one| one.care != Care::Hangs) {
        let Some(at) = first.get(&expected.of) else { continue };
        if excuses.iter().any(|excuse| excuse.covers(&expected.of)) {
            lateness.excused += 1;
            continue;
        }
        let planned = expected.of.planned;
        lateness.judged += 1;
        lateness.late += usize::from(at.since(planned) > LIMIT + stall(beats, planned, *at));
        all.push(millis(at.since(planned)));
    }
    all.sort_by(f64::total_cmp);
    let percentile = |p: f64| all.get(((all.len() as f64 * p).ceil() as usize).max(1) - 1).copied().unwrap_or(0.0);
    (lateness.p50, lateness.p99, lateness.max) = (percentile(0.50), percentile(0.99), percentile(1.0));
    lateness
}

/// The longest stall that touches this time.
fn stall(beats: &[Beat], from: Timestamp, to: Timestamp) -> Duration {
    let touching = beats.iter().filter(|beat| beat.due <= to && beat.due.plus(beat.late) >= from);
    touching.map(|beat| beat.late).max().unwrap_or_default()
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}
