//! The catalog's view of a source's table. Reading only; [`super::judge`] says what it means.
//!
//! It is read every few seconds for each table. Its statements have lists of oids in sub-selects of their own, so that their
//! plans are kept: where the planner sees the list, it takes a plan for this list to be better, and plans each time again, for a
//! millisecond.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio_postgres::types::ToSql;

use super::Stream;
use super::finding::{Finding, Level};
use super::shape::{IdType, Shape};
use super::{Rule, judge::Verdict};
use crate::database::{Error, Session, quote_literal};

/// The built-in outbox.
const MESSAGE: &str = "outbox.message";

mod column;
mod stamp;

pub use column::Column;
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
    /// How `created_at` comes about, in each relation of the family.
    pub stamps: Vec<Stamp>,
    /// The indexes that cover its rows: its own, and its children's where they inherit from a plain table.
    pub indexes: Vec<Index>,
    /// The relations that must have such indexes: itself, and children that inherit from a plain table.
    pub indexed: Vec<String>,
    /// Whether the configured zone has one offset all through the years; none when no zone is configured or it is unknown.
    pub zone_fixed: Option<bool>,
}

/// An index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// The relation that it is on.
    pub relation: String,
    /// Its name, quoted where needed.
    pub name: String,
    /// Whether it is unique.
    pub unique: bool,
    /// Whether it takes for equal what its columns take for equal: a column of a nondeterministic collation may count more
    /// rows as equal than an index of another collation.
    pub compares_as_columns: bool,
    /// Whether it yields rows in the order of its first two columns.
    pub ordered: bool,
    /// Its key columns; empty for an expression.
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
    let (row, columns, stamps) =
        tokio::try_join!(facts, column::columns(session, &table), stamp::stamps(session, &members, config))?;
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
    table.columns = columns;
    table.stamps = stamps;
    (table.indexed, table.indexes) = indexes(session, &table).await?;
    table.zone_fixed = zone_fixed(session, config).await?;
    Ok(table)
}

/// A partitioned table's index covers all partitions; a plain table's covers none of the tables that inherit from it.
async fn indexes(session: &Session, table: &Table) -> Result<(Vec<String>, Vec<Index>), InspectError> {
    let relations = table.relations_with_indexes();
    let named = "SELECT ARRAY(SELECT o::regclass::text FROM pg_catalog.unnest($1::oid[]) AS o)";
    let named = session.prepare_cached(named).await?;
    let indexes = session.prepare_cached(include_str!("sql/indexes.sql")).await?;
    let relations: [&(dyn ToSql + Sync); 1] = [&relations];
    let (names, rows) = tokio::try_join!(session.query_one(&named, &relations), session.query(&indexes, &relations))?;
    let names = names.try_get(0)?;
    let indexes: Result<_, InspectError> = rows
        .iter()
        .map(|row| {
            Ok(Index {
                relation: row.try_get(0)?,
                unique: row.try_get(1)?,
                ordered: row.try_get(2)?,
                columns: row.try_get(3)?,
                name: row.try_get(4)?,
                compares_as_columns: row.try_get(5)?,
            })
        })
        .collect();
    Ok((names, indexes?))
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

impl Index {
    fn unique_within(&self, columns: [&str; 2]) -> bool {
        self.unique && self.columns.iter().all(|have| columns.contains(&have.as_str()))
    }
}

impl Table {
    /// The column of this name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The relations whose indexes count: a partitioned table's own cover its partitions, a plain table's cover no child's.
    pub(super) fn relations_with_indexes(&self) -> Vec<u32> {
        if self.kind == "p" { vec![self.root] } else { self.descendants.iter().copied().collect() }
    }

    /// All relations that rows can come in through: ancestors, itself, descendants.
    pub(super) fn family(&self) -> Vec<u32> {
        self.ancestors.union(&self.descendants).copied().collect()
    }

    /// The relations whose rows no index yields in the order of these columns.
    pub fn unordered_by(&self, columns: [&str; 2]) -> impl Iterator<Item = &str> {
        self.without(move |index| index.ordered && index.columns.iter().zip(columns).all(|(have, want)| have == want))
    }

    /// The relations in which rows need not be unique by a subset of these columns.
    pub fn not_unique_within(&self, columns: [&str; 2]) -> impl Iterator<Item = &str> {
        self.without(move |index| index.compares_as_columns && index.unique_within(columns))
    }

    /// The unique index of a relation over a subset of these columns that takes rows apart which its columns take for equal.
    #[must_use]
    pub fn unique_by_another_collation(&self, relation: &str, columns: [&str; 2]) -> Option<&Index> {
        let other = |index: &&Index| index.relation == relation && !index.compares_as_columns;
        self.indexes.iter().filter(other).find(|index| index.unique_within(columns))
    }

    /// The relations whose late rows no index yields: one over `txid`, and then these columns.
    pub fn not_swept_by(&self, config: &Stream) -> impl Iterator<Item = &str> {
        let columns = [super::sweep::COLUMN, &config.created_at, &config.id].map(str::to_owned);
        self.without(move |index| index.ordered && index.columns.starts_with(&columns))
    }

    fn without(&self, fits: impl Fn(&Index) -> bool) -> impl Iterator<Item = &str> {
        let has = move |relation: &str| self.indexes.iter().any(|index| index.relation == relation && fits(index));
        self.indexed.iter().map(String::as_str).filter(move |relation| !has(relation))
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
            columns: self.columns.iter().map(|column| (column.name.clone(), column.column_type())).collect(),
            sweep: super::sweep::column(self, config),
            traceparent: self.column("traceparent").is_some_and(|column| column.readable && column.type_name == "text"),
            headers: config.table.to_string() == MESSAGE
                && self.column("headers").is_some_and(|column| column.readable && column.type_name == "jsonb"),
        }
    }
}
