//! The verdict as people read it, and as the document that scripts read.

use std::fmt::Write as _;

use serde::Serialize;

use super::judge::{Asked, Sent};
use crate::Options;
use crate::delivery::Verdict;
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
    asked: Asked,
    relays: Both<Sent>,
    providers: Both<Faults>,
    kills: Vec<Kill>,
}

#[derive(Debug, Serialize)]
struct Both<T> {
    mails: T,
    texts: T,
}

impl Summary {
    /// Of two, mails come first.
    pub(super) fn new(
        options: &Options,
        verdict: Verdict,
        asked: Asked,
        [mails, texts]: [Sent; 2],
        received: &[Vec<Received>; 2],
        kills: Vec<Kill>,
    ) -> Self {
        Self {
            verdict: verdict.as_str(),
            scenario: "requests",
            seed: options.seed,
            seconds: options.writing.as_secs(),
            replicas: options.replicas,
            asked,
            relays: Both { mails, texts },
            providers: Both { mails: Faults::of(&received[0]), texts: Faults::of(&received[1]) },
            kills,
        }
    }

    /// A table for people, without a trailing line break.
    pub(super) fn table(&self) -> String {
        let Asked { calls, keys, requests, split, premature, wrong } = &self.asked;
        let mut text = format!(
            "{calls} calls for {keys} keys made {requests} requests; keys with two: {split}; told \"sent\" too early: \
             {premature}; wrong answers to a later call: {wrong}\n\n"
        );
        let Both { mails, texts } = &self.relays;
        let _ = writeln!(text, "{:<44} {:>6} {:>6}", "requests", "mails", "texts");
        for (what, count) in lines() {
            let _ = writeln!(text, "{what:<44} {:>6} {:>6}", count(mails), count(texts));
        }
        let Both { mails, texts } = &self.providers;
        let _ = writeln!(text, "\nthe provider of mails honours idempotency keys; it {mails}");
        let _ = writeln!(text, "the provider of texts does not; it {texts}");
        for kill in &self.kills {
            let _ = writeln!(text, "{}", kill.line());
        }
        let _ = write!(text, "verdict {}", self.verdict);
        text
    }
}

/// What is counted, in words.
type Line = (&'static str, fn(&Sent) -> usize);

fn lines() -> [Line; 13] {
    [
        ("made", |sent| sent.requests),
        ("completed, says the ledger", |sent| sent.completed),
        ("listed as unknown", |sent| sent.unknown),
        ("accepted by the provider", |sent| sent.accepted),
        ("accepted more than once", |sent| sent.repeated),
        ("  of these, not listed as ambiguous", |sent| sent.unexplained),
        ("came with two bodies", |sent| sent.two_bodies),
        ("not accepted", |sent| sent.missing),
        ("  of these, not listed as unknown", |sent| sent.unlisted),
        ("left in doubt by the provider", |sent| sent.in_doubt),
        ("  of these, not listed as ambiguous", |sent| sent.hidden),
        ("messages of no request", |sent| sent.phantom),
        ("neither completed nor unknown", |sent| sent.open),
    ]
}
