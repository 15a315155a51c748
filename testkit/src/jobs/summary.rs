//! The verdict as people read it, and as the document that scripts read.

use std::fmt::Write as _;

use serde::Serialize;

use super::judge::{Figures, Findings};
use super::{IN_FLIGHT, RELAYS};
use crate::Options;
use crate::faults::Faults;
use crate::kills::Kill;
use crate::provider::Received;

/// The document; names and types are a contract.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    verdict: &'static str,
    scenario: &'static str,
    seed: u64,
    seconds: u64,
    replicas: usize,
    /// Of each replica.
    in_flight: usize,
    rows_committed: usize,
    relays: Relays,
    promises: Vec<Promise>,
    provider: Faults,
    kills: Vec<Kill>,
}

#[derive(Debug, Serialize)]
struct Relays {
    alone: Figures,
    lanes: Figures,
    requests: Figures,
}

#[derive(Debug, Serialize)]
struct Promise {
    promise: &'static str,
    kept: bool,
}

/// What is counted, in words.
type Line = (&'static str, fn(&Figures) -> usize);

const LINES: [Line; 5] = [
    ("sent", |one| one.sent),
    ("waiting", |one| one.waiting),
    ("sent more than once", |one| one.repeated),
    ("came while an earlier one was open", |one| one.overtaking),
    ("  to so many numbers", |one| one.numbers),
];

impl Summary {
    pub(super) fn new(
        options: &Options,
        rows_committed: usize,
        findings: Findings,
        received: &[Received],
        kills: Vec<Kill>,
    ) -> Self {
        let (verdict, promises) = (findings.verdict().as_str(), findings.promises());
        let [alone, lanes, requests] = findings.relays;
        Self {
            verdict,
            scenario: "jobs",
            seed: options.seed,
            seconds: options.writing.as_secs(),
            replicas: options.replicas,
            in_flight: IN_FLIGHT,
            rows_committed,
            relays: Relays { alone, lanes, requests },
            promises: promises.map(|(promise, kept)| Promise { promise, kept }).into(),
            provider: Faults::of(received),
            kills,
        }
    }

    /// A table for people, without a trailing line break.
    pub(super) fn table(&self) -> String {
        let Self { rows_committed, provider, .. } = self;
        let mut text =
            format!("{rows_committed} messages, each as a pending row and as a request; the provider {provider}\n\n");
        let [alone, lanes, requests] = RELAYS;
        let _ = writeln!(text, "{:<38} {alone:>9} {lanes:>9} {requests:>9}", "relay");
        let Relays { alone, lanes, requests } = &self.relays;
        for (what, count) in LINES {
            let [alone, lanes, requests] = [alone, lanes, requests].map(count);
            let _ = writeln!(text, "{what:<38} {alone:>9} {lanes:>9} {requests:>9}");
        }
        text.push('\n');
        for Promise { promise, kept } in &self.promises {
            let _ = writeln!(text, "{:<6} {promise}", if *kept { "kept" } else { "BROKEN" });
        }
        for kill in &self.kills {
            let _ = writeln!(text, "{}", kill.line());
        }
        let _ = write!(text, "verdict {}", self.verdict);
        text
    }
}
