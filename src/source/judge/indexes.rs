//! Uniqueness, order, and what breaks ties.

use super::super::Stream;
use super::super::finding::{Finding, Level};
use super::super::table::{Column, Table};
use crate::database::quote_ident;

pub(super) fn judge(table: &Table, config: &Stream, findings: &mut Vec<Finding>) {
    let pair = [config.created_at.as_str(), config.id.as_str()];
    let list = format!("({}, {})", quote_ident(pair[0]), quote_ident(pair[1]));
    // PostgreSQL cannot build a partitioned table's index concurrently.
    let concurrently = if table.kind == "p" { "" } else { "CONCURRENTLY " };
    for relation in table.not_unique_within(pair) {
        let message = match table.unique_by_another_collation(relation, pair) {
            None => format!(
                "no unique index on {relation} covers only {list}: rows with equal values would be skipped silently"
            ),
            Some(index) => format!(
                "the unique index {} compares by another collation than the columns of {relation}: rows that the columns \
                 take for equal would be skipped silently",
                index.name
            ),
        };
        let finding = Finding::new(Level::Error, "not_unique", message);
        findings.push(finding.sql(format!("CREATE UNIQUE INDEX {concurrently}ON {relation} {list};")));
    }
    if table.indexed.len() > 1 {
        let message = format!(
            "tables inherit from {}, and no index spans them: rows with equal {list} in two of them would be skipped silently",
            config.table
        );
        let finding = Finding::new(Level::Warn, "inheritance_not_unique", message);
        findings.push(finding.setting("Take the ids of all of them from one sequence."));
    }
    for relation in table.unordered_by(pair) {
        let message =
            format!("{relation} has no index in the order {list}: every turn sorts what is left of the table");
        let finding = Finding::new(Level::Warn, "index_missing", message);
        findings.push(finding.sql(format!("CREATE INDEX {concurrently}ON {relation} {list};")));
    }
    if let Some(column) = table.column(&config.id).filter(|column| random(column)) {
        let message = format!(
            "{}.{} looks random (default {}): rows of one instant come in the order of their ids, not of their making",
            config.table,
            column.name,
            column.default.as_deref().unwrap_or("none")
        );
        let finding = Finding::new(Level::Warn, "tie_break_random", message);
        findings.push(finding.setting("Use ids that grow with time: UUIDv7, or a bigint identity."));
    }
}

/// Whether ids do not grow with time, as far as their default tells; a uuid without one is taken to be random.
fn random(column: &Column) -> bool {
    let default = column.default.as_deref().unwrap_or_default().to_ascii_lowercase();
    if column.type_name == "uuid" {
        return !default.contains("v7");
    }
    default.contains("gen_random_uuid") || default.contains("uuid_generate_v4") || default.contains("random(")
}
