//! A line for each storm, and the summary.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::draw::Draw;
use super::judge::Verdict;
use super::storm::Storm;

const LINES: &str = "target/soak/storms.jsonl";

/// See the module.
#[derive(Debug)]
pub struct Tally {
    begun: Instant,
    relay: String,
    major: u32,
    storms: u64,
    rows: usize,
    duplicates: usize,
    counts: BTreeMap<String, u64>,
    verdicts: BTreeMap<&'static str, u64>,
    failures: Vec<String>,
}

impl Tally {
    /// Of storms against this program and this major version of PostgreSQL.
    pub fn new(relay: &Path, major: u32) -> Self {
        Self {
            begun: Instant::now(),
            relay: relay.display().to_string(),
            major,
            storms: 0,
            rows: 0,
            duplicates: 0,
            counts: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            failures: Vec::new(),
        }
    }

    /// How long since it began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// How many storms are over.
    pub fn storms(&self) -> u64 {
        self.storms
    }

    /// Adds a storm and prints its line.
    pub fn add(&mut self, storm: &Storm) -> anyhow::Result<()> {
        let Storm { draw, findings, journal, took, rate, kept } = storm;
        let counts = journal.counts();
        self.rows += findings.rows;
        self.duplicates += findings.duplicates;
        for (word, count) in &counts {
            *self.counts.entry(word.clone()).or_default() += count;
        }
        let done = words(&counts);
        let kept = kept.as_ref().map(|dir| format!(" kept in {}", dir.display())).unwrap_or_default();
        let line = format!(
            "{draw} | {} rows {rate:.0}/s | {done} | dups {} unknown {} | {} {}{kept}",
            findings.rows,
            findings.duplicates,
            findings.unknown,
            findings.verdict.word(),
            findings.verdict.what()
        );
        self.close(draw, &findings.verdict, line.trim_end(), *took);
        write_line(&serde_json::json!({
            "at": chrono::Utc::now().to_rfc3339(), "relay": self.relay, "postgres": self.major, "number": self.storms,
            "draw": draw, "rows": findings.rows, "rate": rate.round(), "done": counts, "duplicates": findings.duplicates,
            "unknown": findings.unknown, "missing": findings.missing.len(), "passed": findings.passed,
            "verdict": findings.verdict.word(), "what": findings.verdict.what(), "seconds": took.as_secs(),
        }))
    }

    /// Adds a storm that was broken off, because the stage failed.
    pub fn add_broken(&mut self, draw: &Draw, error: &anyhow::Error) -> anyhow::Result<()> {
        let verdict = Verdict::Undecided(format!("{error:#}"));
        let line = format!("{draw} | {} {}", verdict.word(), verdict.what());
        self.close(draw, &verdict, &line, Duration::ZERO);
        write_line(&serde_json::json!({
            "at": chrono::Utc::now().to_rfc3339(), "relay": self.relay, "postgres": self.major, "number": self.storms,
            "draw": draw, "verdict": verdict.word(), "what": verdict.what(),
        }))
    }

    fn close(&mut self, draw: &Draw, verdict: &Verdict, line: &str, took: Duration) {
        self.storms += 1;
        *self.verdicts.entry(verdict.word()).or_default() += 1;
        println!("{:4} seed {} | {line} | {} s", self.storms, draw.seed, took.as_secs());
        if *verdict != Verdict::Pass {
            self.failures.push(format!("seed {}: {} {}", draw.seed, verdict.word(), verdict.what()));
        }
    }

    /// Prints the summary.
    pub fn print(&self) {
        let minutes = self.begun.elapsed().as_secs_f64() / 60.0;
        println!();
        println!("{} storms in {minutes:.0} minutes on PostgreSQL {}: {}", self.storms, self.major, self.relay);
        println!("rows {}, delivered again {}", self.rows, self.duplicates);
        println!("faults and changes: {}", words(&self.counts));
        let verdicts: Vec<String> = self.verdicts.iter().map(|(word, count)| format!("{word} {count}")).collect();
        println!("verdicts: {}", verdicts.join(", "));
        for failure in &self.failures {
            println!("  {failure}");
        }
    }

    /// What the program ends with.
    pub fn exit_code(&self) -> u8 {
        let has = |word: &str| self.verdicts.contains_key(word);
        if has("FAIL") || has("HALTED") {
            1
        } else if has("undecided") || self.storms == 0 {
            3
        } else {
            0
        }
    }
}

fn words(counts: &BTreeMap<String, u64>) -> String {
    let words: Vec<String> = counts.iter().map(|(word, count)| format!("{word} {count}")).collect();
    if words.is_empty() { "calm".to_owned() } else { words.join(" ") }
}

fn write_line(line: &serde_json::Value) -> anyhow::Result<()> {
    let mut file = std::fs::File::options().create(true).append(true).open(LINES)?;
    Ok(writeln!(file, "{line}")?)
}
