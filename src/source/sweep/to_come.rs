//! The rows that are still to come late: those that the sweep of a cursor's next turn finds, whether or not a turn is to run.
//!
//! Promise: cursor, rows and dead letters are those of one moment. A late row becomes a dead letter in the commit that stores the snapshot
//! which sees it, so a row that is not found here any more is among the dead letters from then on: ask for these afterwards. The other way
//! round a row may be in neither answer.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::{Asked, COLUMN, NEXT, is_swept};
use crate::database::{Error, Session};
use crate::late::LateRow;
use crate::position::Position;
use crate::source::range::{ANSWER, Bounds, within};
use crate::source::shape::{After, Shape};

/// At most so many are read between two places.
const MOST: usize = 100_000;

impl Shape {
    /// Those that are to come late for the cursor `$1` among the rows that meet `condition`: instant, id, transaction. No statement where
    /// late rows are not found by their transactions.
    fn to_come_sql(&self, condition: &str, tail: &str) -> Option<String> {
        let swept = is_swept(self.sweep?);
        let [_, id] = self.order();
        Some(format!(
            "SELECT {}, {id}::text, t.{COLUMN}::text FROM outbox.cursor AS c CROSS JOIN {} AS t WHERE c.name = $1 AND {swept} \
             AND {condition} AND NOT pg_catalog.pg_visible_in_snapshot(t.{COLUMN}, c.snapshot) AND {}{tail}",
            self.instant(),
            self.config.table.quoted(),
            self.unseen_is_late(&Asked::of_cursor(NEXT)),
        ))
    }
}

/// Those of these ids that are to come late for a cursor.
///
/// # Errors
/// The database's, for example that a text is no such id.
pub async fn of_ids(session: &Session, shape: &Shape, cursor: &str, ids: &[&str]) -> Result<Vec<LateRow>, Error> {
    let [_, id] = shape.order();
    let condition = format!("{id} = ANY ($2::text[]::{}[])", shape.id_type.sql());
    let Some(sql) = shape.to_come_sql(&condition, "").filter(|_| !ids.is_empty()) else { return Ok(Vec::new()) };
    ask(session, &sql, &[&cursor, &ids]).await
}

/// Those between two places that are to come late for a cursor, at most 100,000 of them.
///
/// # Errors
/// The database's.
pub async fn between(session: &Session, shape: &Shape, cursor: &str, bounds: &Bounds) -> Result<Vec<LateRow>, Error> {
    let Bounds { after, up_to } = bounds;
    let first = if after.id.is_some() { 4 } else { 3 };
    let upper = if up_to.id.is_some() { shape.up_to(first) } else { shape.below("<", first) };
    let condition = format!("{upper}{}", shape.beyond(After::of(Some(after)), 2));
    let Some(sql) = shape.to_come_sql(&condition, &format!(" LIMIT {MOST}")) else { return Ok(Vec::new()) };
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&cursor];
    for place in [after, up_to] {
        parameters.push(&place.created_at);
        parameters.extend(place.id.as_ref().map(|id| id as &(dyn ToSql + Sync)));
    }
    ask(session, &sql, &parameters).await
}

async fn ask(session: &Session, sql: &str, parameters: &[&(dyn ToSql + Sync)]) -> Result<Vec<LateRow>, Error> {
    let rows = within(ANSWER, session.query(sql, parameters)).await?;
    let late = |row: &Row| {
        let position = Position { created_at: row.try_get(0)?, id: Some(row.try_get(1)?) };
        Ok(LateRow { position, transaction: row.try_get(2)? })
    };
    Ok(rows.iter().map(late).collect::<Result<_, tokio_postgres::Error>>()?)
}
