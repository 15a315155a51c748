//! A partition that was detached, or a table that inherits no more, with rows that were not delivered.
//!
//! Whoever reads the table does not see them any more. They would be left out, and where it is attached again they would be behind the
//! position, so nothing is read before it is back, or gone for good, or an operator has accepted that.

use tokio_postgres::GenericClient;

use super::shape::{After, Shape};
use crate::position::Position;

/// The name of that relation where it still exists, and has a row after the position. Whether it has one cannot be told of a relation
/// that the relay's role may not read, or whose columns are others now: that is logged, and it counts as having none.
///
/// # Errors
/// The database's.
pub(super) async fn with_rows(
    client: &impl GenericClient,
    shape: &Shape,
    relation: u32,
    position: Option<&Position>,
) -> Result<Option<String>, tokio_postgres::Error> {
    let columns = [&shape.config.created_at, &shape.config.id];
    let facts = client.query_opt(include_str!("sql/away.sql"), &[&relation, &columns.as_slice()]).await?;
    let Some(facts) = facts else { return Ok(None) };
    let name: String = facts.try_get(0)?;
    if !facts.try_get::<_, bool>(1)? {
        let table = shape.config.table.to_string();
        let (role, partition): (String, &str) = (facts.try_get(2)?, &name);
        tracing::warn!(
            table,
            partition,
            hint = format!(
                "Look whether it holds rows that were not delivered before you drop it. GRANT SELECT ON {name} TO {role}; lets the \
                 relay look."
            ),
            "a partition was detached that this role cannot read: whether rows of it were not delivered is unknown"
        );
        return Ok(None);
    }
    let sql = shape.waiting_sql(&name, After::of(position));
    let row = match position {
        None => client.query_one(&sql, &[]).await?,
        Some(Position { created_at, id: None }) => client.query_one(&sql, &[created_at]).await?,
        Some(Position { created_at, id: Some(id) }) => client.query_one(&sql, &[created_at, id]).await?,
    };
    Ok(row.try_get::<_, bool>(0)?.then_some(name))
}
