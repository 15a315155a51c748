//! Which row cannot be read, when PostgreSQL cannot convert a value to UTF-8: its error names no row.
//!
//! Promise: a row is named only after it alone has failed to be read again; without that proof the error stays the
//! database's, and is retried.

use tokio_postgres::types::ToSql;

use super::document::Malformed;
use super::{FetchError, Request};
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
    if !cause.is_not_utf8() {
        return error;
    }
    match find(reader, request, last.or(request.after)).await {
        Ok(Some(row)) => FetchError::Unreadable(row),
        Ok(None) | Err(_) => error,
    }
}

/// Begins again as the reading did. To pass the row is to pass all that lies before it, so the table must be locked and whole,
/// as for every reading.
async fn begin(reader: &Loan, request: &Request<'_>) -> Result<bool, Error> {
    reader.batch_execute("ROLLBACK").await?;
    reader.batch_execute(&request.texts.begin).await?;
    let found = family::read(reader, request.shape.root, &request.texts.table).await?;
    Ok(found == request.shape.descendants)
}

async fn find(reader: &Loan, request: &Request<'_>, after: Option<&Position>) -> Result<Option<Unreadable>, Error> {
    if !begin(reader, request).await? {
        return Ok(None);
    }
    let next = request.shape.fetch_sql(&[], After::of(after));
    let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&request.horizon, &1_i64];
    if let Some(position) = after {
        parameters.push(&position.created_at);
        if let Some(id) = &position.id {
            parameters.push(id);
        }
    }
    let position = match reader.query_opt(&next, &parameters).await.map_err(Error::from) {
        Ok(None) => return Ok(None),
        Ok(Some(row)) => Position { created_at: row.try_get(0)?, id: row.try_get(1)? },
        Err(error) if error.is_not_utf8() => {
            if !begin(reader, request).await? {
                return Ok(None);
            }
            let bytes = "pg_catalog.encode(pg_catalog.convert_to(r.id, pg_catalog.getdatabaseencoding()), 'hex')";
            let row =
                reader.query_opt(&format!("SELECT r.at, {bytes} FROM ({next}) AS r (at, id)"), &parameters).await?;
            let row =
                row.map(|row| Ok::<_, Error>(Unreadable::Id { created_at: row.try_get(0)?, id: row.try_get(1)? }));
            return row.transpose();
        }
        Err(error) => return Err(error),
    };
    let again = reader.query_opt(&request.shape.row_sql(request.fields), &[&position.created_at, &position.id]).await;
    Ok(match again.map_err(Error::from) {
        Err(error) if error.is_not_utf8() => {
            let state = error.state().map_or_else(String::new, |state| state.code().to_owned());
            Some(Unreadable::Value { position, state })
        }
        Ok(_) | Err(_) => None,
    })
}
