//! What a run leaves: the table on standard output, `target/bench.json`, and the plots.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use chrono::{SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::machine::{Machine, target};
use super::plot;
use super::report::Report;
use super::summary::summary;

/// Prints and writes; `keep` is whether the run goes into `benches/results` when all parts have succeeded.
pub fn write(machine: &Machine, report: &Report, keep: bool) -> anyhow::Result<()> {
    let document = document(machine, report);
    println!("{}\n\n{}", machine.sentence(), report.text());
    let file = target().join("bench.json");
    let mut text = serde_json::to_string_pretty(&document)?;
    text.push('\n');
    std::fs::write(&file, text)?;
    println!("{}", file.display());
    let keep = keep && report.failed.is_empty();
    let dir = if keep { Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results") } else { aside() };
    std::fs::create_dir_all(&dir)?;
    plot::draw(&document, &dir)?;
    std::fs::write(dir.join("README.md"), page(machine, report, &document))?;
    println!("{}", dir.display());
    if !report.failed.is_empty() {
        bail!("{} of the parts failed, see above", report.failed.len());
    }
    Ok(())
}

/// Draws the last run again.
pub fn draw() -> anyhow::Result<()> {
    let file = target().join("bench.json");
    let text = std::fs::read(&file).with_context(|| format!("no {}: run `make bench` first", file.display()))?;
    std::fs::create_dir_all(aside())?;
    plot::draw(&serde_json::from_slice(&text)?, &aside())?;
    println!("{}", aside().display());
    Ok(())
}

/// Where runs draw that are not kept.
fn aside() -> PathBuf {
    target().join("bench")
}

/// Keys that do not apply are absent.
fn document(machine: &Machine, report: &Report) -> Value {
    let mut document = Map::new();
    document.insert("machine".into(), Value::Object(machine.facts()));
    document.extend(machine.commit.iter().map(|commit| ("commit".into(), json!(commit))));
    document.insert("at".into(), json!(Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)));
    document.insert("results".into(), Value::Array(report.results.clone()));
    Value::Object(document)
}

fn page(machine: &Machine, report: &Report, document: &Value) -> String {
    let (at, commit) = (document["at"].as_str().unwrap_or("?"), machine.commit.as_deref().unwrap_or("?"));
    let summary = summary(document).map(|text| format!("{text}\n")).unwrap_or_default();
    format!(
        "# Results of `make bench`\n\n{at}, commit {commit}.\n{}. The broker was warmed up before, and nothing is measured before all \
         that was written is on the disk. Written by the run itself; the next one overwrites it.\n\n{summary}\
         ![Throughput](throughput.svg)\n\n![Latency](latency.svg)\n\n{}",
        machine.sentence(),
        report.markdown()
    )
}
