//! The catalogue's view of a source's table. Reading only; [`super::judge`] says what it means.

use std::collections::BTreeSet;

use tokio_postgres::types::ToSql;

use super::Config;
use super::finding::{Finding, Level};
use super::shape::{IdType, Shape};
use super::{Rule, judge::Verdict};
use crate::database::{Error, Session, quote_literal};

/// A table as the catalogue shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Its oid.
    pub root: u32,
    /// `r` table, `p` partitioned, `v` view, `f` foreign, …
    pub kind: String,
    /// `p` permanent, `u` unlogged, `t` temporary.
    pub persistence: String,
    /// Ancestors' oids.
    pub ancestors: BTreeSet<u32>,
    /// Its own and its descendants' oids.
    pub descendants: BTreeSet<u32>,
    /// Row security is on and binds this role.
    pub row_security: bool,
    /// This role may look into the schema.
    pub schema_usage: bool,
    /// This role is a superuser.
    pub superuser: bool,
    /// This role may insert or update.
    pub may_write: bool,
    /// A logical subscription writes it.
    pub subscribed: bool,
    /// Its columns.
    pub columns: Vec<Column>,
    /// How `created_at` comes about, in each relation of the family.
    pub stamps: Vec<Stamp>,
    /// Its indexes.
    pub indexes: Vec<Index>,
    /// Whether the configured zone has one offset all through the years; none when no zone is configured or it is unknown.
    pub zone_fixed: Option<bool>,
}

/// A column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type without modifier, as `format_type` says.
    pub type_name: String,
    /// Its modifier: the precision of a timestamp, -1 when it has none.
    pub modifier: i32,
    /// Whether it is NOT NULL.
    pub not_null: bool,
    /// Whether this role may read it.
    pub readable: bool,
}

/// How `created_at` comes about in one relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// The relation's oid.
    pub relation: u32,
    /// Its name, quoted where needed.
    pub name: String,
    /// The column's default.
    pub default: Option<String>,
    /// The stamping trigger is there, enabled, and the last before a row is stored.
    pub trigger: bool,
    /// Roles other than owner and superusers may send a value.
    pub writable: bool,
    /// It is partitioned: no row is stored in it.
    pub partitioned: bool,
    /// Some trigger runs before a row is inserted, and could change the value.
    pub other_trigger: bool,
}

/// An index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// Whether it is unique.
    pub unique: bool,
    /// Its access method.
    pub method: String,
    /// Its key columns as SQL.
    pub columns: Vec<String>,
}

/// Why a table cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    /// There is none of this name.
    #[error("table {0} does not exist")]
    Missing(String),
    /// The database's.
    #[error(transparent)]
    Database(#[from] Error),
}

impl From<tokio_postgres::Error> for InspectError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}

impl InspectError {
    /// As a finding.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let finding = match self {
            Self::Missing(_) => Finding::new(Level::Error, "table_missing", self.to_string())
                .setting("Correct [relay.source.stream] table (schema.name), or create the table."),
            Self::Database(_) => Finding::new(Level::Error, "database", self.to_string()),
        };
        vec![finding]
    }
}

/// Reads what the catalogue says of a source's table.
///
/// # Errors
/// See [`InspectError`].
pub async fn inspect(session: &Session, config: &Config) -> Result<Table, InspectError> {
    // By the catalogue, not by to_regclass: that one fails where the schema may not be looked into.
    let found = session
        .query_opt(
            "SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace \
             WHERE n.nspname = $1::text AND c.relname = $2::text",
            &[&config.table.schema, &config.table.name],
        )
        .await?;
    let Some(found) = found else { return Err(InspectError::Missing(config.table.to_string())) };
    let root: u32 = found.try_get(0)?;
    let mut table = Table { root, ..Table::default() };

    let family = session.query_one(include_str!("sql/snapshot.sql"), &[&root, &"pg_catalog.pg_class"]).await?;
    table.ancestors = family.try_get::<_, Vec<u32>>(2)?.into_iter().collect();
    table.descendants = family.try_get::<_, Vec<u32>>(3)?.into_iter().collect();

    let row = session.query_one(include_str!("sql/table.sql"), &[&root]).await?;
    table.kind = row.try_get(0)?;
    table.persistence = row.try_get(1)?;
    let (enabled, exempt): (bool, bool) = (row.try_get(2)?, row.try_get(7)?);
    table.row_security = enabled && !exempt;
    table.schema_usage = row.try_get(4)?;
    table.superuser = row.try_get(5)?;
    table.row_security &= !table.superuser;
    table.may_write = row.try_get(6)?;
    table.subscribed = row.try_get(8)?;
    table.columns = columns(session, root).await?;
    table.stamps = stamps(session, &table, config).await?;
    table.indexes = indexes(session, root).await?;
    table.zone_fixed = zone_fixed(session, config).await?;
    Ok(table)
}

