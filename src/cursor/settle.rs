//! Unknown outcomes that an operator has found out at the receiver.
//!
//! Promise: only an outcome that is unknown is settled, and every settlement is noted in `outbox.operation`. A request whose claim
//! has expired is one: its replica is gone, and where no other takes it up its outcome stays unknown.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::database::Error;
use crate::position::instant_sql;

/// What an operator has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleOutcome {
    /// The receiver has the message.
    Arrived,
    /// The receiver does not have it, and will not get it.
    Lost,
}

impl SettleOutcome {
    /// Its word in the audit table and in documents.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Arrived => "arrived",
            Self::Lost => "lost",
        }
    }
}

const STATUS: &str = include_str!("sql/settle_status.sql");

/// A row of this key; of several rows with this key, each at another instant, all whose outcome is unknown; or the one of this key
/// that is named by its instant, too.
const NAMED: &str = concat!(
    "SELECT c.key, c.state, ",
    instant_sql!("c.due_at"),
    " FROM outbox.claim AS c WHERE c.relay = $1 AND (c.key = $2::text[] \
     OR c.key = $2::text[] || ",
    instant_sql!("c.due_at"),
    " AND c.state = 'unknown' OR c.key || ",
    instant_sql!("c.due_at"),
    " = $2::text[] AND c.state = 'unknown') ORDER BY c.due_at, c.key"
);

/// A lost request keeps its body: the receiver may know its key. It cannot get twice what it does not have: for how long it remembers the
/// key counts from the next try. Its error says that a person has found it out: no receiver refused it.
const REQUESTS: &str = include_str!("sql/settle_requests.sql");

/// A lost row whose mark is in `outbox.sent` is due again.
const ROWS: &str = include_str!("sql/settle_rows.sql");

/// The relay and the status of a request of the ledger; none when there is no such request.
///
/// # Errors
/// The database's.
pub async fn status(client: &Client, id: &str) -> Result<Option<(String, String)>, Error> {
    let row = client.query_opt(STATUS, &[&id]).await?;
    row.map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).transpose()
}

/// A row of `outbox.claim`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRow {
    /// Its key.
    pub key: Vec<String>,
    /// Its state.
    pub state: String,
    /// When it was due; of a stream its `created_at`.
    pub at: String,
}

/// The rows of a relay in `outbox.claim` that this key can mean.
///
/// # Errors
/// The database's.
pub async fn named(client: &Client, relay: &str, key: &[String]) -> Result<Vec<NamedRow>, Error> {
    let rows = client.query(NAMED, &[&relay, &key]).await?;
    let named = |row: &Row| Ok(NamedRow { key: row.try_get(0)?, state: row.try_get(1)?, at: row.try_get(2)? });
    Ok(rows.iter().map(named).collect::<Result<_, tokio_postgres::Error>>()?)
}

/// Settles requests of the ledger: completed when they have arrived, else failed. How many were unknown and are settled.
///
/// # Errors
/// The database's.
pub async fn requests(client: &Client, ids: &[String], outcome: SettleOutcome, operator: &str) -> Result<i64, Error> {
    let parameters: [&(dyn ToSql + Sync); 4] = [&ids, &operator, &outcome.as_str(), &"settled_lost"];
    Ok(client.query_one(REQUESTS, &parameters).await?.try_get(0)?)
}

/// Takes a relay's rows off the list of unknown outcomes. How many were unknown and are settled.
///
/// # Errors
/// The database's.
pub async fn rows(
    client: &Client,
    relay: &str,
    keys: &[Vec<String>],
    outcome: SettleOutcome,
    operator: &str,
) -> Result<i64, Error> {
    let keys = serde_json::json!(keys).to_string();
    let parameters: [&(dyn ToSql + Sync); 4] = [&relay, &keys, &operator, &outcome.as_str()];
    Ok(client.query_one(ROWS, &parameters).await?.try_get(0)?)
}
