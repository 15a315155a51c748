//! What the catalog says of a table or view of due work.

use std::collections::BTreeMap;

use super::Pending;
use crate::database::{Error, Session};
use crate::source::cast::{self, Cast};

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingTable {
    /// Its oid.
    pub oid: u32,
    /// `r` table, `p` partitioned table, `v` view, `m` materialised view, `f` foreign table.
    pub kind: String,
    /// The relay's role.
    pub role: String,
    /// It is a superuser.
    pub superuser: bool,
    /// It may look into the table's schema.
    pub schema_usage: bool,
    /// It may read every column.
    pub may_read: bool,
    /// It may set the column that says whether a row was sent.
    pub may_mark: bool,
    /// It may write claims and marks of its own schema.
    pub may_claim: bool,
    /// Row security binds the role: rows would be left out.
    pub row_security: bool,
    /// Tables inherit from it, and are no partitions: no index spans them.
    pub has_children: bool,
    /// The columns.
    pub columns: Vec<Column>,
    /// Casts of their types whose functions no superuser owns.
    pub casts: Vec<Cast>,
    /// The columns of each valid, unconditional unique index.
    pub unique: Vec<Vec<String>>,
    /// Names and columns of those that take rows apart which their columns take for equal.
    pub unique_by_another_collation: Vec<(String, Vec<String>)>,
    /// The valid indexes that begin with the due column.
    pub by_due: Vec<Index>,
    /// Whether PostgreSQL knows the configured zone; none when none is configured.
    pub zone_known: Option<bool>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type with its modifier, as SQL.
    pub type_name: String,
    /// The same without modifier, and of a domain the type behind it.
    pub base: String,
    /// It cannot be NULL, in none of the relations that the rows stand in.
    pub not_null: bool,
    /// Its type is not built in: a cast of it may be created.
    pub is_apart: bool,
    /// Its type is one of the database's own, whose text its output function makes unless a cast is created.
    pub own: bool,
    /// The enum that it is of, also by a domain.
    pub of_enum: Option<Enum>,
}

/// An enum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enum {
    /// Its oid.
    pub oid: u32,
    /// Its labels, and the version of each in the catalog: another one once a label was renamed.
    pub labels: BTreeMap<String, String>,
}

/// An index that begins with the due column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Which rows it covers, as PostgreSQL writes it; none: all.
    pub predicate: Option<String>,
}

impl PendingTable {
    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// It is a view: rows are only read, and what they are made of is unknown.
    #[must_use]
    pub fn is_view(&self) -> bool {
        matches!(self.kind.as_str(), "v" | "m" | "f")
    }
}

/// Reads it; none when there is no such table or view.
///
/// # Errors
/// The database's.
pub async fn inspect(session: &Session, config: &Pending) -> Result<Option<PendingTable>, Error> {
    let names: [&(dyn tokio_postgres::types::ToSql + Sync); 3] =
        [&config.table.schema, &config.table.name, &config.sent];
    let Some(row) = session.query_opt(include_str!("../sql/pending_table.sql"), &names).await? else {
        return Ok(None);
    };
    let oid: u32 = row.try_get(0)?;
    let mut table = PendingTable {
        oid,
        kind: row.try_get(1)?,
        role: row.try_get(2)?,
        superuser: row.try_get(3)?,
        schema_usage: row.try_get(4)?,
        may_read: row.try_get(5)?,
        may_mark: row.try_get(6)?,
        row_security: row.try_get(7)?,
        may_claim: row.try_get::<_, Option<bool>>(8)?.unwrap_or(false),
        has_children: row.try_get(9)?,
        columns: columns(session, oid, config).await?,
        casts: cast::read(session, oid).await?,
        ..PendingTable::default()
    };
    for row in session.query(include_str!("../sql/pending_indexes.sql"), &[&oid]).await? {
        let columns: Vec<String> = row.try_get(1)?;
        let (unique, predicate): (bool, Option<String>) = (row.try_get(2)?, row.try_get(3)?);
        if unique && predicate.is_none() {
            if row.try_get(4)? {
                table.unique.push(columns.clone());
            } else {
                table.unique_by_another_collation.push((row.try_get(0)?, columns.clone()));
            }
        }
        if columns.first() == Some(&config.due) {
            table.by_due.push(Index { name: row.try_get(0)?, predicate });
        }
    }
    if let Some(zone) = &config.time_zone {
        let known = "SELECT EXISTS (SELECT FROM pg_catalog.pg_timezone_names WHERE pg_catalog.lower(name) = pg_catalog.lower($1::text))";
        table.zone_known = Some(session.query_one(known, &[zone]).await?.try_get(0)?);
    }
    Ok(Some(table))
}

/// The columns of the table of this oid; none when it is gone. Of those of the key and of the mark, whether they may be NULL is asked of
/// all its family.
///
/// # Errors
/// The database's.
pub(super) async fn columns(session: &Session, oid: u32, config: &Pending) -> Result<Vec<Column>, Error> {
    let column = |row: &tokio_postgres::Row| {
        let (labels, versions): (Vec<String>, Vec<String>) = (row.try_get(7)?, row.try_get(8)?);
        let of_enum: Option<u32> = row.try_get(6)?;
        Ok(Column {
            name: row.try_get(0)?,
            type_name: row.try_get(1)?,
            base: row.try_get(2)?,
            not_null: row.try_get(3)?,
            is_apart: row.try_get(4)?,
            own: row.try_get(5)?,
            of_enum: of_enum.map(|oid| Enum { oid, labels: labels.into_iter().zip(versions).collect() }),
        })
    };
    let named: Vec<&String> = config.key.iter().chain(&config.sent).collect();
    let rows = session.query(include_str!("../sql/pending_columns.sql"), &[&oid, &named]).await?;
    Ok(rows.iter().map(column).collect::<Result<_, tokio_postgres::Error>>()?)
}
