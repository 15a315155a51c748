//! What a table is made of, looked at in the snapshot that its rows are read with.

use std::collections::BTreeSet;

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, GenericClient, Row, Statement};

use super::away;
use super::fetch::{FetchError, Request};
use super::shape::{After, Shape, Within};
use crate::database::Loan;
use crate::position::Position;

const DETACHED: &str = include_str!("sql/family_detached.sql");
/// What a table is made of, whatever that is.
const FAMILY: &str = include_str!("sql/snapshot.sql");
/// The same of a table that is known to stand alone, for less: what it finds is what the other finds, or more than the table
/// itself, which either way is another family.
const ALONE: &str = include_str!("sql/snapshot_alone.sql");

/// Whether it is the ready-made outbox, whose partitions come and go.
pub(super) fn is_message(shape: &Shape) -> bool {
    (shape.config.table.schema.as_str(), shape.config.table.name.as_str()) == ("outbox", "message")
}

/// Whether the table had neither ancestors nor descendants when the catalog was read.
fn stands_alone(shape: &Shape) -> bool {
    shape.ancestors.is_empty() && shape.descendants.len() == 1
}

/// A partition of `outbox.message` on its way out with a place behind the position: its rows cannot be seen, whether or
/// not a cursor needs them. It comes back, or goes for good, with the next pass of retention. Of tables of the user's own, one that
/// the cursor has known, with a row after the position.
///
/// # Errors
/// The database's.
pub async fn detached(
    client: &impl GenericClient,
    shape: &Shape,
    cursor: &str,
    position: Option<&Position>,
) -> Result<Option<String>, tokio_postgres::Error> {
    if is_message(shape) {
        let row = client.query_opt(DETACHED, &[&position.map(|position| position.created_at)]).await?;
        return row.map(|row| row.try_get(0)).transpose();
    }
    let known = known(client, cursor).await?;
    if known.first() != Some(&shape.root) {
        return Ok(None);
    }
    // What it is now: the shape may have been read a while ago.
    let family = descendants(client, shape.root, &shape.config.table.quoted()).await?;
    away::with_rows(client, shape, (&known, &family), position).await
}

/// A relation of the table that is new to a cursor with a position, or the table itself, if the cursor knows another: only a turn can
/// tell whether the cursor has passed rows of it, and has it known then, also where no row follows.
///
/// # Errors
/// The database's.
pub async fn unchecked(
    client: &impl GenericClient,
    shape: &Shape,
    cursor: &str,
    position: Option<&Position>,
) -> Result<Option<String>, tokio_postgres::Error> {
    let known = known(client, cursor).await?;
    let (Some((root, known)), Some(_)) = (known.split_first(), position) else { return Ok(None) };
    if *root != shape.root {
        return Ok(Some(shape.config.table.to_string()));
    }
    let family = descendants(client, shape.root, &shape.config.table.quoted()).await?;
    let Some(new) = family.iter().find(|oid| !known.contains(oid)) else { return Ok(None) };
    let row = client.query_one("SELECT $1::oid::regclass::text", &[new]).await?;
    Ok(Some(row.try_get(0)?))
}

/// What a cursor has read so far: the table's oid, then those of its relations; nothing before its first turn.
async fn known(client: &impl GenericClient, cursor: &str) -> Result<Vec<u32>, tokio_postgres::Error> {
    let sql = "SELECT COALESCE(relations, '{}') FROM outbox.cursor WHERE name = $1";
    let row = client.query_opt(sql, &[&cursor]).await?;
    row.map_or(Ok(Vec::new()), |row| row.try_get(0))
}

/// The table's own oid and its descendants', as the statement's snapshot shows them.
///
/// # Errors
/// The database's.
pub async fn read(client: &Client, root: u32, table: &str) -> Result<BTreeSet<u32>, tokio_postgres::Error> {
    descendants(client, root, table).await
}

async fn descendants(
    client: &impl GenericClient,
    root: u32,
    table: &str,
) -> Result<BTreeSet<u32>, tokio_postgres::Error> {
    let row = client.query_one(FAMILY, &[&root, &table, &Vec::<String>::new()]).await?;
    Ok(row.try_get::<_, Vec<u32>>(3)?.into_iter().collect())
}

/// The questions that [`super::fetch`] asks of the table in the snapshot that it reads with.
pub(super) struct Family<'a> {
    facts: Statement,
    detached: Option<Statement>,
    /// Partitions that the cursor does not know yet, where rows follow a position.
    news: Vec<u32>,
    after: Option<&'a Position>,
}

