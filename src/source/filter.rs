//! Which rows of a stream are delivered (`where`). Pure.
//!
//! Rows that do not match are read as well, without their values, and passed: so that the position moves over them, and nothing that
//! the proof of the order rests on knows of a filter.

use super::shape::Shape;
use crate::database::{quote_ident, quote_literal};

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
