//! The catalog's view of a source's table. Reading only; [`super::judge`] says what it means.
//!
//! It is read every few seconds for each table. Its statements have lists of oids in sub-selects of their own, so that their
//! plans are kept: where the planner sees the list, it takes a plan for this list to be better, and plans each time again, for a
//! millisecond.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Stream;
use super::cast::{self, Cast};
use super::finding::{Finding, Level};
use super::shape::{IdType, Shape};
use super::{Rule, judge::Verdict};
use crate::database::{Error, Session, quote_literal};

/// The built-in outbox.
const MESSAGE: &str = "outbox.message";

mod column;
mod index;
mod stamp;

pub use column::Column;
pub use index::Index;
pub use stamp::Stamp;
pub(super) use stamp::guard;

/// A table as the catalog shows it.
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
    /// The role that looks.
    pub role: String,
    /// This role may look into the schema.
    pub schema_usage: bool,
    /// This role is a superuser.
    pub superuser: bool,
    /// This role may read when the transactions of other roles began.
    pub reads_activity: bool,
    /// This role, or one that it is a member of, may insert or update in some relation of the family.
    pub may_write: bool,
    /// Relations of the family that a logical subscription writes.
    pub subscribed: Vec<String>,
    /// Foreign tables among its family.
    pub foreign: Vec<String>,
    /// Temporary tables among its family.
    pub temporary: Vec<String>,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Casts of its columns' types whose functions no superuser owns.
    pub casts: Vec<Cast>,
    /// How `created_at` comes about, in each relation of the family.
    pub stamps: Vec<Stamp>,
    /// The indexes that cover its rows: its own, and its children's where they inherit from a plain table.
    pub indexes: Vec<Index>,
    /// The relations that must have such indexes: itself, and children that inherit from a plain table.
    pub indexed: Vec<String>,
    /// Whether the configured zone has one offset all through the years; none when no zone is configured or it is unknown.
    pub zone_fixed: Option<bool>,
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
            Self::Database(error) => Finding::database(error),
        };
        vec![finding]
    }
}

/// Reads what the catalog says of a source's table.
///
/// # Errors
/// See [`InspectError`].
pub async fn inspect(session: &Session, config: &Stream) -> Result<Table, InspectError> {
    // By the catalog, not by to_regclass: that one fails where the schema may not be looked into.
    let by_name = session.prepare_cached(include_str!("sql/table_by_name.sql")).await?;
    let found = session.query_opt(&by_name, &[&config.table.schema, &config.table.name]).await?;
    let Some(found) = found else { return Err(InspectError::Missing(config.table.to_string())) };
    let root: u32 = found.try_get(0)?;
    let mut before = relations(session, root).await?;
    loop {
        let table = read(session, config, root, &before).await?;
        let after = relations(session, root).await?;
        // Each statement has a snapshot of its own: a partition that left in between has lost its triggers and indexes, and
        // would be judged as if it still belonged to the table, also when it has come back meanwhile.
        if before == after {
            return Ok(table);
        }
        before = after;
    }
}

const VERSIONS: &str = include_str!("sql/table_versions.sql");

/// A table's relatives.
#[derive(Debug, PartialEq, Eq)]
struct Relations {
    ancestors: BTreeSet<u32>,
    /// Itself, too.
    descendants: BTreeSet<u32>,
    /// The version of the row that makes each a member (`xmin` of `pg_inherits`): one that left and came back has another.
    versions: Vec<String>,
}

async fn relations(session: &Session, root: u32) -> Result<Relations, InspectError> {
    let family = session.prepare_cached(include_str!("sql/snapshot.sql")).await?;
    let family = session.query_one(&family, &[&root, &"pg_catalog.pg_class", &Vec::<String>::new()]).await?;
    let oids = |column| Ok::<_, InspectError>(family.try_get::<_, Vec<u32>>(column)?.into_iter().collect());
    let (ancestors, descendants): (BTreeSet<u32>, BTreeSet<u32>) = (oids(2)?, oids(3)?);
    let versions = session.prepare_cached(VERSIONS).await?;
    let members: Vec<u32> = ancestors.iter().chain(&descendants).copied().collect();
    let versions = session.query_one(&versions, &[&members]).await?.try_get(0)?;
    Ok(Relations { ancestors, descendants, versions })
}

