//! Which rows of a stream are delivered (`where`). Pure.
//!
//! Rows that do not match are read as well, without their values, and passed: so that the position moves over them, and nothing that
//! the proof of the order rests on knows of a filter.

use super::TableName;
use super::cast;
use super::finding::{Finding, Level};
use super::shape::Shape;
use super::table::Column;
use crate::database::{quote_ident, quote_literal};

/// What PostgreSQL replaces by the time at which a statement is prepared, in a constant of these types.
const RELATIVE: [&str; 4] = ["now", "today", "tomorrow", "yesterday"];
const OF_TIME: [&str; 11] = [
    "date",
    "time with time zone",
    "time without time zone",
    "timestamp with time zone",
    "timestamp without time zone",
    "daterange",
    "datemultirange",
    "tsrange",
    "tsmultirange",
    "tstzrange",
    "tstzmultirange",
];

/// The word of a value that is another constant in each session, for a column of this type.
fn relative<'a>(base: &str, value: &'a str) -> Option<&'a str> {
    let words = value.split(|c: char| !c.is_ascii_alphanumeric());
    let is_of_time = OF_TIME.contains(&base.trim_end_matches("[]"));
    words.filter(|_| is_of_time).find(|word| RELATIVE.iter().any(|relative| relative.eq_ignore_ascii_case(word)))
}

/// What is wrong with a value of `where`: each session, and so each replica, would take other rows, which the position passes for good.
pub(super) fn judge(table: &TableName, (column, base): (&str, &str), value: &str) -> Option<Finding> {
    let word = relative(base, value)?;
    let message = format!(
        "where compares {table}.{column} with {value:?}, which is no constant: for a {base}, PostgreSQL replaces {word:?} by the time at \
         which each session prepares its statements"
    );
    let fix = "Write the date itself, for example \"2026-11-21\", or filter by a column that the application sets.";
    Some(Finding::new(Level::Error, "where_not_constant", message).setting(fix))
}

/// What is wrong with a value of `where` that the column's enum does not have, or not any more.
pub(super) fn no_label(table: &TableName, column: &Column, value: &str) -> Option<Finding> {
    column.enum_oid?;
    missing_label(table, (&column.name, &column.base), column.labels.iter(), ("stream", value))
}

/// The same of a column whose enum has these labels, for a kind of source, as the configuration calls it.
pub(super) fn missing_label<'a>(
    table: &TableName,
    (column, base): (&str, &str),
    mut labels: impl Iterator<Item = &'a String>,
    (source, value): (&str, &str),
) -> Option<Finding> {
    if labels.any(|label| label == value) {
        return None;
    }
    let message = format!("where compares {table}.{column} with {value:?}, and the enum {base} has no such label");
    let fix =
        format!("Correct relay.source.{source}.where, or give the enum its label back: ALTER TYPE … RENAME VALUE.");
    Some(Finding::new(Level::Error, "column_unreadable", message).setting(fix))
}

/// What a column's value must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Condition {
    /// One of these, as PostgreSQL's text.
    pub values: Vec<String>,
    /// Or NULL.
    pub null: bool,
}

impl Condition {
    /// `of` is the oid of the column's enum, if it has one.
    fn sql(&self, column: &str, of: Option<u32>) -> String {
        let column = format!("t.{}", quote_ident(column));
        let list: Vec<String> = self.values.iter().map(|value| quote_literal(value)).collect();
        let among = match (&*list, of) {
            ([], _) => Vec::new(),
            (labels, Some(of)) => labels.iter().map(|label| has_label(&column, label, of)).collect(),
            ([value], None) => vec![format!("{column} = {value}")],
            (values, None) => vec![format!("{column} IN ({})", values.join(", "))],
        };
        let null = self.null.then(|| format!("{column} IS NULL"));
        let either: Vec<String> = among.into_iter().chain(null).collect();
        format!("({})", either.join(" OR "))
    }
}

/// Whether an enum's value has this label, as SQL.
///
/// A constant of the enum is looked up when a session prepares its statement, and `ALTER TYPE … RENAME VALUE` has none prepare it
/// again: sessions, and so replicas, would take other rows, which the position passes for good. So labels are compared as they are
/// when rows are read. A label that the enum does not have is an error, when the statement is prepared, where the constant still
/// stands, and when it runs. The enum is known by its oid: its schema need not be open to the relay's role. No cast is called.
pub(super) fn has_label(column: &str, label: &str, of: u32) -> String {
    let text = cast::text(column, true);
    // Not in a sub-select, which is asked once for a page: of rows that are read later in it, the label may be another one.
    format!("CASE WHEN false THEN {column} = {label} ELSE {text} = {} END", printed(label, of))
}

/// A label, by its enum; an error if the enum does not have it.
fn printed(label: &str, of: u32) -> String {
    format!("pg_catalog.format('%s', pg_catalog.enum_in({label}, {of}::pg_catalog.oid))")
}

