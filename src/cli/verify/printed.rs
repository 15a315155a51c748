//! Results of `verify`, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Args;
use crate::cli::format::Format;
use crate::cli::table::{Table, visible};
use crate::verify::{Difference, Report};

/// All reports; one alone is the document.
pub(super) fn all(reports: &[Report], args: &Args) -> String {
    match args.output {
        Format::Table => reports.iter().map(|report| table(report, args.limit)).collect::<Vec<_>>().join("\n"),
        Format::Json => {
            let mut documents: Vec<Value> = reports.iter().map(|report| document(report, args.limit)).collect();
            if documents.len() == 1 {
                return crate::cli::document::line(documents.remove(0));
            }
            let ok = reports.iter().all(Report::is_equal);
            crate::cli::document::line(json!({ "ok": ok, "relays": documents }))
        }
    }
}

fn document(report: &Report, limit: usize) -> Value {
    let differences: Vec<Value> = report.differences.iter().take(limit).map(difference).collect();
    let counts: BTreeMap<&str, u64> = report.counts.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
    let explained: BTreeMap<&str, u64> = report.known.iter().map(|(known, count)| (known.as_str(), *count)).collect();
    json!({
        "relay": report.name,
        "topic": report.topic,
        "since": report.since.to_string(),
        "until": report.until.to_string(),
        "ok": report.is_equal(),
        "slices": report.slices(),
        "rows": { "table": report.table, "delivered": report.delivered, "topic": report.records },
        "not_yet_due": report.pending,
        "explained": explained,
        "counts": counts,
        "differences": differences,
        "differences_capped": report.differences.len() > limit || !report.complete,
        "notes": report.notes,
    })
}

fn difference(found: &Difference) -> Value {
    let mut document = json!({
        "id": found.id,
        "created_at": found.created_at.map(|at| at.to_string()),
        "kind": found.kind.as_str(),
    });
    if let Some((topic, partition, offset)) = &found.record {
        document["record"] = json!({ "topic": topic, "partition": partition, "offset": offset });
    }
    document
}

fn table(report: &Report, limit: usize) -> String {
    let mut text = format!("{}: {}\n", visible(&report.name), verdict(report));
    let _ = writeln!(text, "  range  {} to {}", report.since, report.until);
    let _ = write!(text, "  table  {} rows, {} delivered", report.table, report.delivered);
    if report.pending > 0 {
        let _ = write!(text, ", {} not yet due", report.pending);
    }
    for (known, count) in &report.known {
        let _ = write!(text, ", {count} {}", known.as_str());
    }
    let _ = writeln!(text, "\n  topic  {}: {} records", visible(&report.topic), report.records);
    for note in &report.notes {
        let _ = writeln!(text, "  note: {}", visible(note));
    }
    if report.differences.is_empty() {
        return text;
    }
    let mut table = Table::new(["ID", "CREATED AT", "KIND", "RECORD"]);
    for found in report.differences.iter().take(limit) {
        table.row(cells(found));
    }
    text.push_str(&table.render());
    if report.differences.len() > limit {
        let _ = writeln!(text, "{} more: --limit", report.differences.len() - limit);
    }
    text
}

/// A difference as it is printed: id, instant, kind, record.
pub(super) fn cells(found: &Difference) -> [String; 4] {
    let record = found.record.as_ref();
    [
        found.id.clone(),
        found.created_at.map_or_else(|| "-".to_owned(), |at| at.to_string()),
        found.kind.as_str().to_owned(),
        record.map_or_else(|| "-".to_owned(), |(topic, partition, offset)| format!("{topic}[{partition}]@{offset}")),
    ]
}

fn verdict(report: &Report) -> String {
    if report.is_equal() {
        return "equal".to_owned();
    }
    let counts: Vec<String> = report.counts.iter().map(|(kind, count)| format!("{count} {}", kind.as_str())).collect();
    let at_least = if report.complete { "" } else { "at least " };
    format!("different: {at_least}{}", counts.join(", "))
}
