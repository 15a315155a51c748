//! Which row cannot be read, when PostgreSQL cannot convert a value to UTF-8, or a local time to an instant: its error names no row.
//!
//! Promise: a row is named only after it alone has failed to be read again, or was found to have no instant; without that proof the error
//! stays the database's, and is retried.

use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::document::Malformed;
use super::{FetchError, Request, large};
use crate::database::{Error, Loan};
use crate::position::{Position, Timestamp};
use crate::source::family;
use crate::source::shape::After;

/// A row that cannot be read as messages need it, whatever else is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// No JSON can be made of it.
    #[error("row {}: {reason}", .position.id.as_deref().unwrap_or_default())]
    Malformed {
        /// Where it is.
        position: Position,
        /// Why.
        reason: Malformed,
    },
    /// A value of it cannot be converted to UTF-8.
    #[error("row {}: a value cannot be converted to UTF-8 ({state})", .position.id.as_deref().unwrap_or_default())]
    Value {
        /// Where it is.
        position: Position,
        /// PostgreSQL's error code.
        state: String,
    },
    /// It is larger than the relay reads, or than PostgreSQL can make a text of.
    #[error(
        "row {} takes {}{bytes} bytes, and max_row_bytes is {most}",
        .position.id.as_deref().unwrap_or_default(), if *.exact { "" } else { "at least " }
    )]
    Large {
        /// Where it is.
        position: Position,
        /// How long the text of what is read of it is, in bytes.
        bytes: u64,
        /// It is not longer than this. Of other rows PostgreSQL cannot say so much.
        exact: bool,
        /// The limit.
        most: usize,
    },
    /// PostgreSQL does not read it, alone, in the time of a call.
    #[error(
        "row {} alone is not read within {limit:?} (3/5 of turn.deadline), again and again",
        .position.id.as_deref().unwrap_or_default()
    )]
    Slow {
        /// Where it is.
        position: Position,
        /// So long it was waited for.
        limit: Duration,
    },
    /// Its id cannot be converted to UTF-8: no position and no message can name it.
    #[error(
        "the row of {created_at} whose id is x'{id}' in the database's encoding: the id cannot be converted to UTF-8"
    )]
    Id {
        /// When it was created.
        created_at: Timestamp,
        /// The bytes of its id, in hexadecimal digits.
        id: String,
    },
    /// Its local time is no instant in the zone: no position can be at it.
    #[error(
        "row {id} of {table} has {created_at} as its local time, which in the time zone {zone} is before the first instant that \
         PostgreSQL knows (4714-11-24 00:00 UTC BC)"
    )]
    NoInstant {
        /// The table.
        table: String,
        /// Its local time, as PostgreSQL prints it.
        created_at: String,
        /// The configured zone.
        zone: String,
        /// Its id.
        id: String,
    },
}

impl Unreadable {
    /// A row of which exactly so many bytes were to be read.
    #[must_use]
    pub fn large(position: Position, bytes: usize, most: usize) -> Self {
        Self::Large { position, bytes: u64::try_from(bytes).unwrap_or(u64::MAX), exact: true, most }
    }
}

/// Names the row after `last` that a page's `error` is about, if it is about one; else gives the error back. The
/// transaction has failed, so the row is looked for without it, and must fail once more by itself.
pub(super) async fn named(
    reader: &Loan,
    request: &Request<'_>,
    last: Option<&Position>,
    error: FetchError,
) -> FetchError {
    let FetchError::Database(cause) = &error else { return error };
    if cause.state() == Some(&SqlState::INVALID_TEXT_REPRESENTATION) && has_lost_label(reader, request).await {
        return FetchError::FamilyChanged;
    }
    let after = last.or(request.after);
    let found = if cause.is_not_utf8() {
        find(reader, request, after).await
    } else if cause.state() == Some(&SqlState::DATETIME_FIELD_OVERFLOW) {
        without_instant(reader, request, after).await
    } else {
        large::find(reader, request, after, cause).await
    };
    match found {
        Ok(Some(row)) => FetchError::Unreadable(row),
        Ok(None) | Err(_) => error,
    }
}

