//! Which row is larger than the relay reads, and by how much: asked of PostgreSQL, without the row.
//!
//! Promise: a row is named only after its own length was found to be above the limit, or after it alone could not be made into
//! a message; without that proof the error stays the database's, and is retried.

use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;

use super::Request;
use super::unreadable::{Unreadable, begin, next_row};
use crate::database::{Error, Loan};
use crate::message::Field;
use crate::position::Position;
use crate::source::shape::Shape;

/// Whether a statement may have failed at a row that is larger than its limit, or than PostgreSQL's own of 1 GiB for a value.
fn is_of_large_row(error: &Error) -> bool {
    error.state() == Some(&SqlState::INVALID_TEXT_REPRESENTATION) || error.is_server_limit()
}

/// The row after `after` if it is too large, after a page has failed with this error.
pub(super) async fn find(
    reader: &Loan,
    request: &Request<'_>,
    after: Option<&Position>,
    error: &Error,
) -> Result<Option<Unreadable>, Error> {
    if !is_of_large_row(error) || !begin(reader, request).await? {
        return Ok(None);
    }
    let Some(position) = next_row(reader, request, after).await? else { return Ok(None) };
    let wanted =
        WantedRow { shape: request.shape, fields: request.fields, most: request.texts.most, position: &position };
    let found = judge(reader, wanted, error, Some(request)).await?;
    Ok(found.filter(|_| position.id.is_some()))
}

/// A row, and what is read of it.
#[derive(Clone, Copy, Debug)]
pub struct WantedRow<'a> {
    /// The table.
    pub shape: &'a Shape,
    /// What of the row.
    pub fields: &'a [Field],
    /// The most bytes.
    pub most: usize,
    /// Where it is.
    pub position: &'a Position,
}

/// The row if it is too large, after a statement of its own, in no transaction, has failed with this error.
///
/// # Errors
/// The database's.
pub async fn too_large(reader: &Loan, wanted: WantedRow<'_>, error: &Error) -> Result<Option<Unreadable>, Error> {
    if is_of_large_row(error) { judge(reader, wanted, error, None).await } else { Ok(None) }
}

/// `request`: in its transaction, which fails with a statement, and is begun again.
async fn judge(
    reader: &Loan,
    wanted: WantedRow<'_>,
    error: &Error,
    request: Option<&Request<'_>>,
) -> Result<Option<Unreadable>, Error> {
    let WantedRow { shape, fields, most, position } = wanted;
    let [length, stored] = shape.length_sql(fields, most);
    let large = |bytes: i64, exact| {
        let bytes = u64::try_from(bytes).unwrap_or(0);
        Unreadable::Large { position: position.clone(), bytes, exact, most }
    };
    match asked(reader, &length, position).await {
        Ok(Some(bytes)) if usize::try_from(bytes).is_ok_and(|bytes| bytes > most) => Ok(Some(large(bytes, true))),
        // As small as it is, the server cannot make it: what it makes of the values is longer than they are.
        Ok(Some(bytes)) if error.is_server_limit() => {
            let parameters: [&(dyn ToSql + Sync); 2] = [&position.created_at, &position.id];
            let alone = reader.query_opt(&shape.row_sql(fields, most), &parameters).await.map_err(Error::from);
            let fails = alone.is_err_and(|alone| alone.state() == error.state());
            Ok(fails.then(|| large(bytes, false)))
        }
        Ok(_) => Ok(None),
        // Not even its length can be found out.
        Err(unknown) if unknown.is_server_limit() => {
            if let Some(request) = request
                && !begin(reader, request).await?
            {
                return Ok(None);
            }
            Ok(asked(reader, &stored, position).await?.map(|bytes| large(bytes, false)))
        }
        Err(error) => Err(error),
    }
}

async fn asked(reader: &Loan, sql: &str, position: &Position) -> Result<Option<i64>, Error> {
    let row = reader.query_opt(sql, &[&position.created_at, &position.id]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}
