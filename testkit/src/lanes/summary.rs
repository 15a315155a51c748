//! The verdict as people read it, and as the document that scripts read.

use std::fmt::Write as _;

use serde::Serialize;

use super::judge::{Figures, Findings};
use super::play::COMMANDS;
use super::{IN_FLIGHT, RELAYS};
use crate::Options;
use crate::kills::Kill;

/// The document; names and types are a contract.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    verdict: &'static str,
    scenario: &'static str,
    seed: u64,
    seconds: u64,
    replicas: usize,
    in_flight: usize,
    rows_committed: usize,
    /// The number that was refused, and how many messages to it.
    refused: String,
    refused_rows: usize,
    relays: Relays,
    promises: Vec<Promise>,
    kills: Vec<Kill>,
}

#[derive(Debug, Serialize)]
struct Relays {
    halt: Relay,
    dead_letter: Relay,
    park_key: Relay,
}

/// While the number is refused, and at the end.
#[derive(Debug, Serialize)]
struct Relay {
    meanwhile: Figures,
    end: Figures,
}

#[derive(Debug, Serialize)]
struct Promise {
    promise: &'static str,
    kept: bool,
}

impl Summary {
    pub(super) fn new(options: &Options, rows_committed: usize, findings: Findings, kills: Vec<Kill>) -> Self {
        let (verdict, promises) = (findings.verdict().as_str(), findings.promises());
        let Findings { refused, refused_rows, meanwhile, end, .. } = findings;
        let mut relays = meanwhile.into_iter().zip(end).map(|(meanwhile, end)| Relay { meanwhile, end });
        let mut next = || relays.next().unwrap_or_else(|| unreachable!("three relays"));
        Self {
            verdict,
            scenario: "lanes",
            seed: options.seed,
            seconds: options.writing.as_secs(),
            replicas: options.replicas,
            in_flight: IN_FLIGHT,
            rows_committed,
            refused,
            refused_rows,
            relays: Relays { halt: next(), dead_letter: next(), park_key: next() },
            promises: promises.map(|(promise, kept)| Promise { promise, kept }).into(),
            kills,
        }
    }

    /// A table for people, without a trailing line break.
    pub(super) fn table(&self) -> String {
        let Self { rows_committed, refused, refused_rows, .. } = self;
        let mut text = format!(
            "{rows_committed} messages; {refused_rows} of them to {refused}, while the provider refused that number\n\n"
        );
        let [halt, dead_letter, park_key] = RELAYS;
        let _ = writeln!(text, "{:<44} {halt:>11} {dead_letter:>11} {park_key:>11}", "on_poison");
        let mut figures = |title: &str, of: fn(&Relay) -> &Figures, lines: &[Line]| {
            let _ = writeln!(text, "{title}");
            let Relays { halt, dead_letter, park_key } = &self.relays;
            for (what, count) in lines {
                let [halt, dead_letter, park_key] = [halt, dead_letter, park_key].map(|relay| count(of(relay)));
                let _ = writeln!(text, "  {what:<42} {halt:>11} {dead_letter:>11} {park_key:>11}");
            }
        };
        figures("while the number is refused", |relay| &relay.meanwhile, &MEANWHILE);
        figures("after one command each", |relay| &relay.end, &END);
        text.push('\n');
        for (relay, command) in RELAYS.iter().zip(COMMANDS) {
            let _ = writeln!(text, "{relay:<11} outbox-relay {}", command.join(" "));
        }
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

/// What is counted, in words.
type Line = (&'static str, fn(&Figures) -> String);

const MEANWHILE: [Line; 4] = [
    ("sent", |one| one.sent.to_string()),
    ("waiting", |one| one.waiting.to_string()),
    ("  of these, to other numbers", |one| one.waiting_others.to_string()),
    ("dead letters", |one| one.dead_letters.to_string()),
];
const END: [Line; 5] = [
    ("sent", |one| one.sent.to_string()),
    ("waiting", |one| one.waiting.to_string()),
    ("dead letters", |one| one.dead_letters.to_string()),
    ("sent more than once", |one| one.repeated.to_string()),
    ("order of each number kept", |one| match one.out_of_order.len() {
        0 => "yes".to_owned(),
        some => format!("no, of {some}"),
    }),
];