async fn columns(session: &Session, root: u32) -> Result<Vec<Column>, InspectError> {
    let rows = session.query(include_str!("sql/columns.sql"), &[&root]).await?;
    rows.iter()
        .map(|row| {
            Ok(Column {
                name: row.try_get(0)?,
                type_name: row.try_get(1)?,
                modifier: row.try_get(2)?,
                not_null: row.try_get(3)?,
                readable: row.try_get(4)?,
            })
        })
        .collect()
}

async fn stamps(session: &Session, table: &Table, config: &Config) -> Result<Vec<Stamp>, InspectError> {
    // Rows come in through the ancestors, too, but defaults and triggers of the way in are those of the root named.
    let family: Vec<u32> = table.ancestors.union(&table.descendants).copied().collect();
    let parameters: [&(dyn ToSql + Sync); 2] = [&family, &config.created_at];
    let rows = session.query(include_str!("sql/stamps.sql"), &parameters).await?;
    rows.iter()
        .map(|row| {
            Ok(Stamp {
                relation: row.try_get(0)?,
                name: row.try_get(1)?,
                default: row.try_get(2)?,
                trigger: row.try_get(3)?,
                writable: row.try_get(4)?,
                partitioned: row.try_get(5)?,
                other_trigger: row.try_get(6)?,
            })
        })
        .collect()
}

async fn indexes(session: &Session, root: u32) -> Result<Vec<Index>, InspectError> {
    let rows = session.query(include_str!("sql/indexes.sql"), &[&root]).await?;
    rows.iter()
        .map(|row| Ok(Index { unique: row.try_get(0)?, method: row.try_get(1)?, columns: row.try_get(2)? }))
        .collect()
}

/// Whether the configured zone has the same offset in every month of many years.
async fn zone_fixed(session: &Session, config: &Config) -> Result<Option<bool>, InspectError> {
    let Some(zone) = &config.time_zone else { return Ok(None) };
    let sql = format!(
        "SELECT pg_catalog.count(DISTINCT (t AT TIME ZONE {zone}) - (t AT TIME ZONE 'UTC')) = 1 \
         FROM pg_catalog.generate_series(timestamptz '1970-01-01', timestamptz '2070-01-01', interval '10 days') AS t",
        zone = quote_literal(zone)
    );
    match session.query_one(&sql, &[]).await {
        Ok(row) => Ok(Some(row.try_get(0)?)),
        Err(error) if error.as_db_error().is_some() => Ok(Some(false)),
        Err(error) => Err(error.into()),
    }
}

impl Table {
    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Whether an index of the right kind begins with these columns; `unique` ones may cover fewer.
    #[must_use]
    pub fn ordered_by(&self, columns: [&str; 2]) -> bool {
        self.indexes.iter().any(|index| {
            index.method == "btree"
                && index.columns.len() >= 2
                && index.columns.iter().zip(columns).all(|(column, wanted)| unquoted(column) == wanted)
        })
    }

    /// Whether rows are unique by a subset of these columns.
    #[must_use]
    pub fn unique_within(&self, columns: [&str; 2]) -> bool {
        self.indexes.iter().any(|index| {
            index.unique && index.columns.iter().all(|column| columns.iter().any(|c| unquoted(column) == *c))
        })
    }

    /// The shape for reading, after a verdict without errors.
    #[must_use]
    pub fn shape(&self, config: &Config, verdict: &Verdict) -> Shape {
        let type_of = |name: &str| self.column(name).map_or("", |column| column.type_name.as_str());
        Shape {
            config: config.clone(),
            root: self.root,
            ancestors: self.ancestors.clone(),
            descendants: self.descendants.clone(),
            rule: verdict.rule,
            proven: verdict.proven,
            margin: super::horizon::Margin {
                window: Shape::window(config, verdict.rule),
                precision: super::judge::precision(self.column(&config.created_at)),
            },
            own_role_only_reads: !self.superuser && !self.may_write && verdict.rule == Rule::Transactions,
            id_type: IdType::named(type_of(&config.id)).unwrap_or(IdType::Text),
            bytea_columns: self.columns.iter().filter(|c| c.type_name == "bytea").map(|c| c.name.clone()).collect(),
            traceparent: self.column("traceparent").is_some_and(|column| column.readable && column.type_name == "text"),
        }
    }
}

/// An index column as `pg_get_indexdef` prints it, without its quotes.
fn unquoted(text: &str) -> String {
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => text.to_owned(),
    }
}
