//! The migrations as SQL for somebody else to run.

use super::{LOCK, MIGRATIONS};

/// The SQL that `up` runs on a database of version `from`.
#[must_use]
pub fn up_sql(from: i32) -> String {
    let mut sql = String::new();
    for migration in MIGRATIONS.iter().filter(|migration| migration.version > from) {
        sql.push_str(&begin());
        sql.push_str(migration.up);
        sql.push_str("COMMIT;\n");
    }
    sql
}

/// The SQL that `down` runs from version `from` to version `to`.
#[must_use]
pub fn down_sql(from: i32, to: i32) -> String {
    let mut sql = String::new();
    for migration in MIGRATIONS.iter().rev().filter(|m| m.version > to && m.version <= from) {
        sql.push_str(&begin());
        sql.push_str(migration.down);
        if migration.version > 1 {
            sql.push_str(&format!("DELETE FROM outbox.version WHERE version = {};\n", migration.version));
        }
        sql.push_str("COMMIT;\n");
    }
    sql
}

/// Printed SQL keeps out of a migrator's way, too, and calls nothing that the database's owner has put on the path.
fn begin() -> String {
    format!("BEGIN;\nSET LOCAL search_path = '';\nSELECT pg_catalog.pg_advisory_xact_lock({LOCK});\n")
}
