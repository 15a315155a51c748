//! Whether columns still have the types that the catalog gave them when it was read.
//!
//! `ALTER COLUMN TYPE` may come at any moment, and a value's text means something else in another type, often without an
//! error. The question is asked of the parser, which knows what the rows' own statement reads, not of the snapshot: that
//! may be older than the lock that waited for the change.

use std::collections::BTreeSet;

use tokio_postgres::{Column, Row, Statement};

use crate::database::{Error, Loan, quote_ident};
use crate::message::Field;
use crate::source::shape::Shape;

/// The question, and the answer that the shape gives.
pub(super) struct Types {
    statement: Statement,
    known: Vec<Option<u32>>,
}

impl Types {
    /// None when there is nothing to ask.
    pub(super) async fn prepare(
        reader: &Loan,
        shape: &Shape,
        fields: &[Field],
    ) -> Result<Option<Self>, tokio_postgres::Error> {
        let columns: Vec<&String> = fields
            .iter()
            .filter_map(|field| match field {
                Field::Text(column) | Field::Payload(column) => Some(column),
                Field::Row | Field::Columns(_) | Field::Debezium(_) | Field::Matches => None,
            })
            .collect();
        if columns.is_empty() {
            return Ok(None);
        }
        let known = columns.iter().map(|column| shape.columns.get(*column).map(|known| known.oid)).collect();
        let asked: Vec<_> =
            columns.iter().map(|column| format!("pg_catalog.pg_typeof(t.{})::oid", quote_ident(column))).collect();
        // No row is read, and no partition is looked at.
        let sql = format!(
            "SELECT {} FROM (SELECT) AS nothing LEFT JOIN ONLY {} AS t ON false",
            asked.join(", "),
            shape.config.table.quoted()
        );
        Ok(Some(Self { statement: reader.prepare_cached(&sql).await?, known }))
    }

    fn are(&self, found: &Row) -> Result<bool, tokio_postgres::Error> {
        for (column, known) in self.known.iter().enumerate() {
            if found.try_get::<_, Option<u32>>(column)? != *known {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether the types are what the shape says, in a transaction that holds the table's lock.
pub(super) async fn stand(reader: &Loan, types: Option<&Types>) -> Result<bool, tokio_postgres::Error> {
    let Some(types) = types else { return Ok(true) };
    types.are(&reader.query_one(&types.statement, &[]).await?)
}

/// Whether the columns have the types that the shape says. Asked after rows have been read one by one: what was read
/// before a change has the types before it.
///
/// # Errors
/// The database's.
pub async fn types_stand(reader: &Loan, shape: &Shape, fields: &[Field]) -> Result<bool, Error> {
    let Some(types) = Types::prepare(reader, shape, fields).await? else { return Ok(true) };
    Ok(types.are(&reader.query_one(&types.statement, &[]).await?)?)
}

/// Whether the table still has the columns that an object of the whole row was composed of.
///
/// # Errors
/// The database's.
pub async fn columns_stand(reader: &Loan, shape: &Shape, fields: &[Field]) -> Result<bool, Error> {
    if !fields.contains(&Field::Debezium(None)) {
        return Ok(true);
    }
    let statement = reader.prepare(&shape.columns_sql()).await?;
    let names: BTreeSet<&str> = statement.columns().iter().map(Column::name).collect();
    Ok(names.into_iter().eq(shape.columns.keys()))
}
