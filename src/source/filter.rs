//! Which rows of a stream are delivered (`where`). Pure.
//!
//! Rows that do not match are read as well, without their values, and passed: so that the position moves over them, and nothing that
//! the proof of the order rests on knows of a filter.

use super::TableName;
use super::finding::{Finding, Level};
use super::shape::Shape;
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

/// What a column's value must be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Condition {
    /// One of these, as PostgreSQL's text.
    pub values: Vec<String>,
    /// Or NULL.
    pub null: bool,
}

impl Condition {
    fn sql(&self, column: &str) -> String {
        let column = format!("t.{}", quote_ident(column));
        let list: Vec<String> = self.values.iter().map(|value| quote_literal(value)).collect();
        let among = match &*list {
            [] => None,
            [value] => Some(format!("{column} = {value}")),
            values => Some(format!("{column} IN ({})", values.join(", "))),
        };
        let null = self.null.then(|| format!("{column} IS NULL"));
        let either: Vec<String> = among.into_iter().chain(null).collect();
        format!("({})", either.join(" OR "))
    }
}

impl Shape {
    /// Whether a row `t` is delivered, as SQL that is never NULL; none where all are.
    pub(super) fn matches(&self) -> Option<String> {
        let conditions = self.config.filter.iter().map(|(column, condition)| condition.sql(column));
        let conditions: Vec<String> = conditions.collect();
        (!conditions.is_empty()).then(|| format!("COALESCE({}, false)", conditions.join(" AND ")))
    }

    /// The same, to follow another condition.
    pub(super) fn and_matches(&self) -> String {
        self.matches().map_or_else(String::new, |matches| format!(" AND {matches}"))
    }

    /// A value of rows that are delivered, and NULL of others.
    pub(super) fn if_matches(&self, value: String) -> String {
        match self.matches() {
            Some(matches) => format!("CASE WHEN {matches} THEN {value} END"),
            None => value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(condition(&["it's"], false).sql("a\"b"), "(t.\"a\"\"b\" = 'it''s')");
        assert_eq!(condition(&["eu", "us"], true).sql("r"), "(t.\"r\" IN ('eu', 'us') OR t.\"r\" IS NULL)");
        assert_eq!(condition(&[], true).sql("r"), "(t.\"r\" IS NULL)");
    }
}
