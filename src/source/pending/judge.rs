//! Whether due work can be read from a table, and what fixes it if not.
//!
//! Pure.

use super::Pending;
use super::catalogue::{Column, PendingTable};
use super::due::Due;
use crate::database::quote_ident;
use crate::source::cast::{self, Use};
use crate::source::filter;
use crate::source::finding::{Finding, Level};

/// All that was found; without an error, the relay may run.
#[must_use]
pub fn judge(table: Option<&PendingTable>, config: &Pending) -> Vec<Finding> {
    let Some(table) = table else {
        let message = format!("{} does not exist, or is neither a table nor a view", config.table);
        return vec![
            error("table_missing", message)
                .setting("Correct [relay.source.pending] table (schema.name), or create the table."),
        ];
    };
    let mut findings = vec![Finding::new(Level::Ok, "table", format!("{} is there", config.table))];
    access(table, config, &mut findings);
    for (key, column) in named(config) {
        if table.column(column).is_none() {
            let message = format!("{} has no column {column:?}", config.table);
            findings.push(
                error("column_missing", message)
                    .setting(format!("Set [relay.source.pending] {key} to a column of it.")),
            );
        }
    }
    for (column, value) in &config.filter {
        let Some(Column { base, of_enum, .. }) = table.column(column) else { continue };
        findings.extend(filter::judge(&config.table, (column, base), value));
        let Some(of) = of_enum else { continue };
        findings.extend(filter::missing_label(&config.table, (column, base), of.labels.keys(), ("pending", value)));
    }
    findings.extend(cast::of_columns(&config.table, &table.casts, uses(config)));
    lane(table, config, &mut findings);
    due(table, config, &mut findings);
    sent(table, config, &mut findings);
    key(table, config, &mut findings);
    index(table, config, &mut findings);
    findings
}

fn error(code: &'static str, message: String) -> Finding {
    Finding::new(Level::Error, code, message)
}

/// The configured columns, with the key that names each.
fn named(config: &Pending) -> impl Iterator<Item = (&'static str, &String)> {
    let keys = config.key.iter().map(|column| ("key", column));
    let rest = config.sent.iter().map(|column| ("sent", column));
    keys.chain([("due", &config.due)]).chain(rest).chain(config.filter.keys().map(|column| ("where", column)))
}

/// What columns are used for, whatever the sink asks for.
fn uses(config: &Pending) -> impl Iterator<Item = (&String, Use)> {
    let keys = config.key.iter().map(|column| (column, Use::Names));
    let lane = config.lanes.iter().filter_map(|lanes| lanes.column.as_ref()).map(|column| (column, Use::Printed));
    keys.chain(lane).chain(config.filter.keys().map(|column| (column, Use::Compared)))
}

/// The column that rows have their lane by.
fn lane(table: &PendingTable, config: &Pending, findings: &mut Vec<Finding>) {
    let column = config.lanes.as_ref().and_then(|lanes| lanes.column.as_ref());
    if let Some(column) = column.filter(|column| table.column(column).is_none()) {
        let message = format!("{} has no column {column:?}, which rows would have their lane by", config.table);
        findings.push(error("column_missing", message).setting("Set [relay.turn] lane to a column of it."));
    }
}

/// What the relay's role may do.
fn access(table: &PendingTable, config: &Pending, findings: &mut Vec<Finding>) {
    let (role, name) = (quote_ident(&table.role), &config.table);
    if !table.schema_usage {
        let message = format!("role {} may not look into schema {}", table.role, name.schema);
        let sql = format!("GRANT USAGE ON SCHEMA {} TO {role};", quote_ident(&name.schema));
        findings.push(error("privilege_missing", message).sql(sql));
    }
    if !table.may_read {
        let message = format!("role {} may not read {name}", table.role);
        findings.push(error("privilege_missing", message).sql(format!("GRANT SELECT ON {} TO {role};", name.quoted())));
    }
    if let Some(sent) = config.sent.as_ref().filter(|_| !table.may_mark) {
        let message = format!("role {} may not set {sent:?} of {name}", table.role);
        let sql = format!("GRANT UPDATE ({}) ON {} TO {role};", quote_ident(sent), name.quoted());
        findings.push(error("privilege_missing", message).sql(sql));
    }
    if !table.may_claim {
        let message = format!("role {} may not read and write outbox.claim and outbox.sent", table.role);
        let sql = format!("GRANT SELECT, INSERT, UPDATE, DELETE ON outbox.claim, outbox.sent TO {role};");
        findings.push(error("privilege_missing", message).sql(sql));
    }
    if table.row_security {
        let message = format!("row security of {name} binds role {}: rows would be left out", table.role);
        findings.push(error("row_security", message).sql(format!("ALTER ROLE {role} BYPASSRLS;")));
    }
    if table.superuser {
        let message = format!("role {} is a superuser: the relay needs far less", table.role);
        let finding = Finding::new(Level::Warn, "superuser", message);
        findings.push(finding.setting("Run `outbox-relay migrate up --relay-role ROLE` and connect as that role."));
    }
}

