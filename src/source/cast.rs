//! Casts that are called when a column is read: functions of the owner of its type, with the rights of the relay's role.
//!
//! Promise: a column whose type has such a cast is not read, unless a superuser owns the function, or the relay's role itself, or the owner
//! of the schema's tables. Pure, but for `read`.

use super::TableName;
use super::finding::{Finding, Level};
use super::shape::Shape;
use crate::database::Session;
use crate::message::Field;

/// A cast whose function no superuser owns: from a column's type or something that it is made of, or to it from a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cast {
    /// The column.
    pub column: String,
    /// The type that is cast, as SQL.
    pub source: String,
    /// The type that it is cast to, as SQL.
    pub target: String,
    /// The function, with the types of its arguments.
    pub function: String,
    /// The role that owns the function.
    pub owner: String,
    /// It is called when a text or JSON is made of a value.
    pub prints: bool,
    /// It is called when a value is compared with a constant.
    pub compares: bool,
    /// It is an extension's: it cannot be dropped by itself.
    pub of_extension: bool,
}

/// What is done with a column beside being read for a sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A text is made of its value.
    Printed,
    /// Its value is compared with constants of the configuration.
    Compared,
    /// Rows are named by its text, and found by it.
    Names,
}

impl Cast {
    const fn is_called(&self, usage: Use) -> bool {
        match usage {
            Use::Printed => self.prints,
            Use::Compared => self.compares,
            Use::Names => true,
        }
    }

    fn finding(&self, table: &TableName) -> Finding {
        let Self { column, source, target, function, owner, .. } = self;
        let message = format!(
            "{table}.{column} is not read: the cast from {source} to {target} calls {function}, which role {owner} owns, with the rights \
             of the relay's role"
        );
        let finding = Finding::new(Level::Error, "column_cast", message);
        if self.of_extension {
            return finding.setting("Leave the column out: list the columns that are published.");
        }
        let sql = format!(
            "DROP CAST ({source} AS {target}); -- or leave the column out: list the columns that are published"
        );
        finding.sql(sql)
    }
}

/// The casts of all columns of a table or view, by its oid.
///
/// # Errors
/// The database's.
pub(crate) async fn read(session: &Session, relation: u32) -> Result<Vec<Cast>, tokio_postgres::Error> {
    let statement = session.prepare_cached(include_str!("sql/column_casts.sql")).await?;
    let rows = session.query(&statement, &[&relation]).await?;
    rows.iter()
        .map(|row| {
            Ok(Cast {
                column: row.try_get(0)?,
                source: row.try_get(1)?,
                target: row.try_get(2)?,
                function: row.try_get(3)?,
                owner: row.try_get(4)?,
                prints: row.try_get(5)?,
                compares: row.try_get(6)?,
                of_extension: row.try_get(7)?,
            })
        })
        .collect()
}

/// What is wrong with these uses of columns.
pub(super) fn of_columns<'a>(
    table: &TableName,
    casts: &[Cast],
    uses: impl Iterator<Item = (&'a String, Use)>,
) -> Vec<Finding> {
    let uses: Vec<_> = uses.collect();
    let is_called = |cast: &&Cast| uses.iter().any(|(column, usage)| **column == cast.column && cast.is_called(*usage));
    casts.iter().filter(is_called).map(|cast| cast.finding(table)).collect()
}

/// What is wrong with reading these fields of a row.
pub(super) fn of_fields(table: &TableName, casts: &[Cast], fields: &[Field]) -> Vec<Finding> {
    let is_called = |cast: &&Cast| cast.prints && fields.iter().any(|field| reads(field, &cast.column));
    casts.iter().filter(is_called).map(|cast| cast.finding(table)).collect()
}

fn reads(field: &Field, column: &str) -> bool {
    match field {
        Field::Row | Field::Debezium(None) => true,
        Field::Columns(columns) | Field::Debezium(Some(columns)) => columns.iter().any(|read| read == column),
        Field::Text(read) | Field::Payload(read) => read == column,
        Field::Matches => false,
    }
}

