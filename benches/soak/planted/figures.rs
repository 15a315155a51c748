//! The result: a line for each kind of loss, false alarms, and what breaks a promise.

use std::io::Write as _;
use std::time::Duration;

use serde_json::json;

use super::Scene;
use super::findings::{Findings, Found};
use crate::soak::kinds::Plant;

const LINES: &str = "target/soak/planted.jsonl";
/// So many of each are printed.
const PRINTED: usize = 20;
/// What a replica logs when the audit has found rows of a slice late, and cannot say which.
const UNNAMED: &str = "which ones cannot be told";

/// Prints it, adds a line to `target/soak/planted.jsonl`, and gives what the program ends with.
pub fn tell(scene: &Scene, findings: &Findings, took: Duration) -> anyhow::Result<u8> {
    let counts = scene.journal.counts();
    let kills: u64 = ["kill", "term", "stop", "sessions"].iter().filter_map(|word| counts.get(*word)).sum();
    let unnamed = logged(scene)?;
    let all = real(findings, None);
    let (planted, found) = (all.len(), all.iter().filter(|one| one.is_found()).count());
    let alarms = findings.alarms.each_ref().map(Vec::len);
    println!();
    if planted > 0 {
        println!(
            "{:<18}{:>8}{:>8}{:>26}{:>26}",
            "lost by", "planted", "found", "verify: median, max s", "audit: median, max s"
        );
        for kind in Plant::ALL {
            let losses = real(findings, Some(*kind));
            if !losses.is_empty() {
                println!("{}", line(kind.word(), &losses));
            }
        }
        println!("{}", line("all", &all));
    }
    let void = findings.losses.iter().filter(|found| found.is_void).count();
    println!("{found} of {planted} losses found; {void} lost nothing, because their rows came all the same");
    println!("{kills} kills, stops and ended sessions: {counts:?}");
    let [compared, quiet] = findings.comparisons;
    println!("{compared} comparisons, {quiet} of them with nothing planted since the last one");
    println!("false alarms: {} with nothing planted, {} besides", alarms[1], alarms[0]);
    println!("rows that came again after a kill, as verify says: {}", findings.twice.len());
    println!(
        "rows that the relay which waits for no transaction lost besides, all found: {}",
        findings.unplanned.len()
    );
    println!("slices of which the audit could not say which rows are late: {unnamed}");
    let mut failures = findings.failures.clone();
    failures.extend(findings.alarms.iter().flatten().map(|alarm| format!("false alarm: {alarm}")));
    if planted == 0 && unnamed > 0 {
        failures.push(format!("{unnamed} slices with late rows, and nothing was planted"));
    }
    for failure in failures.iter().take(PRINTED) {
        println!("FAILED: {failure}");
    }
    println!("seed {}, {} s: {}", scene.draw.seed, took.as_secs(), if failures.is_empty() { "pass" } else { "FAILED" });
    let line = json!({"at": chrono::Utc::now().to_rfc3339(), "relay": scene.relay, "seed": scene.draw.seed, "planted": planted,
        "found": found, "void": void, "kills": kills, "comparisons": findings.comparisons, "false_alarms": alarms,
        "twice": findings.twice.len(), "unplanned": findings.unplanned.len(), "unnamed_slices": unnamed,
        "failures": failures, "seconds": took.as_secs()});
    let mut file = std::fs::File::options().create(true).append(true).open(LINES)?;
    writeln!(file, "{line}")?;
    Ok(u8::from(!failures.is_empty()))
}

/// Losses of this kind, or all; without those that lost nothing.
fn real(findings: &Findings, kind: Option<Plant>) -> Vec<&Found> {
    let of = |found: &&Found| !found.is_void && kind.is_none_or(|kind| found.loss.kind == kind);
    findings.losses.iter().filter(of).collect()
}

fn line(what: &str, losses: &[&Found]) -> String {
    let found = losses.iter().filter(|found| found.is_found()).count();
    let verify = seconds(losses.iter().filter_map(|found| found.by_verify).collect());
    let audit = seconds(losses.iter().filter_map(|found| found.by_audit).collect());
    format!("{what:<18}{:>8}{found:>8}{verify:>26}{audit:>26}", losses.len())
}

/// How many there are, their median and the longest.
fn seconds(mut all: Vec<f64>) -> String {
    all.sort_by(f64::total_cmp);
    match all.last() {
        Some(longest) => format!("{}: {:.1}, {longest:.1}", all.len(), all[all.len() / 2]),
        None => "-".to_owned(),
    }
}

/// How often replicas have logged that late rows of a slice could not be named.
fn logged(scene: &Scene) -> anyhow::Result<usize> {
    let mut lines = 0;
    for number in 1..=scene.draw.replicas {
        let log = std::fs::read(scene.dir.join(format!("replica-{number}.log")))?;
        lines += String::from_utf8_lossy(&log).lines().filter(|line| line.contains(UNNAMED)).count();
    }
    Ok(lines)
}
