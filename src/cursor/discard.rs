//! Requests of the ledger that an operator gives up.
//!
//! Promise: only what provably is not with the receiver because of its last try, and with no replica, is given up: a pending or
//! a failed one. It becomes failed with the code `discarded`, keeps its dedupe key, and is noted in `outbox.operation`.

use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::database::Error;

const FOUND: &str = include_str!("sql/discard_found.sql");

/// What may have been sent once keeps its body: the receiver may know its key, and a caller may ask for it again.
const DISCARD: &str = include_str!("sql/discard.sql");

/// Which requests.
#[derive(Clone, Copy, Debug)]
pub enum Which<'a> {
    /// These.
    Ids(&'a [String]),
    /// Those of a relay that are not finished; perhaps only those of this status.
    Relay(&'a str, Option<&'a str>),
}

/// A request that an operator wants to give up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its id.
    pub id: String,
    /// Whom it is for.
    pub user_id: String,
    /// What it is.
    pub template: String,
    /// Its status; `unknown` also when its replica is gone, `discarded` when it was given up before.
    pub status: String,
    /// The code of its last error.
    pub code: Option<String>,
    /// The replica that had it last.
    pub by: Option<String>,
    /// How many tries had an outcome that is not known.
    pub ambiguous: i32,
}

/// Reads them, by due time.
///
/// # Errors
/// The database's.
pub async fn find(client: &Client, which: Which<'_>) -> Result<Vec<OpenRequest>, Error> {
    let (ids, relay, status) = match which {
        Which::Ids(ids) => (ids, None, None),
        Which::Relay(relay, status) => (&[][..], Some(relay), status),
    };
    let parameters: [&(dyn ToSql + Sync); 3] = [&ids, &relay, &status];
    let rows = client.query(FOUND, &parameters).await?;
    let found = rows.iter().map(|row| {
        Ok(OpenRequest {
            id: row.try_get(0)?,
            user_id: row.try_get(1)?,
            template: row.try_get(2)?,
            status: row.try_get(3)?,
            code: row.try_get(4)?,
            by: row.try_get(5)?,
            ambiguous: row.try_get(6)?,
        })
    });
    Ok(found.collect::<Result<_, tokio_postgres::Error>>()?)
}

/// Gives up those that are still pending or failed; gives their number.
///
/// # Errors
/// The database's.
pub async fn discard(client: &Client, ids: &[String], operator: &str) -> Result<i64, Error> {
    Ok(client.query_one(DISCARD, &[&ids, &operator]).await?.try_get(0)?)
}
