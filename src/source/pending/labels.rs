//! `where` of due work: columns and the constants that they must equal. Pure.
//!
//! A constant of an enum is looked up when a session prepares its statement, and `ALTER TYPE … RENAME VALUE` has none prepare it
//! again: a statement would go on claiming rows that have another label by now. Promise: a row is claimed only if it has the
//! configured label when it is read. The constant stays beside that, because no other condition proves that a partial index holds
//! the rows. What an outdated one hides is late: until the columns are read again, and statements of the label's present version
//! are prepared.

use std::collections::BTreeMap;

use super::Pending;
use super::catalogue::Column;
use super::due::Due;
use crate::database::{quote_ident, quote_literal};
use crate::source::filter;

/// A label that a column must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// The oid of its enum.
    of: u32,
    /// Its version in the catalog, digits and a point; none where the enum has no such label.
    version: Option<String>,
}

/// The labels of `where`, by column.
pub(super) fn of(columns: &[Column], config: &Pending) -> BTreeMap<String, Label> {
    let label = |column: &Column| {
        let (value, of) = (config.filter.get(&column.name)?, column.of_enum.as_ref()?);
        Some((column.name.clone(), Label { of: of.oid, version: of.labels.get(value).cloned() }))
    };
    columns.iter().filter_map(label).collect()
}

impl Due {
    /// The row `t` fits `where`, and its key has no NULL, to follow another condition; in a form that a partial index serves.
    pub(super) fn fits(&self) -> String {
        self.filtered(|constant, label| match label {
            // With its version: a session that has prepared the same text would keep its outdated constant. COALESCE, because the
            // planner takes a comparison of which it has no statistics for one that one row in 200 passes.
            Some((text, Label { version, .. })) => {
                format!("{constant} /* {} */ AND COALESCE({text}, false)", version.as_deref().unwrap_or_default())
            }
            None => constant,
        })
    }

    /// The same of a row that is found by its key: no outdated constant hides it.
    pub(super) fn fits_by_key(&self) -> String {
        self.filtered(|constant, label| label.map_or(constant, |(text, _)| text))
    }

    /// `condition` makes one of a column's comparison with its constant, and of that of its label, if it has labels.
    fn filtered(&self, condition: impl Fn(String, Option<(String, &Label)>) -> String) -> String {
        let of_column = |(column, value): (&String, &String)| {
            let (column, label, value) =
                (format!("t.{}", quote_ident(column)), self.labels.get(column), quote_literal(value));
            let label = label.map(|label| (filter::has_label(&column, &value, label.of), label));
            format!(" AND {}", condition(format!("{column} = {value}"), label))
        };
        let keys = self.config.key.iter().map(|column| format!(" AND t.{} IS NOT NULL", quote_ident(column)));
        self.config.filter.iter().map(of_column).chain(keys).collect()
    }
}
