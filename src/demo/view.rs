//! What the user sees while the demo plays: a few lines that renew themselves on a terminal, plain lines elsewhere.
//! All of it goes to standard error; standard output belongs to the verdict.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

use super::Options;
use super::sample::{Sample, Sink};

/// Rates are over this much time.
const SPAN: Duration = Duration::from_secs(2);
/// Between two plain lines.
const PLAIN: Duration = Duration::from_secs(2);
/// So many of the last notes stay in view.
const NOTES: usize = 5;

#[derive(Debug)]
pub(super) struct View {
    terminal: bool,
    title: String,
    writing: Duration,
    started: Instant,
    /// Lines of the last drawing, which the next one replaces.
    drawn: usize,
    last_plain: Option<Instant>,
    samples: VecDeque<Sample>,
    notes: VecDeque<String>,
}

impl View {
    pub(super) fn new(options: &Options) -> Self {
        let broker = match &options.kafka {
            super::Kafka::InProcess => "in-process broker".to_owned(),
            super::Kafka::Own => "Apache Kafka".to_owned(),
            super::Kafka::At(servers) => format!("Kafka at {servers}"),
        };
        Self {
            terminal: std::io::stderr().is_terminal(),
            title: format!("outbox-relay demo: {} replicas, {broker}, seed {}", options.replicas, options.seed),
            writing: options.writing,
            started: Instant::now(),
            drawn: 0,
            last_plain: None,
            samples: VecDeque::new(),
            notes: VecDeque::new(),
        }
    }

    /// Time counts from here.
    pub(super) fn start(&mut self) {
        self.started = Instant::now();
    }

    /// Something has happened.
    pub(super) fn note(&mut self, text: &str) {
        let line = format!("{:6.1} s  {text}", self.started.elapsed().as_secs_f64());
        if !self.terminal {
            eprintln!("{line}");
            return;
        }
        self.notes.push_back(line);
        if self.notes.len() > NOTES {
            self.notes.pop_front();
        }
        self.draw();
    }

    /// The present.
    pub(super) fn show(&mut self, sample: Sample) {
        self.samples.push_back(sample);
        while self.samples.len() > 2 && self.samples[1].at.elapsed() >= SPAN {
            self.samples.pop_front();
        }
        if self.terminal {
            self.draw();
        } else if self.last_plain.is_none_or(|last| last.elapsed() >= PLAIN) {
            self.last_plain = Some(Instant::now());
            let lines = self.lines();
            eprintln!("{:6.1} s  {}", self.started.elapsed().as_secs_f64(), lines.join("; "));
        }
    }

    fn draw(&mut self) {
        // Without line wrap, so that a line stays one line on a narrow terminal, too.
        let mut text = String::from("\x1b[?7l");
        if self.drawn > 0 {
            let _ = write!(text, "\x1b[{}A", self.drawn);
        }
        let mut lines = vec![self.title.clone(), self.progress()];
        lines.extend(self.lines().into_iter().map(|line| format!("  {line}")));
        lines.push(String::new());
        lines.extend(self.notes.iter().cloned());
        for line in &lines {
            let _ = writeln!(text, "\r\x1b[2K{line}");
        }
        self.drawn = self.drawn.max(lines.len());
        for _ in lines.len()..self.drawn {
            let _ = writeln!(text, "\r\x1b[2K");
        }
        text.push_str("\x1b[?7h");
        // A terminal that is gone is no reason to end.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    fn progress(&self) -> String {
        const WIDTH: usize = 40;
        if self.samples.is_empty() {
            return String::new();
        }
        let share = (self.started.elapsed().as_secs_f64() / self.writing.as_secs_f64()).min(1.0);
        let full = (share * WIDTH as f64) as usize;
        let bar = "=".repeat(full) + &" ".repeat(WIDTH - full);
        format!("  [{bar}] {:.0} of {:.0} s", share * self.writing.as_secs_f64(), self.writing.as_secs_f64())
    }

    fn lines(&self) -> Vec<String> {
        let Some((first, last)) = self.samples.front().zip(self.samples.back()) else { return Vec::new() };
        let seconds = (last.at - first.at).as_secs_f64();
        let rate = |from: u64, to: u64| if seconds > 0.0 { to.saturating_sub(from) as f64 / seconds } else { 0.0 };
        let committed = rate(first.committed, last.committed);
        let mut lines = vec![format!("committed {:>8} rows {committed:>6.0} rows/s", last.committed)];
        for (name, from, to) in [("Kafka", &first.kafka, &last.kafka), ("SMS", &first.sms, &last.sms)] {
            lines.push(describe(name, to, rate(from.delivered, to.delivered)));
        }
        let replicas = last.replicas.iter().map(|(name, pid, state)| format!("{name} (pid {pid}) {state}"));
        lines.push(replicas.collect::<Vec<_>>().join(", "));
        lines
    }
}

fn describe(name: &str, sink: &Sink, rate: f64) -> String {
    let mut line = format!("{name:<9} {:>8} rows {rate:>6.0} rows/s", sink.delivered);
    match &sink.halted {
        Some(error) => line.push_str(&format!("   HALTED: {error}")),
        None => line.push_str(&format!("   lag {:.2} s   held by {}", sink.lag_seconds, sink.holder)),
    }
    line
}
