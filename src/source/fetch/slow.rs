//! Which row takes longer to be read than a single call may, when readings have ended so again and again.
//!
//! Promise: a row is named only after PostgreSQL has found its place quickly and then, under the table's lock, has not read this one row
//! alone in time. A server that is slow, or a lock that is waited for, names none.

use std::time::{Duration, Instant};

use tokio_postgres::error::SqlState;

use super::unreadable::{Unreadable, begin, next_row};
use super::{FetchError, Request};
use crate::database::{Error, Loan};

/// The place of a row, which takes no value of it, is found in this part of the limit by a server that is not slow itself.
const QUICK: u32 = 10;

/// The row after the position, if it alone is not read within `limit`. The connection may be at it still.
pub(super) async fn find(
    reader: &Loan,
    request: &Request<'_>,
    limit: Duration,
) -> Result<Option<Unreadable>, FetchError> {
    if !begin(reader, request).await? {
        return Err(FetchError::FamilyChanged);
    }
    let begun = Instant::now();
    let place = next_row(reader, request, request.after).await;
    let is_quick = begun.elapsed() < limit / QUICK;
    let Ok(Some(position)) = place else {
        reader.batch_execute("ROLLBACK").await?;
        return Ok(None);
    };
    let sql = request.shape.row_sql(request.fields, request.texts.most);
    let alone = tokio::time::timeout(limit, reader.query_opt(&sql, &[&position.created_at, &position.id])).await;
    let is_late = match &alone {
        Err(_) => true,
        Ok(read) => read.as_ref().is_err_and(|error| error.code() == Some(&SqlState::QUERY_CANCELED)),
    };
    match alone {
        _ if is_late && is_quick => Ok(Some(Unreadable::Slow { position, limit })),
        Err(_) => Err(FetchError::Late(limit)),
        // Whatever else is wrong with it is found out as of every row.
        Ok(_) => {
            reader.batch_execute("ROLLBACK").await.map_err(Error::from)?;
            Ok(None)
        }
    }
}
