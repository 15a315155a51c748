//! The columns of a source's table, as the catalog shows them.

use super::{InspectError, Table};
use crate::database::Session;
use crate::message::ColumnType;

/// A column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its number in the table.
    pub number: i16,
    /// Its name.
    pub name: String,
    /// Its type without modifier, as `format_type` says.
    pub type_name: String,
    /// The same, of a domain the type behind it.
    pub base: String,
    /// Its type's oid.
    pub type_oid: u32,
    /// Its array type's oid, and what stands between the elements of an array's text; none for an array.
    pub array: Option<(u32, char)>,
    /// Its modifier: the precision of a timestamp, -1 when it has none.
    pub modifier: i32,
    /// The relations, of the table and its descendants, in which it may be NULL.
    pub nullable_in: Vec<String>,
    /// Its collation, of a type that has one.
    pub collation: Option<String>,
    /// Whether this role may read it.
    pub readable: bool,
    /// Its default; none of a generated column.
    pub default: Option<String>,
    /// Its type is one of the database's own, whose text its output function makes unless a cast is created.
    pub own: bool,
    /// The oid of its enum, where its type is one or a domain over one.
    pub enum_oid: Option<u32>,
    /// The labels of that enum.
    pub labels: Vec<String>,
}

impl Column {
    /// Whether it holds the transaction that wrote a row, in every row that is inserted without saying another.
    pub(in crate::source) fn tells_transaction(&self) -> bool {
        let default = self.default.as_deref().map(|text| text.trim_start_matches("pg_catalog."));
        let stamped = self.type_name == "xid8" && default == Some("pg_current_xact_id()");
        stamped && self.readable && self.nullable_in.is_empty()
    }

    /// What a snapshot says of its order; see `sql/snapshot.sql`.
    pub(in crate::source) fn fact(&self) -> String {
        let collation = self.collation.as_ref().map_or_else(String::new, |collation| format!(" {collation}"));
        format!("{} {} {} {}{collation}", self.name, self.number, self.type_oid, self.modifier)
    }

    pub(super) fn column_type(&self) -> ColumnType {
        ColumnType { name: self.type_name.clone(), oid: self.type_oid, array: self.array }
    }
}

pub(super) async fn columns(session: &Session, table: &Table) -> Result<Vec<Column>, InspectError> {
    let descendants: Vec<u32> = table.descendants.iter().copied().collect();
    let columns = session.prepare_cached(include_str!("../sql/columns.sql")).await?;
    let rows = session.query(&columns, &[&table.root, &descendants]).await?;
    rows.iter()
        .map(|row| {
            Ok(Column {
                number: row.try_get(9)?,
                name: row.try_get(0)?,
                type_name: row.try_get(1)?,
                base: row.try_get(10)?,
                type_oid: row.try_get(6)?,
                array: array(row.try_get(7)?, row.try_get(8)?),
                modifier: row.try_get(2)?,
                collation: row.try_get(11)?,
                nullable_in: row.try_get(3)?,
                readable: row.try_get(4)?,
                default: row.try_get(5)?,
                own: row.try_get(12)?,
                enum_oid: row.try_get(13)?,
                labels: row.try_get(14)?,
            })
        })
        .collect()
}

/// The catalog says 0 for a type that has no array type.
fn array(oid: u32, delimiter: &str) -> Option<(u32, char)> {
    Some((oid, delimiter.chars().next()?)).filter(|_| oid != 0)
}
