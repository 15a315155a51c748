//! What a table is made of, looked at in the snapshot that its rows are read with.

use std::collections::BTreeSet;

use tokio_postgres::{GenericClient, Row};

use super::fetch::{FetchError, Request};
use super::shape::{After, Shape, Within};
use crate::position::Position;

/// A partition of `outbox.message` on its way out with a place behind the position: its rows cannot be seen, whether or
/// not somebody needs them. It comes back, or goes for good, with the next pass of retention. Of tables of the user's own
/// nobody can say what was a partition.
///
/// # Errors
/// The database's.
pub async fn detached(
    client: &impl GenericClient,
    shape: &Shape,
    position: Option<&Position>,
) -> Result<Option<String>, tokio_postgres::Error> {
    let table = &shape.config.table;
    if (table.schema.as_str(), table.name.as_str()) != ("outbox", "message") {
        return Ok(None);
    }
    let sql = "SELECT name::text FROM outbox.message_partition \
               WHERE state <> 'attached' AND upper > COALESCE($1::timestamptz, '-infinity') ORDER BY upper LIMIT 1";
    let row = client.query_opt(sql, &[&position.map(|position| position.created_at)]).await?;
    row.map(|row| row.try_get(0)).transpose()
}

/// Whether the table is what the horizon was computed for, all of it; gives the snapshot.
pub(super) async fn inspect(
    transaction: &deadpool_postgres::Transaction<'_>,
    request: &Request<'_>,
    facts: &Row,
) -> Result<String, FetchError> {
    let shape = request.shape;
    let found: Option<u32> = facts.try_get(1)?;
    if let Some(known) = request.root.filter(|known| found != Some(*known)) {
        return Err(FetchError::Replaced { table: shape.config.table.to_string(), found, known });
    }
    // A cursor that has known no table takes the one that is there, once the catalogue has been read again.
    if found != Some(shape.root) {
        return Err(FetchError::FamilyChanged);
    }
    let ancestors: Vec<u32> = facts.try_get(2)?;
    let descendants: BTreeSet<u32> = facts.try_get::<_, Vec<u32>>(3)?.into_iter().collect();
    if ancestors.into_iter().collect::<BTreeSet<_>>() != shape.ancestors || descendants != shape.descendants {
        return Err(FetchError::FamilyChanged);
    }
    if let Some(partition) = detached(&**transaction, shape, request.after).await? {
        let position = request.after.map_or_else(|| "at the beginning".to_owned(), ToString::to_string);
        return Err(FetchError::Detached { table: shape.config.table.to_string(), partition, position });
    }
    if let (Some(known), Some(position)) = (request.known, request.after) {
        for new in descendants.difference(known) {
            passed(transaction, shape, *new, position).await?;
        }
    }
    Ok(facts.try_get(0)?)
}

/// Refuses a partition that is new to the cursor and holds rows that the cursor has passed.
async fn passed(
    transaction: &deadpool_postgres::Transaction<'_>,
    shape: &Shape,
    partition: u32,
    position: &Position,
) -> Result<(), FetchError> {
    let facts = transaction
        .query_one(
            "SELECT $1::oid::regclass::text, pg_catalog.has_table_privilege($1::oid, 'SELECT'), \
             pg_catalog.pg_get_partition_constraintdef($1::oid)",
            &[&partition],
        )
        .await?;
    let name: String = facts.try_get(0)?;
    let within = match facts.try_get(1)? {
        None => return Ok(()), // it is gone again
        Some(true) => Within::Itself(&name),
        Some(false) => Within::Table { partition, constraint: facts.try_get(2)? },
    };
    let sql = shape.passed_sql(&within, After::of(Some(position)));
    let row = match &position.id {
        Some(id) => transaction.query_one(&sql, &[&position.created_at, id]).await?,
        None => transaction.query_one(&sql, &[&position.created_at]).await?,
    };
    if row.get(0) {
        return Err(FetchError::AttachedBehind {
            table: shape.config.table.to_string(),
            partition: name,
            position: position.to_string(),
        });
    }
    Ok(())
}
