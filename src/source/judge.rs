//! Whether a table can be read as a stream, and which horizon rule its `created_at` needs. Pure.
//!
//! | `created_at` | rule | how sure |
//! |---|---|---|
//! | stamped by the trigger, `ENABLE ALWAYS`, last by name | `writers` | proven |
//! | `DEFAULT clock_timestamp()` | `writers` | proven for rows that use the default |
//! | `DEFAULT now()` and its like, and this role has `pg_read_all_stats` | `transactions` | bounded by the window |
//! | anything else | `transactions` | unproven |
//!
//! The rule is the weakest over the table, its ancestors and its descendants: rows can come in through each.

use super::cast::{self, Use};
use super::certainty::Certainty;
use super::filter;
use super::finding::{Finding, Level};
use super::table::Table;
use super::{Rule, Stream};
use crate::database::quote_ident;

mod clock;
mod columns;
mod gap;
mod indexes;
mod late;
mod stamp;

pub use columns::precision;

/// The code of a table that a logical subscription writes.
pub const SUBSCRIBED: &str = "table_subscribed";

/// What is made of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Which writers hold the horizon back.
    pub rule: Rule,
    /// Which rule the column needs, whatever is configured.
    pub needs: Rule,
    /// How sure it is that the rule covers every row.
    pub certainty: Certainty,
    /// How it came about, and what is wrong.
    pub findings: Vec<Finding>,
    /// Why the trigger that is there does not count, behind a semicolon; empty where it does, or there is none.
    pub trigger: String,
}

/// Judges a table for a source.
#[must_use]
pub fn judge(table: &Table, config: &Stream) -> Verdict {
    let mut findings = Vec::new();
    kind(table, config, &mut findings);
    access(table, config, &mut findings);
    columns::judge(table, config, &mut findings);
    for (column, condition) in &config.filter {
        let Some(found) = table.column(column) else { continue };
        for value in &condition.values {
            findings.extend(filter::judge(&config.table, (column, &found.base), value));
            findings.extend(filter::no_label(&config.table, found, value));
        }
    }
    let compared = config.filter.keys().map(|column| (column, Use::Compared));
    findings.extend(cast::of_columns(&config.table, &table.casts, compared));
    indexes::judge(table, config, &mut findings);
    let (rule, needs, certainty) = stamp::judge(table, config, &mut findings);
    late::judge(table, config, certainty, &mut findings);
    Verdict { rule, needs, certainty, findings, trigger: stamp::trigger(table, config) }
}

/// Whether its writers can be seen at all.
fn kind(table: &Table, config: &Stream, findings: &mut Vec<Finding>) {
    let name = &config.table;
    let mut refuse = |code, what: String, fix: &str| {
        findings.push(Finding::new(Level::Error, code, format!("{name} {what}")).setting(fix));
    };
    let unseen = "its writers cannot be seen";
    match table.kind.as_str() {
        "r" | "p" => {}
        "v" | "m" => refuse("table_kind", format!("is a view: {unseen}"), "Read the table behind the view."),
        "f" => refuse("table_kind", format!("is a foreign table: {unseen}"), "Run the relay where the table is."),
        _ => refuse("table_kind", "is not a table".to_owned(), "Correct [relay.source.stream] table."),
    }
    if table.persistence == "t" {
        let what = "is a temporary table: other sessions cannot see its rows".to_owned();
        refuse("table_kind", what, "Use a permanent table.");
    }
    if !table.foreign.is_empty() {
        let what = format!("has foreign tables below or above it ({}): {unseen}", table.foreign.join(", "));
        refuse("table_kind", what, "Detach them, or run the relay where they are.");
    }
    if !table.temporary.is_empty() {
        let what = format!("has temporary tables in its family ({})", table.temporary.join(", "));
        refuse("table_kind", what, "Use permanent tables.");
    }
    if !table.subscribed.is_empty() {
        let what = format!(
            "is written by a logical subscription ({}), which keeps the publisher's created_at",
            table.subscribed.join(", ")
        );
        let fix = "Run the relay on the publisher. If the subscription is only dropped, rows that it has written may lie behind the \
                   position, and are not delivered: compare them with what was delivered, then `outbox-relay cursor resume NAME`.";
        refuse(SUBSCRIBED, what, fix);
    }
    if table.persistence == "u" {
        let message = format!("{name} is unlogged: a crash of PostgreSQL empties it");
        let finding = Finding::new(Level::Warn, "table_unlogged", message);
        findings.push(finding.sql(format!("ALTER TABLE {} SET LOGGED;", name.quoted())));
    }
}

/// What the relay's role may do with it.
fn access(table: &Table, config: &Stream, findings: &mut Vec<Finding>) {
    let (role, name) = (quote_ident(&table.role), &config.table);
    if !table.schema_usage {
        let message = format!("role {} may not look into schema {}", table.role, name.schema);
        let finding = Finding::new(Level::Error, "privilege_missing", message);
        findings.push(finding.sql(format!("GRANT USAGE ON SCHEMA {} TO {role};", quote_ident(&name.schema))));
    }
    if table.row_security {
        let message = format!("row security of {name} binds role {}: rows would be left out", table.role);
        let finding = Finding::new(Level::Error, "row_security", message);
        findings.push(finding.sql(format!("ALTER ROLE {role} BYPASSRLS;")));
    }
    if table.superuser {
        let message = format!("role {} is a superuser: the relay needs far less", table.role);
        let finding = Finding::new(Level::Warn, "superuser", message);
        findings.push(finding.setting("Run `outbox-relay migrate up --relay-role ROLE` and connect as that role."));
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