impl Shape {
    /// Whether a row `t` is delivered, as SQL that is never NULL; none where all are.
    pub(super) fn matches(&self) -> Option<String> {
        self.all_of(|column| self.enums.get(column).copied())
    }

    /// The same as the configuration has it, for a text that tells filters apart.
    pub(super) fn and_configured(&self) -> String {
        self.all_of(|_| None).map_or_else(String::new, |all| format!(" AND {all}"))
    }

    fn all_of(&self, enum_of: impl Fn(&String) -> Option<u32>) -> Option<String> {
        let conditions = self.config.filter.iter();
        let conditions: Vec<String> =
            conditions.map(|(column, condition)| condition.sql(column, enum_of(column))).collect();
        (!conditions.is_empty()).then(|| format!("COALESCE({}, false)", conditions.join(" AND ")))
    }

    /// The same, to follow another condition.
    pub(super) fn and_matches(&self) -> String {
        self.matches().map_or_else(String::new, |matches| format!(" AND {matches}"))
    }

    /// The same for what is only counted, in a form that an index with this condition serves: of labels, a session knows what
    /// they were when it prepared the statement.
    pub(super) fn and_counts(&self) -> String {
        let conditions = self.config.filter.iter();
        conditions.map(|(column, condition)| format!(" AND {}", condition.sql(column, None))).collect()
    }

    /// A value of rows that are delivered, and NULL of others.
    pub(super) fn if_matches(&self, value: String) -> String {
        match self.matches() {
            Some(matches) => format!("CASE WHEN {matches} THEN {value} END"),
            None => value,
        }
    }

    /// A statement that fails when an enum has lost a label which the configuration names, or has gone; none without such labels.
    pub(super) fn labels_sql(&self) -> Option<String> {
        let conditions = self.config.filter.iter();
        let of_enums = conditions.filter_map(|(column, condition)| Some((condition, self.enums.get(column)?)));
        let labels: Vec<String> = of_enums
            .flat_map(|(condition, of)| condition.values.iter().map(move |label| printed(&quote_literal(label), *of)))
            .collect();
        (!labels.is_empty()).then(|| format!("SELECT {}", labels.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_that_the_enum_does_not_have_is_named() {
        let table = TableName { schema: "public".to_owned(), name: "bookings".to_owned() };
        let column = Column {
            name: "state".to_owned(),
            base: "app.state".to_owned(),
            enum_oid: Some(17_000),
            labels: vec!["open".to_owned()],
            ..Column::default()
        };
        assert!(no_label(&table, &column, "open").is_none());
        let found = no_label(&table, &column, "Open").expect("labels differ by case");
        for part in ["public.bookings.state", "\"Open\"", "app.state"] {
            assert!(found.message.contains(part), "{}", found.message);
        }
        let text = Column { enum_oid: None, labels: Vec::new(), ..column };
        assert!(no_label(&table, &text, "Open").is_none());
    }

    #[test]
    fn words_that_mean_another_day_tomorrow_are_found_in_columns_of_time() {
        for (base, value, word) in [
            ("date", "tomorrow", "tomorrow"),
            ("timestamp with time zone", "Today 08:00", "Today"),
            ("timestamp without time zone", " NOW ", "NOW"),
            ("tstzrange", "[now,infinity)", "now"),
            ("date[]", "{2026-01-01,yesterday}", "yesterday"),
        ] {
            assert_eq!(relative(base, value), Some(word), "{base} {value}");
        }
        for (base, value) in [
            ("text", "today"),
            ("status", "now"),
            ("tsvector", "now"),
            ("date", "2026-11-21"),
            ("timestamp with time zone", "infinity"),
            ("timestamp with time zone", "epoch"),
            ("timestamp with time zone", "1 nowember"),
        ] {
            assert_eq!(relative(base, value), None, "{base} {value}");
        }
    }

    #[test]
    fn conditions_are_constants_and_null_is_a_condition_of_its_own() {
        let condition = |values: &[&str], null| Condition {
            values: values.iter().map(|value| (*value).to_owned()).collect(),
            null,
        };
        assert_eq!(condition(&["it's"], false).sql("a\"b", None), "(t.\"a\"\"b\" = 'it''s')");
        assert_eq!(condition(&["eu", "us"], true).sql("r", None), "(t.\"r\" IN ('eu', 'us') OR t.\"r\" IS NULL)");
        assert_eq!(condition(&[], true).sql("r", None), "(t.\"r\" IS NULL)");
        assert_eq!(condition(&[], true).sql("r", Some(17_000)), "(t.\"r\" IS NULL)");
        let labels = condition(&["eu", "us"], true).sql("r", Some(17_000));
        assert_eq!(labels.matches("pg_catalog.enum_in(").count(), 2, "{labels}");
        assert!(labels.contains("enum_in('us', 17000::") && labels.ends_with(" OR t.\"r\" IS NULL)"), "{labels}");
    }
}