/// The answers.
pub(super) struct FamilyFacts {
    row: Row,
    detached: Option<Row>,
}

impl<'a> Family<'a> {
    pub(super) async fn prepare(reader: &Loan, request: &Request<'a>) -> Result<Self, tokio_postgres::Error> {
        let shape = request.shape;
        let detached = if is_message(shape) { Some(reader.prepare_cached(DETACHED).await?) } else { None };
        let news = match (request.known, request.after) {
            (Some(known), Some(_)) => shape.descendants.difference(known).copied().collect(),
            _ => Vec::new(),
        };
        Ok(Self {
            facts: reader.prepare_cached(if stands_alone(shape) { ALONE } else { FAMILY }).await?,
            detached,
            news,
            after: request.after,
        })
    }

    /// Whether there is something to be looked at before any row may be read.
    pub(super) fn has_news(&self) -> bool {
        !self.news.is_empty()
    }

    /// Takes the snapshot, and asks.
    pub(super) async fn ask(&self, reader: &Loan, request: &Request<'_>) -> Result<FamilyFacts, FetchError> {
        let config = &request.shape.config;
        let ordered = [&config.created_at, &config.id];
        let table: [&(dyn ToSql + Sync); 3] = [&request.shape.root, &request.texts.table, &ordered.as_slice()];
        let instant = self.after.map(|position| position.created_at);
        let detached = async {
            match &self.detached {
                Some(statement) => reader.query_opt(statement, &[&instant]).await,
                None => Ok(None),
            }
        };
        let (row, detached) = tokio::try_join!(biased; reader.query_one(&self.facts, &table), detached)?;
        Ok(FamilyFacts { row, detached })
    }

    /// Whether the table is what the horizon was computed for, all of it; gives the snapshot.
    pub(super) async fn judge(
        &self,
        reader: &Loan,
        request: &Request<'_>,
        facts: FamilyFacts,
    ) -> Result<String, FetchError> {
        let (shape, row) = (request.shape, &facts.row);
        let found: Option<u32> = row.try_get(1)?;
        if let Some(known) = request.root.filter(|known| found != Some(*known)) {
            return Err(FetchError::Replaced { table: shape.config.table.to_string(), found, known });
        }
        // A cursor that has known no table takes the one that is there, once the catalog has been read again.
        if found != Some(shape.root) {
            return Err(FetchError::FamilyChanged);
        }
        let ancestors: Vec<u32> = row.try_get(2)?;
        let descendants: BTreeSet<u32> = row.try_get::<_, Vec<u32>>(3)?.into_iter().collect();
        if ancestors.into_iter().collect::<BTreeSet<_>>() != shape.ancestors || descendants != shape.descendants {
            return Err(FetchError::FamilyChanged);
        }
        if row.try_get::<_, Vec<String>>(4)?.into_iter().collect::<BTreeSet<_>>() != shape.order_facts {
            return Err(FetchError::FamilyChanged);
        }
        if let Some(detached) = facts.detached {
            let position = request.after.map_or_else(|| "at the beginning".to_owned(), ToString::to_string);
            let partition = detached.try_get(0)?;
            return Err(FetchError::Detached { table: shape.config.table.to_string(), partition, position });
        }
        if let Some(position) = request.after {
            for new in &self.news {
                passed(reader, shape, *new, position).await?;
            }
        }
        Ok(row.try_get(0)?)
    }
}

/// Refuses a partition that is new to the cursor and holds rows that the cursor has passed.
async fn passed(reader: &Loan, shape: &Shape, partition: u32, position: &Position) -> Result<(), FetchError> {
    let facts = reader.query_one(include_str!("sql/family_passed.sql"), &[&partition]).await?;
    let name: String = facts.try_get(0)?;
    let within = match facts.try_get(1)? {
        None => return Ok(()), // it is gone again
        Some(true) => Within::Itself(&name),
        Some(false) => Within::Table { partition, constraint: facts.try_get(2)? },
    };
    let sql = shape.passed_sql(&within, After::of(Some(position)));
    let row = match &position.id {
        Some(id) => reader.query_one(&sql, &[&position.created_at, id]).await?,
        None => reader.query_one(&sql, &[&position.created_at]).await?,
    };
    if row.try_get(0)? {
        return Err(FetchError::AttachedBehind {
            table: shape.config.table.to_string(),
            partition: name,
            position: position.to_string(),
        });
    }
    Ok(())
}