/// The text of a value, as SQL. One of the database's `own` types is printed by its type's output function: a cast may be created after
/// the catalog was read, and calls what it likes.
pub(super) fn text(value: &str, own: bool) -> String {
    if own {
        format!("CASE WHEN pg_catalog.num_nonnulls({value}) = 1 THEN pg_catalog.format('%s', {value}) END")
    } else {
        format!("{value}::text")
    }
}

impl Shape {
    /// What is wrong with reading these fields of a row: casts whose functions no superuser owns.
    #[must_use]
    pub fn casts_called(&self, fields: &[Field]) -> Vec<Finding> {
        of_fields(&self.config.table, &self.casts, fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cast(column: &str, target: &str, prints: bool, compares: bool) -> Cast {
        Cast {
            column: column.to_owned(),
            source: "app.mood".to_owned(),
            target: target.to_owned(),
            function: "app.f(app.mood)".to_owned(),
            owner: "tenant".to_owned(),
            prints,
            compares,
            of_extension: false,
        }
    }

    fn table() -> TableName {
        TableName { schema: "app".to_owned(), name: "booking".to_owned() }
    }

    #[test]
    fn cast_counts_for_columns_that_are_read_alone() {
        let casts = [cast("mood", "text", true, false)];
        let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        for (field, is_read) in [
            (Field::Row, true),
            (Field::Debezium(None), true),
            (Field::Columns(columns(&["id", "mood"])), true),
            (Field::Columns(columns(&["id"])), false),
            (Field::Debezium(Some(columns(&["mood"]))), true),
            (Field::Text("mood".to_owned()), true),
            (Field::Payload("mood".to_owned()), true),
            (Field::Payload("body".to_owned()), false),
            (Field::Matches, false),
        ] {
            assert_eq!(
                of_fields(&table(), &casts, std::slice::from_ref(&field)).len(),
                usize::from(is_read),
                "{field}"
            );
        }
        let found = of_fields(&table(), &casts, &[Field::Row]);
        assert_eq!((found[0].code, found[0].level), ("column_cast", Level::Error));
        for part in ["app.booking.mood", "app.mood", "app.f(app.mood)", "role tenant"] {
            assert!(found[0].message.contains(part), "{part}: {}", found[0].message);
        }
        assert!(found[0].fix_sql.as_ref().is_some_and(|sql| sql.starts_with("DROP CAST (app.mood AS text);")));
    }

    #[test]
    fn cast_of_an_extension_is_not_to_be_dropped() {
        let found = Cast { of_extension: true, ..cast("mood", "text", true, false) }.finding(&table());
        assert!(found.fix_sql.is_none() && found.fix_setting.is_some(), "{found:?}");
    }

    #[test]
    fn cast_counts_for_uses_that_call_it() {
        let mood = "mood".to_owned();
        let called = |cast: Cast, usage| !of_columns(&table(), &[cast], std::iter::once((&mood, usage))).is_empty();
        let [printing, comparing, naming] =
            [cast("mood", "text", true, false), cast("mood", "integer", false, true), cast("mood", "", false, false)];
        assert!(called(printing.clone(), Use::Printed) && !called(printing.clone(), Use::Compared));
        assert!(!called(comparing.clone(), Use::Printed) && called(comparing.clone(), Use::Compared));
        assert!(!called(naming.clone(), Use::Printed) && !called(naming.clone(), Use::Compared));
        assert!([printing, comparing, naming].into_iter().all(|cast| called(cast, Use::Names)));
        assert!(!called(cast("other", "text", true, true), Use::Names));
    }

    #[test]
    fn own_types_are_printed_without_a_cast() {
        assert_eq!(text("t.\"c\"", false), "t.\"c\"::text");
        assert!(!text("t.\"c\"", true).contains("::"));
    }
}
