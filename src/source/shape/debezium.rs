//! A row's values as Debezium's connector for PostgreSQL makes them, as SQL: what is not made by [`crate::source::fetch`] itself.
//!
//! Pure. Debezium's settings are its defaults, but for `decimal.handling.mode=string`. A value's type is asked of the server for each row,
//! so that a column whose type was changed meanwhile is never taken for what it was. What is not listed is as `row_to_json` has it.

use crate::database::{quote_ident, quote_literal};

/// What Debezium makes of an infinite `timestamp`, in microseconds.
const FOREVER: &str = "9223372036825200000";
const NEVER: &str = "-9223372036832400000";

/// One JSON object of these columns of the row `t`, which is of the table with this oid.
pub(super) fn object<'a>(columns: impl Iterator<Item = &'a str>, table: u32) -> String {
    let list: Vec<_> = columns.map(|column| format!("{} AS {}", value(column, table), quote_ident(column))).collect();
    format!("(SELECT pg_catalog.row_to_json(x.*)::text FROM (SELECT {}) AS x)", list.join(", "))
}

/// One value. By way of its text, which every type has: what is cast is another type in each branch.
fn value(column: &str, table: u32) -> String {
    let name = quote_literal(column);
    let column = format!("t.{}", quote_ident(column));
    let text = format!("{column}::text");
    // Asked once for all rows.
    let digits = format!(
        "COALESCE((SELECT NULLIF(a.atttypmod, -1) FROM pg_catalog.pg_attribute AS a WHERE a.attrelid = {table} AND a.attname = {name}), 6)"
    );
    let json = |sql: &str| format!("pg_catalog.to_json({sql})");
    let ticks = |micros: &str| {
        json(&format!("CASE WHEN {digits} <= 3 THEN pg_catalog.floor(({micros}) / 1000) ELSE {micros} END"))
    };
    // Before PostgreSQL 14 an epoch is a floating-point number, which has not all digits; the last years have more than 64 bits.
    let micros = |of: &str| {
        let second = format!("pg_catalog.date_trunc('second', {text}::{of})");
        format!(
            "extract(epoch FROM {second})::bigint::numeric * 1000000 + extract(microseconds FROM {text}::{of})::bigint % 1000000"
        )
    };
    let timestamp = format!(
        "CASE {text} WHEN 'infinity' THEN {FOREVER} WHEN '-infinity' THEN {NEVER} ELSE {} END",
        micros("timestamp")
    );
    let fraction = format!(
        "CASE {digits} WHEN 0 THEN '' ELSE '.' || pg_catalog.rpad(COALESCE(pg_catalog.substring({text}, '[.]([0-9]+)'), ''), {digits}, '0') END"
    );
    let zoned = format!(
        "CASE WHEN {text} LIKE '%infinity' THEN {text} ELSE pg_catalog.regexp_replace({text}, '^([^ ]+) ([0-9:]+).*$', E'\\\\1T\\\\2') || {fraction} \
         || 'Z' || COALESCE(pg_catalog.substring({text}, ' BC$'), '') END"
    );
    let date = format!("CASE WHEN {text} NOT LIKE '%infinity' THEN {text}::date - '1970-01-01'::date END");
    let bytes = format!("pg_catalog.translate(pg_catalog.encode({text}::bytea, 'base64'), E'\\n', '')");
    // By the oid of the type.
    let branches = [
        ("1700, 114, 3802", json(&text)),
        ("1184", json(&zoned)),
        ("1114", ticks(&timestamp)),
        ("1083", ticks(&micros("time"))),
        ("1082", json(&date)),
        ("17", json(&bytes)),
    ];
    let of = format!("pg_catalog.pg_typeof({column})::oid");
    let branches: Vec<_> = branches.iter().map(|(types, sql)| format!("WHEN {of} IN ({types}) THEN {sql}")).collect();
    format!("CASE {} ELSE {} END", branches.join(" "), json(&column))
}
