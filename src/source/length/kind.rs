//! How the length of a value of each type is found out, as SQL.

use super::TOLERATED;

/// The digits of the longest `numeric`, in front of the point and behind it.
const LONGEST_NUMBER: usize = 147_456;
/// The least bytes that such a number takes inside a `jsonb`: its entry, header and one digit.
const SMALLEST_IN_JSONB: usize = 12;
/// The same inside an array or another type.
pub(super) const SMALLEST: usize = 8;
/// No value is compressed by a larger factor, by pglz or lz4.
const COMPRESSION: usize = 255;

/// How a type's length is found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LengthKind {
    /// Never large.
    Short,
    /// Stands in the header.
    Text,
    /// The same; as text each byte takes two digits.
    Bytes,
    /// Stored as it is printed, and maybe compressed.
    Json,
    /// Prints more than it stores: so many bytes are the least for a number.
    Printed(usize),
}

impl LengthKind {
    /// By the type's name as `format_type` writes it.
    pub(super) fn of(type_name: &str) -> Self {
        let plain = match (type_name.split_once('('), type_name.split_once(')')) {
            (Some((before, _)), Some((_, behind))) => format!("{before}{behind}"),
            _ => type_name.to_owned(),
        };
        match plain.as_str() {
            "text" | "character varying" | "character" => Self::Text,
            "bytea" => Self::Bytes,
            "json" => Self::Json,
            "jsonb" => Self::Printed(SMALLEST_IN_JSONB),
            "boolean" | "smallint" | "integer" | "bigint" | "real" | "double precision" | "numeric" | "uuid"
            | "oid" | "date" | "interval" | "money" | "\"char\"" | "name" | "inet" | "cidr" | "macaddr"
            | "macaddr8" => Self::Short,
            time if time.starts_with("time") && !time.ends_with(']') => Self::Short,
            _ => Self::Printed(SMALLEST),
        }
    }
}

/// The length of a value, whose text is `text`, as SQL; none when it is never large. `raw`: of bytes, as they are.
pub(super) fn term(value: &str, text: &str, (kind, raw): (LengthKind, bool), most: usize) -> Option<String> {
    let printed = format!("pg_catalog.octet_length({text})");
    let size = format!("pg_catalog.pg_column_size({value})");
    let length = match kind {
        LengthKind::Short => return None,
        LengthKind::Text => format!("pg_catalog.octet_length({value})"),
        LengthKind::Bytes if raw => format!("pg_catalog.octet_length({value})"),
        LengthKind::Bytes => format!("2 * pg_catalog.octet_length({value})::bigint + 2"),
        LengthKind::Json => format!("CASE WHEN {size} <= {} THEN {size} ELSE {printed} END", most / COMPRESSION),
        LengthKind::Printed(smallest) => format!(
            "CASE WHEN {size} <= {} AND pg_catalog.pg_column_compression({value}) IS NULL THEN {size} ELSE {printed} END",
            TOLERATED * most / LONGEST_NUMBER * smallest
        ),
    };
    Some(format!("COALESCE({length}, 0)::bigint"))
}
