//! Whether rows that become visible behind a position are found.

use super::super::Stream;
use super::super::certainty::Certainty;
use super::super::finding::{Finding, Level};
use super::super::sweep::{COLUMN, index_columns};
use super::super::table::Table;

/// The finding of a table whose late rows are found by their transaction.
const SWEPT: &str = "late_rows_swept";
/// What a column must be to tell which transaction wrote a row.
const DEFINITION: &str = "txid xid8 NOT NULL DEFAULT pg_current_xact_id()";

pub(super) fn judge(table: &Table, config: &Stream, certainty: Certainty, findings: &mut Vec<Finding>) {
    let before = findings.len();
    found(table, config, certainty, findings);
    let new = &findings[before..];
    if config.max_hold.is_some() && !new.iter().any(|finding| finding.code == SWEPT) {
        let message = format!(
            "max_hold passes transactions over, and what they then commit to {} would not be found by {COLUMN}: it would be lost",
            config.table
        );
        let sql = new.iter().find_map(|finding| finding.fix_sql.clone());
        let finding = Finding::new(Level::Error, "max_hold_unswept", message);
        findings.push(match sql {
            Some(sql) => finding.sql(sql),
            None => finding.setting(format!("Make the column {DEFINITION}, or remove max_hold.")),
        });
    }
}

fn found(table: &Table, config: &Stream, certainty: Certainty, findings: &mut Vec<Finding>) {
    let name = &config.table;
    let Some(column) = table.column(COLUMN) else {
        // Where no row can come late, nothing is missing, unless they are let come late.
        if !certainty.proven() || config.max_hold.is_some() {
            let message = format!(
                "{name} has no column {COLUMN}: a row that commits below the position is found within minutes at best ([audit]); with it, within a second"
            );
            let sql = format!(
                "ALTER TABLE {} ADD COLUMN {DEFINITION};\n{}\n\
                 -- The column needs an instant of ACCESS EXCLUSIVE and rewrites nothing: rows that are there get one value for all.",
                name.quoted(),
                indexes(table, config).join("\n")
            );
            findings.push(Finding::new(level(certainty), "late_rows_unswept", message).sql(sql));
        }
        return;
    };
    if !column.readable {
        let message =
            format!("this role may not read {name}.{COLUMN}: rows that commit below the position are not found by it");
        let fix = format!(
            "GRANT SELECT ON {} to the relay's role: `outbox-relay migrate up --relay-role ROLE`.",
            name.quoted()
        );
        findings.push(Finding::new(level(certainty), "late_rows_column", message).setting(fix));
        return;
    }
    if !column.tells_transaction() {
        let message = format!(
            "{name}.{COLUMN} does not tell which transaction wrote a row: rows that commit below the position are not found by it"
        );
        let fix = format!("Make it {DEFINITION} in the table and all that inherit from it, or give it another name.");
        findings.push(Finding::new(level(certainty), "late_rows_column", message).setting(fix));
        return;
    }
    let missing = indexes(table, config);
    if missing.is_empty() {
        let message = format!(
            "rows of {name} that commit below the position are found by {COLUMN} and come late, but those whose writers send another {COLUMN}"
        );
        findings.push(Finding::new(Level::Ok, SWEPT, message));
        return;
    }
    let message = format!(
        "{name} has no index over {}: rows that commit below the position are not looked for",
        index_columns(config)
    );
    findings.push(Finding::new(level(certainty), "late_rows_index_missing", message).sql(missing.join("\n")));
}

/// In a proven table the missing part is a second line, and nothing to warn of.
const fn level(certainty: Certainty) -> Level {
    if certainty.proven() { Level::Ok } else { Level::Warn }
}

/// Creates the indexes that are missing; PostgreSQL cannot build a partitioned table's concurrently.
fn indexes(table: &Table, config: &Stream) -> Vec<String> {
    let concurrently = if table.kind == "p" { "" } else { "CONCURRENTLY " };
    let columns = index_columns(config);
    table.not_swept_by(config).map(|relation| format!("CREATE INDEX {concurrently}ON {relation} {columns};")).collect()
}
