//! The verdict as people read it, and as the document that scripts read.

use std::fmt::Write as _;

use serde::Serialize;

use super::judge::{AtLeastOnce, AtMostOnce};
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
        let _ = writeln!(text, "the provider {}", self.provider);
        for kill in &self.kills {
            let _ = writeln!(text, "{}", kill.line());
        }
        let _ = write!(text, "verdict {}", self.verdict);
        text
    }
}
