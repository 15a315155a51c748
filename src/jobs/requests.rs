//! Requests as operators see them: those of the ledger, and rows of other relays that are claimed, wait, are unknown or dead.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::database::Error;
use crate::position::Timestamp;

const LIST: &str = include_str!("sql/requests_list.sql");

const SHOW: &str = include_str!("sql/requests_show.sql");

/// What was refused is rendered again. What may have arrived stays as it is: the receiver may know its key. A request whose dedupe key
/// another has taken is left alone, as by `outbox.make_request`: both would be sent.
const REDRIVE: &str = include_str!("sql/requests_redrive.sql");

/// What to list.
#[derive(Clone, Copy, Debug)]
pub struct RequestFilter<'a> {
    /// Only of this cursor, or of all cursors of this relay.
    pub relay: Option<&'a str>,
    /// Only in this state. Completed and discarded requests are listed only when this says so, or [`Self::ambiguous`].
    pub state: Option<&'a str>,
    /// Only those that had an outcome that nobody knew, whatever became of them.
    pub ambiguous: bool,
    /// The most.
    pub limit: i64,
}

/// A row of `outbox.claim` or `outbox.request`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSummary {
    /// The relay.
    pub relay: String,
    /// The row's key; of a stream its id, of the ledger the request's.
    pub key: Vec<String>,
    /// `claimed`, `sending`, `waiting`, `unknown` or `dead`; of the ledger `pending`, `processing`, `completed`, `failed`,
    /// `discarded` or `unknown`.
    pub state: String,
    /// When it was due; of a stream its `created_at`.
    pub due_at: Timestamp,
    /// Since when it is so.
    pub at: Timestamp,
    /// The replica; none has had it yet.
    pub by: Option<String>,
    /// How often sending it has failed.
    pub attempts: i32,
    /// Why, as JSON.
    pub error: Option<String>,
    /// Of the ledger: what is sent once, whom it is for, what it is, and the receiver's id of it.
    pub ledger: Option<Request>,
    /// How many tries had an outcome that nobody knows.
    pub ambiguous: i32,
}

/// What only a request of the ledger has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is sent once, in the caller's words.
    pub dedupe_key: Option<String>,
    /// Whom it is for.
    pub user_id: String,
    /// What it is.
    pub template: String,
    /// The receiver's own id of the message.
    pub provider_id: Option<String>,
}

/// Lists them, by relay, due time and key.
///
/// # Errors
/// The database's.
pub async fn list(client: &Client, filter: RequestFilter<'_>) -> Result<Vec<RequestSummary>, Error> {
    let parameters: [&(dyn ToSql + Sync); 4] = [&filter.relay, &filter.state, &filter.ambiguous, &filter.limit];
    let rows = client.query(LIST, &parameters).await?;
    Ok(rows.iter().map(listed).collect::<Result<_, _>>()?)
}

fn listed(row: &Row) -> Result<RequestSummary, tokio_postgres::Error> {
    let ledger = match row.try_get::<_, Option<String>>(9)? {
        None => None,
        Some(user_id) => Some(Request {
            dedupe_key: row.try_get(8)?,
            user_id,
            template: row.try_get(10)?,
            provider_id: row.try_get(11)?,
        }),
    };
    Ok(RequestSummary {
        relay: row.try_get(0)?,
        key: row.try_get(1)?,
        state: row.try_get(2)?,
        due_at: row.try_get(3)?,
        at: row.try_get(4)?,
        by: row.try_get(5)?,
        attempts: row.try_get(6)?,
        error: row.try_get(7)?,
        ledger,
        ambiguous: row.try_get(12)?,
    })
}

/// All that is known of one request, as JSON, but not the body: by its id, or the one that holds a key.
///
/// # Errors
/// The database's.
pub async fn show(client: &Client, id: Option<&str>, key: Option<&str>) -> Result<Option<String>, Error> {
    let row = client.query_opt(SHOW, &[&id, &key]).await?;
    Ok(row.map(|row| row.try_get(1)).transpose()?)
}

/// Makes failed and unknown requests pending again, but none whose dedupe key another has taken, and notes who did; the ids of those that
/// were.
///
/// # Errors
/// The database's.
pub async fn redrive(client: &Client, ids: &[String], operator: &str) -> Result<Vec<String>, Error> {
    let rows = client.query(REDRIVE, &[&ids, &operator]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}
