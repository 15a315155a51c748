//! The verdict as people read it, and as the document that scripts read.

use std::fmt::{self, Write as _};
use std::time::Duration;

use serde::Serialize;

use super::judge::{AtLeastOnce, AtMostOnce};
use super::rows::{REMINDERS, WELCOME};
use crate::delivery::Verdict;
use crate::demo::Options;
use crate::demo::provider::{Answer, Received};

/// The document; names and types are a contract.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    verdict: &'static str,
    scenario: &'static str,
    seed: u64,
    seconds: u64,
    replicas: usize,
    systems: Systems,
    provider: Faults,
    kills: Vec<Kill>,
}

#[derive(Debug, Serialize)]
struct Systems {
    reminders: Reminders,
    welcome: Welcome,
}

#[derive(Debug, Serialize)]
struct Reminders {
    due: usize,
    delivered: usize,
    repeated: usize,
    /// Repeats without a fault or a kill behind them.
    unexplained: usize,
    early: usize,
    phantom: usize,
    unmarked: usize,
}

#[derive(Debug, Serialize)]
struct Welcome {
    due: usize,
    delivered: usize,
    twice: usize,
    unknown: usize,
    unexplained: usize,
    early: usize,
    phantom: usize,
}

/// What the provider did to requests.
#[derive(Debug, Default, Serialize)]
struct Faults {
    refused: usize,
    hung: usize,
    lost: usize,
    late: usize,
}

/// A replica that was killed, and what it was sending.
#[derive(Debug, Serialize)]
pub(super) struct Kill {
    signal: &'static str,
    pid: u32,
    replica: String,
    /// Since the play began.
    at_seconds: f64,
    held: Held,
}

#[derive(Debug, Default, Serialize)]
struct Held {
    reminders: usize,
    welcome: usize,
}

impl Kill {
    pub(super) fn new(pid: u32, replica: &str, at: Duration) -> Self {
        let at_seconds = (at.as_secs_f64() * 10.0).round() / 10.0;
        Self { signal: "SIGKILL", pid, replica: replica.to_owned(), at_seconds, held: Held::default() }
    }

    /// One claim more of this relay.
    pub(super) fn count(&mut self, relay: &str) {
        match relay {
            REMINDERS => self.held.reminders += 1,
            WELCOME => self.held.welcome += 1,
            _ => {}
        }
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, replica, signal, held, .. } = self;
        let Held { reminders, welcome } = held;
        write!(f, "{signal} to {replica} (pid {pid}), which had {reminders} reminders and {welcome} welcome messages")
    }
}

impl Summary {
    pub(super) fn new(
        options: &Options,
        verdict: Verdict,
        reminders: &AtLeastOnce,
        welcome: &AtMostOnce,
        kills: Vec<Kill>,
        received: &[Received],
    ) -> Self {
        let (a, b) = (&reminders.counts, &welcome.counts);
        Self {
            verdict: verdict.as_str(),
            scenario: "reminders",
            seed: options.seed,
            seconds: options.writing.as_secs(),
            replicas: options.replicas,
            systems: Systems {
                reminders: Reminders {
                    due: a.due,
                    delivered: a.delivered,
                    repeated: a.repeated,
                    unexplained: reminders.unexplained,
                    early: a.early,
                    phantom: a.phantom,
                    unmarked: reminders.unmarked,
                },
                welcome: Welcome {
                    due: b.due,
                    delivered: b.delivered,
                    twice: b.repeated,
                    unknown: welcome.unknown,
                    unexplained: welcome.unexplained,
                    early: b.early,
                    phantom: b.phantom,
                },
            },
            provider: Faults::of(received),
            kills,
        }
    }

    /// A table for people, without a trailing line break.
    pub(super) fn table(&self) -> String {
        let Systems { reminders: a, welcome: b } = &self.systems;
        let mut text = format!(
            "{:<26} {:>5} {:>10} {:>9} {:>12} {:>8} {:>6} {:>8} {:>8}\n",
            "system", "due", "delivered", "repeated", "unexplained", "unknown", "early", "phantom", "unmarked"
        );
        let _ = writeln!(
            text,
            "{:<26} {:>5} {:>10} {:>9} {:>12} {:>8} {:>6} {:>8} {:>8}",
            "reminders, at least once",
            a.due,
            a.delivered,
            a.repeated,
            a.unexplained,
            "-",
            a.early,
            a.phantom,
            a.unmarked
        );
        let _ = writeln!(
            text,
            "{:<26} {:>5} {:>10} {:>9} {:>12} {:>8} {:>6} {:>8} {:>8}\n",
            "welcome, at most once", b.due, b.delivered, b.twice, b.unexplained, b.unknown, b.early, b.phantom, "-"
        );
        let _ = writeln!(
            text,
            "unexplained: a reminder that came again without a fault or a kill; a welcome that neither came nor is unknown"
        );
        let Faults { refused, hung, lost, late } = self.provider;
        let _ = writeln!(
            text,
            "the provider refused {refused} requests, answered {hung} never and {late} late, and lost {lost}"
        );
        for kill in &self.kills {
            let _ = writeln!(text, "{:4.1} s: {kill}", kill.at_seconds);
        }
        let _ = write!(text, "verdict {}", self.verdict);
        text
    }
}

impl Faults {
    fn of(received: &[Received]) -> Self {
        let mut faults = Self::default();
        for one in received {
            match one.answer {
                Answer::Refuse(_) => faults.refused += 1,
                Answer::Hang => faults.hung += 1,
                Answer::Lose => faults.lost += 1,
                Answer::Late(pause) if pause >= super::faults::LATE_FROM => faults.late += 1,
                Answer::Late(_) | Answer::Accept => {}
            }
        }
        faults
    }
}
