//! What the values of enums are called now. Reading only.

use deadpool_postgres::ClientWrapper;

use crate::database::Error;

/// A value of an enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnumValue {
    /// The oid of its enum.
    pub of: u32,
    /// Its own oid, which no rename changes.
    pub oid: u32,
    /// What it is called.
    pub label: String,
}

/// The values of the enums with these oids.
///
/// In a transaction that is READ COMMITTED, with the labels that its earlier statements have read, or later ones.
///
/// # Errors
/// The database's.
pub(crate) async fn read(transaction: &ClientWrapper, enums: &[u32]) -> Result<Vec<EnumValue>, Error> {
    let statement = transaction.prepare_cached(include_str!("sql/enum_values.sql")).await?;
    let rows = transaction.query(&statement, &[&enums]).await?;
    let value =
        |row: &tokio_postgres::Row| Ok(EnumValue { of: row.try_get(0)?, oid: row.try_get(1)?, label: row.try_get(2)? });
    Ok(rows.iter().map(value).collect::<Result<_, tokio_postgres::Error>>()?)
}
