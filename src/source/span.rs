//! Rows by place: those between two positions, the one that comes next, the one of an id. Read without any horizon, for
//! operators who want to know what a move would mean.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::shape::{After, Shape};
use crate::database::{Error, Session};
use crate::position::{Position, Timestamp};

/// The rows after one position, up to and including another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// How many, at most the cap.
    pub rows: i64,
    /// There may be more than counted.
    pub capped: bool,
    /// The first of them.
    pub first: Option<Position>,
    /// The last of them.
    pub last: Option<Position>,
}

/// A position's parts, as parameters.
struct PositionParts {
    created_at: Option<Timestamp>,
    id: Option<String>,
}

impl PositionParts {
    fn of(position: Option<&Position>) -> Self {
        Self { created_at: position.map(|p| p.created_at), id: position.and_then(|p| p.id.clone()) }
    }

    fn parameters(&self) -> impl Iterator<Item = &(dyn ToSql + Sync)> {
        let created_at = self.created_at.as_ref().map(|at| at as &(dyn ToSql + Sync));
        created_at.into_iter().chain(self.id.as_ref().map(|id| id as &(dyn ToSql + Sync)))
    }
}

impl Shape {
    /// The rows that are delivered after one position and not after another: what is selected of them, and what follows.
    pub(super) fn span_sql(&self, select: &str, after: After, up_to: After, tail: &str) -> String {
        let first = match after {
            After::Nothing => 1,
            After::Instant => 2,
            After::Row => 3,
        };
        let bound = match up_to {
            After::Nothing => "false".to_owned(),
            After::Instant => self.below("<", first),
            After::Row => self.up_to(first),
        };
        let table = self.config.table.quoted();
        format!("SELECT {select} FROM {table} AS t WHERE {bound}{}{}{tail}", self.beyond(after, 1), self.and_matches())
    }
}

/// The rows after `after`, up to and including `up_to`, counted up to `cap`.
///
/// # Errors
/// The database's.
pub async fn between(
    session: &Session,
    shape: &Shape,
    (after, up_to): (Option<&Position>, Option<&Position>),
    cap: i64,
) -> Result<Span, Error> {
    if up_to.is_none() {
        return Ok(Span::default()); // nothing lies before every row
    }
    let (lower, upper) = (PositionParts::of(after), PositionParts::of(up_to));
    let parameters: Vec<_> = lower.parameters().chain(upper.parameters()).collect();
    let (after, up_to) = (After::of(after), After::of(up_to));
    let [_, id] = shape.order();
    let columns = format!("{}, {id}::text", shape.instant());
    let ascending = format!(" ORDER BY {} LIMIT 1", shape.sorted(""));
    let descending = format!(" ORDER BY {} LIMIT 1", shape.sorted(" DESC"));
    let first = session.query_opt(&shape.span_sql(&columns, after, up_to, &ascending), &parameters).await?;
    let Some(first) = first else { return Ok(Span::default()) };
    let last = session.query_opt(&shape.span_sql(&columns, after, up_to, &descending), &parameters).await?;
    let counted = shape.span_sql("", after, up_to, &format!(" ORDER BY {} LIMIT {cap}", shape.sorted("")));
    let count = format!("SELECT pg_catalog.count(*) FROM ({counted}) AS counted");
    let rows: i64 = session.query_one(&count, &parameters).await?.try_get(0)?;
    let last = last.as_ref().map(position).transpose()?;
    Ok(Span { rows, capped: rows >= cap, first: Some(position(&first)?), last })
}

/// The row that is delivered next after a position.
///
/// # Errors
/// The database's.
pub async fn next(session: &Session, shape: &Shape, after: Option<&Position>) -> Result<Option<Position>, Error> {
    let bound = PositionParts::of(after);
    let parameters: Vec<&(dyn ToSql + Sync)> =
        [&Timestamp::INFINITY as _, &1_i64 as _].into_iter().chain(bound.parameters()).collect();
    let row = session.query_opt(&shape.next_sql(After::of(after)), &parameters).await?;
    Ok(row.as_ref().map(position).transpose()?)
}

/// The rows of an id, two at most: where `created_at` is part of the key, there may be several.
///
/// # Errors
/// The database's, for example that the text is no such id, or that no index finds it in time.
pub async fn of_id(session: &Session, shape: &Shape, id: &str) -> Result<Vec<Position>, Error> {
    let [_, column] = shape.order();
    let sql = format!(
        "SELECT {}, {column}::text FROM {} AS t WHERE {column} = $1::text::{} LIMIT 2",
        shape.instant(),
        shape.config.table.quoted(),
        shape.id_type.sql()
    );
    let rows = session.query(&sql, &[&id]).await?;
    Ok(rows.iter().map(position).collect::<Result<_, _>>()?)
}

/// The newest row of all.
///
/// # Errors
/// The database's.
pub async fn newest(session: &Session, shape: &Shape) -> Result<Option<Position>, Error> {
    let row = session.query_opt(&shape.newest_sql(), &[&Timestamp::INFINITY]).await?;
    Ok(row.as_ref().map(position).transpose()?)
}

/// The row that stands so many rows below an instant; none when there are fewer.
///
/// # Errors
/// The database's.
pub async fn below(session: &Session, shape: &Shape, at: Timestamp, rows: i64) -> Result<Option<Position>, Error> {
    let sql = format!("{} OFFSET {rows}", shape.newest_sql());
    let row = session.query_opt(&sql, &[&at]).await?;
    Ok(row.as_ref().map(position).transpose()?)
}

fn position(row: &Row) -> Result<Position, tokio_postgres::Error> {
    Ok(Position { created_at: row.try_get(0)?, id: row.try_get(1)? })
}