async fn read(session: &Session, config: &Stream, root: u32, relations: &Relations) -> Result<Table, InspectError> {
    let (ancestors, descendants) = (relations.ancestors.clone(), relations.descendants.clone());
    let mut table = Table { root, ancestors, descendants, ..Table::default() };
    let members = table.family();
    let facts = async {
        let facts = session.prepare_cached(include_str!("sql/table.sql")).await?;
        Ok(session.query_one(&facts, &[&root, &members]).await?)
    };
    // Asked at once: a look's price is mostly that of waiting for each answer.
    let casts = async { Ok(cast::read(session, root).await?) };
    let (row, columns, casts, stamps) =
        tokio::try_join!(facts, column::columns(session, &table), casts, stamp::stamps(session, &members, config))?;
    table.kind = row.try_get(0)?;
    table.persistence = row.try_get(1)?;
    table.row_security = row.try_get(2)?;
    table.schema_usage = row.try_get(3)?;
    table.role = row.try_get(4)?;
    table.superuser = row.try_get(5)?;
    table.may_write = row.try_get(6)?;
    table.subscribed = row.try_get(7)?;
    table.foreign = row.try_get(8)?;
    table.temporary = row.try_get(9)?;
    table.reads_activity = row.try_get(10)?;
    (table.columns, table.casts) = (columns, casts);
    table.stamps = stamps;
    (table.indexed, table.indexes) = index::indexes(session, &table).await?;
    table.zone_fixed = zone_fixed(session, config).await?;
    Ok(table)
}

/// Whether the configured zone has the same offset in every month of many years.
async fn zone_fixed(session: &Session, config: &Stream) -> Result<Option<bool>, InspectError> {
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

    /// All relations that rows can come in through: ancestors, itself, descendants.
    pub(super) fn family(&self) -> Vec<u32> {
        self.ancestors.union(&self.descendants).copied().collect()
    }

    /// The shape for reading, after a verdict without errors.
    #[must_use]
    pub fn shape(&self, config: &Stream, verdict: &Verdict) -> Shape {
        let type_of = |name: &str| self.column(name).map_or("", |column| column.type_name.as_str());
        Shape {
            config: config.clone(),
            shard: None,
            root: self.root,
            ancestors: self.ancestors.clone(),
            descendants: self.descendants.clone(),
            rule: verdict.rule,
            certainty: verdict.certainty,
            trigger: verdict.trigger.clone(),
            needs: verdict.needs,
            margin: super::horizon::Margin {
                // A stamp by day is set back by up to a millisecond at midnight.
                window: Shape::window(config, verdict.rule).max(Duration::from_millis(1)),
                precision: super::judge::precision(self.column(&config.created_at)),
            },
            own_role_only_reads: !self.superuser && !self.may_write && verdict.rule == Rule::Transactions,
            order: super::order::words(
                self.column(&config.created_at),
                self.column(&config.id),
                config.time_zone.as_deref(),
            ),
            order_columns: [&config.created_at, &config.id]
                .into_iter()
                .filter_map(|name| self.column(name).map(|column| column.number))
                .collect(),
            order_facts: [&config.created_at, &config.id]
                .into_iter()
                .filter_map(|name| self.column(name))
                .map(Column::fact)
                .collect(),
            id_type: IdType::named(type_of(&config.id)).unwrap_or(IdType::Text),
            bytea_columns: self.columns.iter().filter(|c| c.type_name == "bytea").map(|c| c.name.clone()).collect(),
            own_columns: self.columns.iter().filter(|column| column.own).map(|column| column.name.clone()).collect(),
            enums: self.columns.iter().filter_map(|column| Some((column.name.clone(), column.enum_oid?))).collect(),
            columns: self.columns.iter().map(|column| (column.name.clone(), column.column_type())).collect(),
            column_numbers: self.columns.iter().map(|column| (column.name.clone(), column.number)).collect(),
            casts: self.casts.clone(),
            sweep: super::sweep::column(self, config),
            traceparent: self.column("traceparent").is_some_and(|column| column.readable && column.type_name == "text"),
            headers: config.table.to_string() == MESSAGE
                && self.column("headers").is_some_and(|column| column.readable && column.type_name == "jsonb"),
        }
    }
}
