//! The indexes of a table: which of its rows they cover, and what they yield.

use tokio_postgres::types::ToSql;

use super::{InspectError, Table};
use crate::database::Session;
use crate::source::{Stream, sweep};

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

/// A partitioned table's index covers all partitions; a plain table's covers none of the tables that inherit from it.
pub(super) async fn indexes(session: &Session, table: &Table) -> Result<(Vec<String>, Vec<Index>), InspectError> {
    let relations = table.relations_with_indexes();
    let named = "SELECT ARRAY(SELECT o::regclass::text FROM pg_catalog.unnest($1::oid[]) AS o)";
    let named = session.prepare_cached(named).await?;
    let indexes = session.prepare_cached(include_str!("../sql/indexes.sql")).await?;
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

impl Index {
    fn unique_within(&self, columns: [&str; 2]) -> bool {
        self.unique && self.columns.iter().all(|have| columns.contains(&have.as_str()))
    }
}

impl Table {
    /// The relations whose indexes count: a partitioned table's own cover its partitions, a plain table's cover no child's.
    pub(in crate::source) fn relations_with_indexes(&self) -> Vec<u32> {
        if self.kind == "p" { vec![self.root] } else { self.descendants.iter().copied().collect() }
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
        let columns = [sweep::COLUMN, &config.created_at, &config.id].map(str::to_owned);
        self.without(move |index| index.ordered && index.columns.starts_with(&columns))
    }

    fn without(&self, fits: impl Fn(&Index) -> bool) -> impl Iterator<Item = &str> {
        let has = move |relation: &str| self.indexes.iter().any(|index| index.relation == relation && fits(index));
        self.indexed.iter().map(String::as_str).filter(move |relation| !has(relation))
    }
}
