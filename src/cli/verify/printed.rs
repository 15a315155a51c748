//! Results of `verify`, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::Args;
use crate::cli::format::Format;
use crate::cli::table::{Table, visible};
use crate::position::{Position, Timestamp};
use crate::verify::report::Passed;
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
    let late = |(at, id): &(Timestamp, String)| json!({ "id": id, "created_at": at.to_string() });
    let to_come: Vec<Value> = report.to_come.iter().take(limit).map(late).collect();
    let of_topic = report.passed.is_none();
    let mut document = json!({
        "relay": report.name,
        "topic": of_topic.then_some(&report.topic),
        "since": report.since.to_string(),
        "until": report.until.to_string(),
        "ok": report.is_equal(),
        "slices": report.slices(),
        "rows": { "table": report.table, "delivered": report.delivered, "topic": of_topic.then_some(report.records) },
        "not_yet_due": report.pending,
        "explained": explained,
        "late_to_come": to_come,
        "counts": counts,
        "differences": differences,
        "differences_capped": report.differences.len() > limit || !report.complete,
        "notes": report.notes,
    });
    if let Some(passed) = &report.passed {
        add_passed(&mut document, passed);
    }
    document
}

/// What there is to say of slices.
fn add_passed(document: &mut Value, passed: &Passed) {
    let place = |place: &Position| json!({ "created_at": place.created_at.to_string(), "id": place.id });
    let unclear = passed.unclear.iter().map(|slice| {
        json!({
            "cursor": slice.cursor,
            "after": place(&slice.after),
            "up_to": place(&slice.up_to),
            "table": slice.table,
            "passed": slice.passed,
        })
    });
    let unclear: Vec<Value> = unclear.collect();
    let left_out = passed.left_out.iter().map(|part| {
        json!({
            "cursor": part.cursor,
            "after": place(&part.after),
            "up_to": place(&part.up_to),
            "rows": part.rows,
            "reason": part.why,
            "fix": part.fix,
        })
    });
    document["sink"] = passed.sink.into();
    document["not_compared"] = left_out.collect();
    if passed.unnamed > 0 || !unclear.is_empty() {
        document["differences_capped"] = true.into();
    }
    document["unclear"] = unclear.into();
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
    match &report.passed {
        None => {
            let _ = writeln!(text, "\n  topic  {}: {} records", visible(&report.topic), report.records);
        }
        Some(passed) => write_passed(&mut text, passed),
    }
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

fn write_passed(text: &mut String, passed: &Passed) {
    let _ = writeln!(text, "\n  slices {} of what was passed to {}", passed.slices, passed.sink);
    for part in &passed.left_out {
        let (after, up_to) = (visible(&part.after.to_string()), visible(&part.up_to.to_string()));
        let _ = writeln!(
            text,
            "  not compared: {} rows of {} between {after} and {up_to}: {}",
            part.rows, part.cursor, part.why
        );
    }
    for slice in &passed.unclear {
        let (after, up_to) = (visible(&slice.after.to_string()), visible(&slice.up_to.to_string()));
        let _ = writeln!(
            text,
            "  more than nine ids differ of {} between {after} and {up_to}: the table has {} rows, {} were passed",
            slice.cursor, slice.table, slice.passed
        );
    }
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
    if !report.is_different() {
        let rows: u64 = report.passed.iter().flat_map(|passed| &passed.left_out).map(|part| part.rows).sum();
        return format!("no difference found, and {rows} rows not compared");
    }
    let counts = report.counts.iter().map(|(kind, count)| format!("{count} {}", kind.as_str()));
    let unclear = report.passed.as_ref().map_or(0, |passed| passed.unclear.len());
    let slices = if unclear == 1 { "slice" } else { "slices" };
    let unclear = (unclear > 0).then(|| format!("{unclear} {slices} in more ids than can be named"));
    let counts: Vec<String> = counts.chain(unclear).collect();
    let at_least = if report.complete { "" } else { "at least " };
    format!("different: {at_least}{}", counts.join(", "))
}
