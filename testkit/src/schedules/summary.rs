//! The verdict as people read it, and as the document that scripts read.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::judge::{Counts, Truth};
use super::lateness::{LIMIT, Lateness};
use super::{HANGING, HEALTHY};
use crate::Options;
use crate::delivery::Verdict;
use crate::kills::Kill;

/// The document; names and types are a contract.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    verdict: &'static str,
    scenario: &'static str,
    seed: u64,
    seconds: u64,
    replicas: usize,
    occurrences: Counts,
    tenants: BTreeMap<&'static str, Counts>,
    /// Of three instants without a replica, so many were made.
    missed: BTreeMap<&'static str, usize>,
    problem: Option<String>,
    latency_ms: Lateness,
    without_replica_seconds: f64,
    /// The longest that something in a killed replica's hand waited to be taken up.
    takeover_ms: Option<u64>,
    kills: Vec<Kill>,
}

/// What was found out.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) verdict: Verdict,
    pub(super) all: Counts,
    pub(super) lateness: Lateness,
    pub(super) problem: Option<String>,
    pub(super) kills: Vec<Kill>,
    /// How long no replica was there.
    pub(super) without: Duration,
}

impl Summary {
    pub(super) fn new(options: &Options, truth: &Truth, findings: Findings) -> Self {
        let missed = |policy| {
            let name = format!("missed {policy}");
            (policy, truth.actions.iter().filter(|action| action.of.schedule == name).count())
        };
        let tenants = HEALTHY.into_iter().chain([HANGING]);
        Self {
            verdict: findings.verdict.as_str(),
            scenario: "schedules",
            seed: options.seed,
            seconds: options.writing.as_secs(),
            replicas: options.replicas,
            occurrences: findings.all,
            tenants: tenants.map(|tenant| (tenant, truth.counts(|one| one == tenant))).collect(),
            missed: ["all", "latest", "none"].map(missed).into(),
            problem: findings.problem,
            latency_ms: findings.lateness,
            without_replica_seconds: (findings.without.as_secs_f64() * 10.0).round() / 10.0,
            takeover_ms: truth.taken_up().and_then(|longest| u64::try_from(longest.as_millis()).ok()),
            kills: findings.kills,
        }
    }

    /// A table for people, without a trailing line break.
    pub(super) fn table(&self) -> String {
        let mut text = format!("{:<40}", "occurrences");
        for tenant in self.tenants.keys() {
            let _ = write!(text, "{tenant:>7}");
        }
        let _ = writeln!(text, "{:>7}", "all");
        for (what, count) in lines() {
            let _ = write!(text, "{what:<40}");
            for counts in self.tenants.values().chain([&self.occurrences]) {
                let _ = write!(text, "{:>7}", count(counts));
            }
            text.push('\n');
        }
        let made: Vec<String> = self.missed.iter().map(|(policy, made)| format!("{made} by {policy}")).collect();
        let _ = writeln!(
            text,
            "\nthree instants in {} s without a replica: made {}",
            self.without_replica_seconds,
            made.join(", ")
        );
        let _ = writeln!(text, "30 February: {}", self.problem.as_deref().unwrap_or("no problem was told"));
        let Lateness { judged, excused, late, p50, p99, max, stall } = &self.latency_ms;
        let _ = writeln!(
            text,
            "received after their instants, by {}: p50 {p50} ms, p99 {p99} ms, at most {max} ms ({judged} occurrences)",
            HEALTHY.join(" and ")
        );
        let _ = writeln!(
            text,
            "later than {LIMIT:?} and the machine's own stall (at most {stall} ms): {late}. Not judged: {excused}, which came \
             while no replica was there, or behind an action that a killed replica had in hand"
        );
        if let Some(longest) = self.takeover_ms {
            let _ = writeln!(text, "what a killed replica had in hand was taken up after {longest} ms at most");
        }
        for kill in &self.kills {
            let _ = writeln!(text, "{}", kill.line());
        }
        let _ = write!(text, "verdict {}", self.verdict);
        text
    }
}

/// What is counted, in words.
type Line = (&'static str, fn(&Counts) -> usize);

fn lines() -> [Line; 11] {
    [
        ("expected, by counting", |counts| counts.expected),
        ("completed", |counts| counts.completed),
        ("failed", |counts| counts.failed),
        ("skipped: the one before had not ended", |counts| counts.skipped),
        ("lost", |counts| counts.lost),
        ("made twice", |counts| counts.twice),
        ("nobody had planned", |counts| counts.phantom),
        ("received before their instants", |counts| counts.early),
        ("received again under the same key", |counts| counts.repeated),
        ("  of these, no kill explains", |counts| counts.unexplained),
        ("failed or skipped without a reason", |counts| counts.wrong),
    ]
}
