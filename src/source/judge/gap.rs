//! What closes the gap between a table as it is and a proof.

use super::super::Stream;
use super::super::finding::Finding;
use super::super::guard::{Guard, WantedTrigger, closing};
use super::super::table::{Stamp, Table};
use super::stamp::{Origin, Weakest};
use crate::database::{quote_ident, quote_literal};

/// The stamping trigger, on a column that it can stamp.
const STAMP: WantedTrigger<'static> = WantedTrigger {
    name: "zz_stamp_created_at",
    events: "INSERT OR UPDATE",
    column: "created_at",
    call: "outbox.stamp_created_at()",
};

/// Stands below the SQL that creates the trigger.
const REPLACES: &str =
    "\n-- The trigger replaces, without a warning, a created_at that a writer sends, and undoes UPDATEs of it.";

/// The finding with the SQL after which `check` calls the table proven, or with what else to do.
pub(super) fn closed(finding: Finding, weakest: &Weakest<'_>, table: &Table, config: &Stream) -> Finding {
    let relation = weakest.stamp.map_or_else(|| config.table.quoted(), |stamp| stamp.guard.name.clone());
    if table.stamps.iter().any(|stamp| stamp.generated) {
        return finding.setting(format!(
            "Stop generating the column, for example ALTER TABLE {relation} ALTER COLUMN {} DROP EXPRESSION, and run \
             `outbox-relay check` again: it prints the trigger that stamps it. No trigger helps before that.",
            quote_ident(&config.created_at)
        ));
    }
    let finding = match reading(weakest, table) {
        Some(grant) => finding.setting(grant),
        None => finding,
    };
    if config.created_at != "created_at" || config.time_zone.is_some() {
        return unstampable(finding, weakest, &relation, table, config);
    }
    let guards: Vec<&Guard> = table.stamps.iter().map(|stamp| &stamp.guard).collect();
    match closing(&guards, &STAMP) {
        Some(trigger) if trigger.is_empty() => {
            finding.setting("Correct the type of the column: only a timestamptz is stamped right.")
        }
        // Where a trigger has to be made, the column may lack a good default, too: it is what rows show until then.
        Some(trigger) if trigger.contains("CREATE TRIGGER") => {
            finding.sql(default(weakest, &relation, config).unwrap_or_default() + &trigger + REPLACES)
        }
        Some(trigger) => finding.sql(trigger),
        None => {
            finding.setting("Rename the triggers that run before a row is stored, so that zz_stamp_created_at is last.")
        }
    }
}

/// What makes the rule `transactions` bounded.
fn reading(weakest: &Weakest<'_>, table: &Table) -> Option<String> {
    (weakest.origin == Origin::TransactionStart && !table.reads_activity).then(|| {
        format!(
            "Or keep the default, and run GRANT pg_read_all_stats TO {}; for a rule that is bounded by the latency window.",
            quote_ident(&table.role)
        )
    })
}

/// The default that is the clock, where the column has another.
fn default(weakest: &Weakest<'_>, relation: &str, config: &Stream) -> Option<String> {
    let clock = match &config.time_zone {
        None => "clock_timestamp()".to_owned(),
        Some(zone) => format!("(clock_timestamp() AT TIME ZONE {})", quote_literal(zone).trim()),
    };
    let column = quote_ident(&config.created_at);
    (weakest.origin < Origin::Default)
        .then(|| format!("ALTER TABLE {relation} ALTER COLUMN {column} SET DEFAULT {clock}; "))
}

/// The trigger stamps a `timestamptz` of the name `created_at` alone; of any other column, fewer roles can be left that may
/// send a value.
fn unstampable(finding: Finding, weakest: &Weakest<'_>, relation: &str, table: &Table, config: &Stream) -> Finding {
    let revoked = weakest.stamp.and_then(|stamp| revoke(stamp, relation, table, config));
    let sql = default(weakest, relation, config).unwrap_or_default() + &revoked.unwrap_or_default();
    let finding = match sql.trim_end() {
        "" => finding,
        sql => finding.sql(sql),
    };
    if finding.fix_setting.is_some() {
        return finding;
    }
    finding
        .setting("Make it a timestamptz column named created_at: only such a column can be stamped, and so be proven.")
}

/// What a predefined role may do is not a grant on the table: only leaving the role ends it.
fn revoke(stamp: &Stamp, relation: &str, table: &Table, config: &Stream) -> Option<String> {
    let granted = stamp.writers.iter().filter(|role| !role.starts_with("pg_"));
    let roles: Vec<_> = granted.map(|role| quote_ident(role)).collect();
    if roles.is_empty() {
        return None;
    }
    let roles = roles.join(", ");
    let others = table.columns.iter().filter(|column| column.name != config.created_at);
    let others: Vec<_> = others.map(|column| quote_ident(&column.name)).collect();
    let others = others.join(", ");
    Some(format!(
        "REVOKE INSERT, UPDATE ON {relation} FROM PUBLIC, {roles}; GRANT INSERT ({others}), UPDATE ({others}) ON {relation} \
         TO {roles};"
    ))
}
