//! Whether a turn's snapshot shows the table that its horizon was computed for.

use std::collections::BTreeSet;

use tokio_postgres::Row;

use super::{FetchError, Request};
use crate::position::Position;
use crate::source::shape::{After, Shape, Within};

/// Whether the table is what the horizon was computed for; gives the snapshot.
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
