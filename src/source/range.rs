//! All rows between two places, by their ids, for those who compare them with what was delivered.
//!
//! Promise: a row that is there from the beginning of the reading to its end is seen once. It reads page by page along the index,
//! each page in a short transaction of its own, so that a reading of an hour holds back neither VACUUM nor any horizon; a row that
//! comes, goes or moves meanwhile may be seen or not, and is to be looked at by itself.

use std::time::Duration;

use futures_util::{TryStreamExt as _, pin_mut};
use tokio_postgres::types::ToSql;

use super::shape::{After, Shape};
use super::sweep::COLUMN;
use crate::database::{Error, PATIENT, Session};
use crate::position::{Position, Timestamp};

/// Rows of a page.
const PAGE: usize = 100_000;
/// How long the server may take for an answer, or be silent while rows are to come.
pub const ANSWER: Duration = Duration::from_secs(90);
/// The same where it has to read the whole table first.
const LONG_ANSWER: Duration = Duration::from_secs(3_600);

/// The places that a reading lies between: after the first, up to and including the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// After it.
    pub after: Position,
    /// Up to it.
    pub up_to: Position,
}

impl Shape {
    fn range_sql(&self, bounds: &Bounds, transactions: bool, tail: &str) -> String {
        let [_, id] = self.order();
        // By the name that a late row's letter has, so that what either way finds is one letter.
        let transaction = match self.sweep.filter(|_| transactions) {
            Some(_) => format!("t.{COLUMN}::text"),
            None if transactions => "t.xmin::text".to_owned(),
            None => "''".to_owned(),
        };
        let columns = format!("{}, {id}::text, {transaction}", self.instant());
        self.span_sql(&columns, After::of(Some(&bounds.after)), After::of(Some(&bounds.up_to)), tail)
    }
}

/// A row that was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedRow<'a> {
    /// Its instant.
    pub created_at: Timestamp,
    /// Its id as text.
    pub id: &'a str,
    /// The transaction that has written it by its column `txid`, or else the one that has changed it last; empty unless it is asked for.
    pub transaction: &'a str,
}

/// How to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// By an index over `(created_at, id)`; without one the table is read once, as a whole.
    pub indexed: bool,
    /// With each row's transaction.
    pub transactions: bool,
}

/// Shows each row to `see`.
///
/// # Errors
/// The database's.
pub async fn each(
    session: &Session,
    shape: &Shape,
    bounds: &Bounds,
    way: Way,
    mut see: impl FnMut(PlacedRow<'_>),
) -> Result<(), Error> {
    let sql = |bounds: &Bounds, tail: &str| shape.range_sql(bounds, way.transactions, tail);
    if !way.indexed {
        session.execute(PATIENT, &[]).await?;
        page(session, shape, (bounds, &sql(bounds, "")), LONG_ANSWER, &mut see).await?;
        return Ok(());
    }
    let tail = format!(" ORDER BY {} LIMIT {PAGE}", shape.sorted(""));
    let mut bounds = bounds.clone();
    loop {
        let (rows, last) = page(session, shape, (&bounds, &sql(&bounds, &tail)), ANSWER, &mut see).await?;
        match last.filter(|_| rows == PAGE) {
            Some(last) => bounds.after = last,
            None => return Ok(()),
        }
    }
}

async fn page(
    session: &Session,
    shape: &Shape,
    (bounds, sql): (&Bounds, &str),
    limit: Duration,
    see: &mut impl FnMut(PlacedRow<'_>),
) -> Result<(usize, Option<Position>), Error> {
    within(ANSWER, session.batch_execute(&shape.begin_sql())).await?;
    let sql = session.prepare_cached(sql).await?;
    let mut parameters: Vec<&(dyn ToSql + Sync)> = Vec::new();
    for place in [&bounds.after, &bounds.up_to] {
        parameters.push(&place.created_at);
        parameters.extend(place.id.as_ref().map(|id| id as &(dyn ToSql + Sync)));
    }
    let rows = within(limit, session.query_raw(&sql, parameters)).await?;
    pin_mut!(rows);
    let (mut count, mut last) = (0, None);
    while let Some(row) = within(limit, rows.try_next()).await? {
        count += 1;
        see(PlacedRow { created_at: row.try_get(0)?, id: row.try_get(1)?, transaction: row.try_get(2)? });
        last = Some(row);
    }
    within(ANSWER, session.batch_execute("COMMIT")).await?;
    let place = |row: tokio_postgres::Row| Ok(Position { created_at: row.try_get(0)?, id: Some(row.try_get(1)?) });
    Ok((count, last.map(place).transpose().map_err(|error: tokio_postgres::Error| Error::from(error))?))
}

/// An answer of the server, or that there was none in time.
///
/// # Errors
/// The database's.
pub async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Error> {
    Ok(tokio::time::timeout(limit, answer).await.map_err(|_| Error::Timeout(limit))??)
}

/// The instant of the oldest row; none if there is no row.
///
/// # Errors
/// The database's.
pub async fn oldest(session: &Session, shape: &Shape) -> Result<Option<Timestamp>, Error> {
    let sql = shape.oldest_sql(After::Nothing);
    let row = within(ANSWER, session.query_opt(&sql, &[&Timestamp::INFINITY])).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// How many rows there are, counted up to `most`.
///
/// # Errors
/// The database's.
pub async fn count(session: &Session, shape: &Shape, bounds: &Bounds, most: i64) -> Result<u64, Error> {
    let (after, up_to) = (Some(&bounds.after), Some(&bounds.up_to));
    let counting = super::span::between(session, shape, (after, up_to), most);
    let counted = tokio::time::timeout(LONG_ANSWER, counting).await.map_err(|_| Error::Timeout(LONG_ANSWER))??;
    Ok(u64::try_from(counted.rows).unwrap_or(0))
}

/// A row that was looked up by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRow {
    /// Its id.
    pub id: String,
    /// Its instant.
    pub created_at: Timestamp,
    /// The number of its shard; none where the table is read as a whole.
    pub shard: Option<i64>,
    /// The transaction that has written it, where late rows are found by it.
    pub transaction: Option<String>,
}

/// The rows of these ids, wherever they are.
///
/// # Errors
/// The database's, for example that a text is no such id.
pub async fn of_ids(session: &Session, shape: &Shape, ids: &[&str]) -> Result<Vec<FoundRow>, Error> {
    let [_, id] = shape.order();
    let shard = shape.shard.as_ref().map_or_else(|| "NULL".to_owned(), |shard| shard.expression("t."));
    let transaction = shape.sweep.map_or_else(|| "NULL::text".to_owned(), |_| format!("t.{COLUMN}::text"));
    let sql = format!(
        "SELECT {id}::text, {}, ({shard})::bigint, {transaction} FROM {} AS t WHERE {id} = ANY ($1::text[]::{}[])",
        shape.instant(),
        shape.config.table.quoted(),
        shape.id_type.sql()
    );
    let rows = within(ANSWER, session.query(&sql, &[&ids])).await?;
    let found = |row: &tokio_postgres::Row| {
        let (id, created_at, shard) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        Ok(FoundRow { id, created_at, shard, transaction: row.try_get(3)? })
    };
    Ok(rows.iter().map(found).collect::<Result<_, tokio_postgres::Error>>()?)
}