/// Whether an enum has lost a label that `where` names, or has gone: the catalog tells, when it is read again.
async fn has_lost_label(reader: &Loan, request: &Request<'_>) -> bool {
    let Some(labels) = request.shape.labels_sql() else { return false };
    if reader.batch_execute("ROLLBACK").await.is_err() {
        return false;
    }
    let looked = reader.batch_execute(&labels).await;
    looked.is_err_and(|error| error.code() == Some(&SqlState::INVALID_TEXT_REPRESENTATION))
}

/// Begins again as the reading did. To pass the row is to pass all that lies before it, so the table must be locked and whole,
/// as for every reading.
pub(super) async fn begin(reader: &Loan, request: &Request<'_>) -> Result<bool, Error> {
    reader.batch_execute("ROLLBACK").await?;
    reader.batch_execute(&request.texts.begin).await?;
    let found = family::read(reader, request.shape.root, &request.texts.table).await?;
    Ok(found == request.shape.descendants)
}

/// A position's parts, as parameters.
fn parts(after: Option<&Position>) -> impl Iterator<Item = &(dyn ToSql + Sync)> {
    let created_at = after.map(|position| &position.created_at as &(dyn ToSql + Sync));
    let id = after.and_then(|position| position.id.as_ref()).map(|id| id as &(dyn ToSql + Sync));
    created_at.into_iter().chain(id)
}

/// The statement for the row after a position, and its parameters.
fn asking<'a>(request: &'a Request<'_>, after: Option<&'a Position>) -> (String, Vec<&'a (dyn ToSql + Sync)>) {
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&request.horizon, &1_i64];
    parameters.extend(parts(after));
    (request.shape.fetch_sql(&[], After::of(after), None), parameters)
}

/// Where the row after a position is.
pub(super) async fn next_row(
    reader: &Loan,
    request: &Request<'_>,
    after: Option<&Position>,
) -> Result<Option<Position>, Error> {
    let (next, parameters) = asking(request, after);
    let Some(row) = reader.query_opt(&next, &parameters).await? else { return Ok(None) };
    Ok(Some(Position { created_at: row.try_get(0)?, id: row.try_get(1)? }))
}

/// The row after a position that has no instant. It is below every horizon.
async fn without_instant(
    reader: &Loan,
    request: &Request<'_>,
    after: Option<&Position>,
) -> Result<Option<Unreadable>, Error> {
    let Some(zone) = &request.shape.config.time_zone else { return Ok(None) };
    let Some(sql) = request.shape.without_instant_sql(After::of(after)) else { return Ok(None) };
    if !begin(reader, request).await? {
        return Ok(None);
    }
    let parameters: Vec<_> = parts(after).collect();
    let Some(row) = reader.query_opt(&sql, &parameters).await? else { return Ok(None) };
    let (created_at, id) = (row.try_get(0)?, row.try_get(1)?);
    Ok(Some(Unreadable::NoInstant {
        table: request.shape.config.table.to_string(),
        created_at,
        zone: zone.clone(),
        id,
    }))
}

async fn find(reader: &Loan, request: &Request<'_>, after: Option<&Position>) -> Result<Option<Unreadable>, Error> {
    if !begin(reader, request).await? {
        return Ok(None);
    }
    let position = match next_row(reader, request, after).await {
        Ok(None) => return Ok(None),
        Ok(Some(position)) => position,
        Err(error) if error.is_not_utf8() => {
            if !begin(reader, request).await? {
                return Ok(None);
            }
            let (next, parameters) = asking(request, after);
            let bytes = "pg_catalog.encode(pg_catalog.convert_to(r.id, pg_catalog.getdatabaseencoding()), 'hex')";
            let row =
                reader.query_opt(&format!("SELECT r.at, {bytes} FROM ({next}) AS r (at, id)"), &parameters).await?;
            let row =
                row.map(|row| Ok::<_, Error>(Unreadable::Id { created_at: row.try_get(0)?, id: row.try_get(1)? }));
            return row.transpose();
        }
        Err(error) => return Err(error),
    };
    let again = reader
        .query_opt(&request.shape.row_sql(request.fields, request.texts.most), &[&position.created_at, &position.id])
        .await;
    Ok(match again.map_err(Error::from) {
        Err(error) if error.is_not_utf8() => {
            let state = error.state().map_or_else(String::new, |state| state.code().to_owned());
            Some(Unreadable::Value { position, state })
        }
        Ok(_) | Err(_) => None,
    })
}
