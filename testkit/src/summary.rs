//! The verdict as people read it, and as the document that scripts read.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::Options;
use super::consumer::Received;
use super::takeover::Kill;
use super::verified::Verified;
use crate::delivery::{Committed, Report, Verdict, verdict};

/// The document; names and types are a contract.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    verdict: &'static str,
    seed: u64,
    seconds: u64,
    replicas: usize,
    rows_committed: usize,
    sinks: Sinks,
    /// What `outbox-relay verify` said of the Kafka relay.
    verify: Verified,
    kills: Vec<Killed>,
    rows_per_second: f64,
    latency_ms: Latency,
}

#[derive(Debug, Serialize)]
struct Sinks {
    kafka: Counts,
    sms: Counts,
}

#[derive(Debug, Serialize)]
struct Counts {
    deliveries: usize,
    distinct: usize,
    lost: usize,
    out_of_order: usize,
    duplicates: usize,
    phantom: usize,
    /// Offsets that the broker lost before the consumer saw them.
    gaps: usize,
}

#[derive(Debug, Serialize)]
struct Killed {
    signal: &'static str,
    pid: u32,
    cursor: String,
    /// Absent when nobody took over.
    takeover_ms: Option<f64>,
    replica: String,
    taken_over_by: Option<String>,
}

#[derive(Debug, Default, Serialize)]
struct Latency {
    p50: f64,
    p99: f64,
    max: f64,
}

/// What a run is judged by.
pub(super) struct Evidence<'a> {
    pub(super) committed: &'a Committed,
    pub(super) received: &'a Received,
    pub(super) kafka: &'a Report,
    pub(super) sms: &'a Report,
    pub(super) verified: &'a Verified,
    pub(super) kills: &'a [Kill],
    /// From the writers' first row to the consumer's last first delivery.
    pub(super) span: Duration,
}

impl Evidence<'_> {
    pub(super) fn verdict(&self) -> Verdict {
        let killed = !self.kills.is_empty();
        let received = verdict(self.committed, &[self.kafka, self.sms], killed);
        received.and(self.verified.verdict(self.committed.len(), killed))
    }

    pub(super) fn summary(&self, options: &Options) -> Summary {
        Summary {
            verdict: self.verdict().as_str(),
            seed: options.seed,
            seconds: options.writing.as_secs(),
            replicas: options.replicas,
            rows_committed: self.committed.len(),
            sinks: Sinks { kafka: Counts::of(self.kafka), sms: Counts::of(self.sms) },
            verify: self.verified.clone(),
            kills: self.kills.iter().map(|kill| self.killed(kill)).collect(),
            rows_per_second: tenths(self.kafka.distinct as f64 / self.span.as_secs_f64().max(0.001)),
            latency_ms: self.latency(),
        }
    }

    fn killed(&self, kill: &Kill) -> Killed {
        Killed {
            signal: "SIGKILL",
            pid: kill.pid,
            cursor: kill.cursor.clone(),
            takeover_ms: kill.time(self.committed, self.received).map(milliseconds),
            replica: kill.replica.clone(),
            taken_over_by: kill.taken_over.as_ref().map(|takeover| takeover.by.clone()),
        }
    }

    /// From `created_at` to the consumer's receipt, of first deliveries.
    fn latency(&self) -> Latency {
        let mut seen = std::collections::HashSet::new();
        let firsts = self.received.partitions.values().flatten().filter(|record| seen.insert(record.id.as_str()));
        let mut all: Vec<Duration> = firsts
            .filter_map(|record| Some(record.received_at.since(self.committed.created_at(&record.id)?)))
            .collect();
        all.sort_unstable();
        let at = |share: f64| {
            let index = (share * all.len() as f64).ceil() as usize;
            all.get(index.clamp(1, all.len().max(1)) - 1).copied().map_or(0.0, milliseconds)
        };
        Latency { p50: at(0.5), p99: at(0.99), max: at(1.0) }
    }
}

impl Counts {
    fn of(report: &Report) -> Self {
        Self {
            deliveries: report.deliveries,
            distinct: report.distinct,
            lost: report.lost.len(),
            out_of_order: report.out_of_order.len(),
            duplicates: report.duplicates(),
            phantom: report.phantom.len(),
            gaps: report.gaps.len(),
        }
    }
}

impl Summary {
    /// A table for people, without a trailing line break.
    pub(super) fn table(&self) -> String {
        let mut text = format!("{} rows committed in {} s\n\n", self.rows_committed, self.seconds);
        let _ = writeln!(
            text,
            "{:<6} {:>10} {:>10} {:>6} {:>13} {:>11} {:>8}",
            "sink", "deliveries", "distinct", "lost", "out of order", "duplicates", "phantom"
        );
        for (name, sink) in [("Kafka", &self.sinks.kafka), ("SMS", &self.sinks.sms)] {
            let _ = writeln!(
                text,
                "{name:<6} {:>10} {:>10} {:>6} {:>13} {:>11} {:>8}",
                sink.deliveries, sink.distinct, sink.lost, sink.out_of_order, sink.duplicates, sink.phantom
            );
        }
        text.push('\n');
        for kill in &self.kills {
            let end = match (&kill.taken_over_by, kill.takeover_ms) {
                (Some(by), Some(ms)) => format!("{by} delivered after {ms:.0} ms"),
                (Some(by), None) => format!("{by} took over"),
                (None, _) => "nobody took over".to_owned(),
            };
            let (replica, pid, cursor) = (&kill.replica, kill.pid, &kill.cursor);
            let _ = writeln!(text, "killed  {replica} (pid {pid}, {}), which held {cursor}: {end}", kill.signal);
        }
        let Latency { p50, p99, max } = self.latency_ms;
        let _ = writeln!(
            text,
            "latency to Kafka p50 {p50:.0} ms, p99 {p99:.0} ms, max {max:.0} ms (a row waits for the long transactions that began before it)"
        );
        if self.sinks.kafka.gaps > 0 {
            let _ = writeln!(text, "The broker lost records before the consumer saw them: nothing is proven.");
        }
        let _ = writeln!(text, "{}", self.verify.line(!self.kills.is_empty()));
        let sinks = [&self.sinks.kafka, &self.sinks.sms];
        let all = |count: fn(&Counts) -> usize| sinks.into_iter().map(count).sum::<usize>();
        let (lost, disordered) = (all(|sink| sink.lost), all(|sink| sink.out_of_order));
        let (repeated, phantom) = (all(|sink| sink.duplicates), all(|sink| sink.phantom));
        let _ = write!(
            text,
            "verdict {}: {lost} lost, {disordered} out of order, {repeated} repeated, {phantom} phantom",
            self.verdict
        );
        text
    }
}

fn milliseconds(duration: Duration) -> f64 {
    tenths(duration.as_secs_f64() * 1000.0)
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
