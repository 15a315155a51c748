//! The two columns that a position is made of.

use std::time::Duration;

use super::super::Stream;
use super::super::finding::{Finding, Level};
use super::super::shape::IdType;
use super::super::table::{Column, Table};
use super::stamp::{WITH_ZONE, WITHOUT_ZONE};
use crate::database::quote_ident;

/// One unit of the precision of a timestamp column.
#[must_use]
pub fn precision(column: Option<&Column>) -> Duration {
    let digits = column.map_or(6, digits);
    Duration::from_micros(10_u64.pow(6 - digits))
}

/// How many digits of a second a timestamp column keeps.
pub(super) fn digits(column: &Column) -> u32 {
    u32::try_from(column.modifier).map_or(6, |digits| digits.min(6))
}

pub(super) fn judge(table: &Table, config: &Stream, findings: &mut Vec<Finding>) {
    readable(table, config, findings);
    present(table, config, "id", &config.id, findings);
    present(table, config, "created_at", &config.created_at, findings);
    if let Some(column) = table.column(&config.id) {
        findings.extend(id_type(column, config));
    }
    if let Some(column) = table.column(&config.created_at) {
        findings.extend(created_at_type(column, config));
    }
    if let Some(zone) = config.time_zone.as_ref().filter(|_| table.zone_fixed != Some(true)) {
        let message = format!("time_zone {zone} is unknown or has changing offsets: instants would repeat");
        let finding = Finding::new(Level::Error, "time_zone", message);
        findings.push(finding.setting("Name a zone of fixed offset, for example \"UTC\"."));
    }
}

/// Both may be read: one grant for the two.
fn readable(table: &Table, config: &Stream, findings: &mut Vec<Finding>) {
    let both = [&config.id, &config.created_at].map(String::as_str);
    let denied = both.into_iter().filter(|name| table.column(name).is_some_and(|column| !column.readable));
    let denied: Vec<&str> = denied.collect();
    let (noun, verb) = match denied.len() {
        0 => return,
        1 => ("column", "is"),
        _ => ("columns", "are"),
    };
    let name = &config.table;
    let message = format!(
        "role {} has no SELECT on {name}, of which {noun} {} {verb} read; a grant on columns is not enough, because the relay \
         locks the table against rewrites while it reads",
        table.role,
        denied.join(", ")
    );
    let finding = Finding::new(Level::Error, "privilege_missing", message);
    findings.push(finding.sql(format!("GRANT SELECT ON {} TO {};", name.quoted(), quote_ident(&table.role))));
}

/// It exists, and is never NULL.
fn present(table: &Table, config: &Stream, which: &str, column: &str, findings: &mut Vec<Finding>) {
    let name = &config.table;
    let Some(found) = table.column(column) else {
        let finding = Finding::new(Level::Error, "column_missing", format!("{name} has no column {column}"));
        findings.push(finding.setting(format!("Set [relay.source.stream] {which} to a column of the table.")));
        return;
    };
    if !found.nullable_in.is_empty() {
        let list: Vec<_> = found.nullable_in.iter().map(|relation| format!("{relation}.{column}")).collect();
        let message = format!("{} may be NULL: such rows would be skipped silently", list.join(", "));
        let fix: Vec<_> = found
            .nullable_in
            .iter()
            .map(|relation| format!("ALTER TABLE {relation} ALTER COLUMN {} SET NOT NULL;", quote_ident(column)))
            .collect();
        findings.push(Finding::new(Level::Error, "column_nullable", message).sql(fix.join(" ")));
    }
}

fn id_type(column: &Column, config: &Stream) -> Option<Finding> {
    if IdType::named(&column.type_name).is_some() {
        return None;
    }
    let name = &config.table;
    let message =
        format!("{name}.{} is {}; ids are bigint, integer, smallint, uuid or text", column.name, column.type_name);
    let fix = format!(
        "ALTER TABLE {} ADD COLUMN relay_id bigint GENERATED ALWAYS AS IDENTITY; -- and set id = \"relay_id\"",
        name.quoted()
    );
    Some(Finding::new(Level::Error, "column_type", message).sql(fix))
}

fn created_at_type(column: &Column, config: &Stream) -> Option<Finding> {
    let (table, name) = (config.table.quoted(), format!("{}.{}", config.table, column.name));
    let quoted = quote_ident(&column.name);
    let finding = |message: String| Finding::new(Level::Error, "column_type", message);
    match (column.type_name.as_str(), &config.time_zone) {
        (WITH_ZONE, None) | (WITHOUT_ZONE, Some(_)) => None,
        (WITH_ZONE, Some(_)) => Some(
            finding(format!("{name} is timestamptz, which has no zone of its own"))
                .setting("Remove [relay.source.stream] time_zone."),
        ),
        (WITHOUT_ZONE, None) => Some(
            finding(format!("{name} is timestamp without time zone: which instant it means is not stated"))
                .sql(format!(
                    "ALTER TABLE {table} ALTER COLUMN {quoted} TYPE timestamptz USING {quoted} AT TIME ZONE 'UTC';"
                ))
                .setting("Or state its zone, of fixed offset: [relay.source.stream] time_zone = \"UTC\"."),
        ),
        (other, _) => {
            Some(finding(format!("{name} is {other}; it must be timestamptz")).sql(format!(
                "ALTER TABLE {table} ALTER COLUMN {quoted} TYPE timestamptz USING {quoted}::timestamptz;"
            )))
        }
    }
}
