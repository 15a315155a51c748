//! Kills of a play: when, whom, and what the victim had in hand.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::Options;

/// A kill every so often.
const BETWEEN: Duration = Duration::from_secs(4);

/// A replica that was killed, and how much of each relay it had in hand.
#[derive(Debug, Serialize)]
pub(super) struct Kill {
    signal: &'static str,
    pid: u32,
    replica: String,
    /// Since the play began.
    at_seconds: f64,
    held: BTreeMap<String, usize>,
}

impl Kill {
    pub(super) fn new(pid: u32, replica: &str, at: Duration, relays: &[&str]) -> Self {
        let at_seconds = (at.as_secs_f64() * 10.0).round() / 10.0;
        let held = relays.iter().map(|relay| ((*relay).to_owned(), 0)).collect();
        Self { signal: "SIGKILL", pid, replica: replica.to_owned(), at_seconds, held }
    }

    /// One more of this relay.
    pub(super) fn count(&mut self, relay: &str) {
        *self.held.entry(relay.to_owned()).or_default() += 1;
    }

    /// For the table of the verdict.
    pub(super) fn line(&self) -> String {
        format!("{:4.1} s: {self}", self.at_seconds)
    }
}

impl fmt::Display for Kill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, replica, signal, held, .. } = self;
        let held: Vec<String> = held.iter().map(|(relay, count)| format!("{count} of {relay}")).collect();
        write!(f, "{signal} to {replica} (pid {pid})")?;
        if held.is_empty() { Ok(()) } else { write!(f, ", which had {} in hand", held.join(" and ")) }
    }
}

/// Who is killed when; nobody, when there is only one.
pub(super) fn plan(options: &Options) -> Vec<(Duration, String)> {
    if options.replicas < 2 {
        return Vec::new();
    }
    let mut random = fastrand::Rng::with_seed(options.seed);
    let count = (options.writing.as_secs() / BETWEEN.as_secs()).max(1);
    let mut at: Vec<Duration> = (0..count).map(|_| options.writing.mul_f64(random.f64() * 0.8 + 0.05)).collect();
    at.sort_unstable();
    at.into_iter().map(|at| (at, format!("replica-{}", random.usize(1..=options.replicas)))).collect()
}