fn due(table: &PendingTable, config: &Pending, findings: &mut Vec<Finding>) {
    let Some(column) = table.column(&config.due) else { return };
    let wrong = |what: String| error("column_type", format!("{}.{} {what}", config.table, config.due));
    match (column.base.as_str(), &config.time_zone) {
        ("timestamp with time zone", None) => {}
        ("timestamp with time zone", Some(zone)) => findings.push(
            wrong(format!("is an instant, and needs no time zone ({zone:?})"))
                .setting("Remove [relay.source.pending] time_zone."),
        ),
        ("timestamp without time zone" | "date", None) => findings.push(
            wrong(format!("is a {}: it says no instant without a time zone", column.base))
                .setting("State the zone that the application means: [relay.source.pending] time_zone = \"UTC\"."),
        ),
        ("timestamp without time zone" | "date", Some(zone)) => {
            if table.zone_known == Some(false) {
                let finding = error("time_zone_unknown", format!("PostgreSQL knows no time zone {zone:?}"));
                findings.push(finding.setting("Write a name of pg_timezone_names, for example \"Europe/Berlin\"."));
            }
        }
        (other, _) => findings.push(
            wrong(format!("is a {other}: due is a timestamptz, a timestamp or a date"))
                .setting("Set [relay.source.pending] due to such a column."),
        ),
    }
}

fn sent(table: &PendingTable, config: &Pending, findings: &mut Vec<Finding>) {
    let Some(sent) = &config.sent else {
        let what = "no column says what was sent: the marks are kept in outbox.sent";
        findings.push(if table.is_view() {
            Finding::new(Level::Ok, "marks", what)
        } else {
            let grows = format!("{what}, and each look walks over all rows that were ever due");
            Finding::new(Level::Warn, "marks", grows)
                .setting("Add a column for the mark and name it in `sent`, or read a view that leaves old rows out.")
        });
        return;
    };
    if table.is_view() {
        let message = format!("{} is a view: it cannot be marked", config.table);
        findings.push(
            error("view_marked", message)
                .setting("Remove [relay.source.pending] sent: the marks are kept in outbox.sent then."),
        );
    }
    let Some(column) = table.column(sent) else { return };
    let fits = match column.base.as_str() {
        "boolean" | "timestamp with time zone" => true,
        "timestamp without time zone" => config.time_zone.is_some(),
        _ => false,
    };
    if !fits {
        let message = format!(
            "{}.{sent} is a {}: sent is a boolean or a timestamptz, or a timestamp with a time_zone",
            config.table, column.base
        );
        findings.push(error("column_type", message).setting("Set [relay.source.pending] sent to such a column."));
    }
}

fn key(table: &PendingTable, config: &Pending, findings: &mut Vec<Finding>) {
    let list = config.key.join(", ");
    if table.is_view() {
        let message = format!("{} is no table: that ({list}) names one row at a time cannot be checked", config.table);
        findings.push(Finding::new(Level::Warn, "key_unproven", message).setting(
            "Make sure that it does: of two rows with the same key that are due at once, only the older is sent.",
        ));
        return;
    }
    let nullable: Vec<&Column> =
        config.key.iter().filter_map(|name| table.column(name)).filter(|column| !column.not_null).collect();
    for column in &nullable {
        let message = format!("{}.{} may be NULL: such a row has no name", config.table, column.name);
        let (table, column) = (config.table.quoted(), quote_ident(&column.name));
        let sql = format!("ALTER TABLE {table} ALTER COLUMN {column} SET NOT NULL;");
        findings.push(error("key_nullable", message).sql(sql));
    }
    let within = |index: &[String]| index.iter().all(|column| config.key.contains(column));
    let unique = table.unique.iter().any(|index| within(index));
    if !unique && config.key.iter().all(|name| table.column(name).is_some()) {
        let other = table.unique_by_another_collation.iter().find(|(_, index)| within(index));
        let message = other.map_or_else(
            || format!("({list}) is not unique in {}: several rows would be taken for one", config.table),
            |(name, _)| {
                format!(
                    "({list}) is not unique in {} by the collation of its columns: the unique index {name} compares by \
                     another, and several rows would be taken for one",
                    config.table
                )
            },
        );
        let quoted: Vec<_> = config.key.iter().map(|column| quote_ident(column)).collect();
        let sql = format!("CREATE UNIQUE INDEX CONCURRENTLY ON {} ({});", config.table.quoted(), quoted.join(", "));
        findings.push(error("key_not_unique", message).sql(sql));
    }
    if table.has_children {
        let message = format!("tables inherit from {}: no index keeps ({list}) unique across them", config.table);
        findings.push(Finding::new(Level::Warn, "key_unproven", message).setting(
            "Make sure that it is: of rows with the same key that are due at once, only the oldest is sent, and all are marked.",
        ));
    }
}

/// Without it, each look would read the whole table.
fn index(table: &PendingTable, config: &Pending, findings: &mut Vec<Finding>) {
    if table.is_view() || table.column(&config.due).is_none() {
        return;
    }
    let covers = Due::new(table, config).unmarked_predicate();
    // PostgreSQL uses a partial index only where the question says the same as its condition.
    let fits = |index: &&super::catalogue::Index| match (&covers, &index.predicate) {
        (None, predicate) => predicate.is_none() || !config.filter.is_empty(),
        (Some(covers), Some(predicate)) => predicate.contains(covers.as_str()),
        (Some(_), None) => false,
    };
    if let Some(index) = table.by_due.iter().find(fits) {
        findings.push(Finding::new(Level::Ok, "index", format!("claims can use the index {}", index.name)));
        return;
    }
    let sql = Due::new(table, config).index_sql();
    let message = if table.by_due.is_empty() {
        format!("no index begins with {}.{}: every look reads the whole table", config.table, config.due)
    } else {
        format!(
            "the index on {}.{} does not fit what is asked, or also holds the rows that were sent: every look walks over them",
            config.table, config.due
        )
    };
    findings.push(Finding::new(Level::Warn, "index_missing", message).sql(sql));
}
