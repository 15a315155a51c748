//! Requests as operators see them: those of the ledger, and rows of other relays that are claimed, wait, are unknown or dead.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::database::Error;
use crate::position::Timestamp;

const LIST: &str = "SELECT l.* FROM (SELECT c.relay, c.key, c.state, c.due_at, c.updated_at, c.claimed_by, c.attempts, c.error::text, \
     NULL::text AS dedupe_key, NULL::text AS user_id, NULL::text AS template, NULL::text AS provider_id, (c.state = 'unknown')::integer AS ambiguous \
     FROM outbox.claim AS c UNION ALL SELECT r.relay, ARRAY[r.request_id::text], \
     CASE WHEN r.status = 'failed' AND r.error ->> 'code' = 'discarded' THEN 'discarded' ELSE r.status END, r.due_at, r.updated_at, r.claimed_by, \
     r.attempts, r.error::text, r.dedupe_key, r.user_id, r.template, r.provider_id, r.ambiguous FROM outbox.request AS r \
     WHERE r.status <> 'completed' AND NOT (r.status = 'failed' AND COALESCE(r.error ->> 'code' = 'discarded', false)) \
     OR $2::text IN ('completed', 'discarded') OR $3::boolean) AS l \
     WHERE ($1::text IS NULL OR l.relay = $1 OR l.relay IN (SELECT k.name FROM outbox.cursor AS k WHERE k.relay = $1)) AND ($2::text IS NULL OR l.state = $2) AND (l.ambiguous > 0 OR NOT $3::boolean) \
     ORDER BY l.relay, l.due_at, l.key LIMIT $4";

const SHOW: &str = "SELECT r.request_id::text, pg_catalog.jsonb_build_object('request_id', r.request_id, 'dedupe_key', r.dedupe_key, \
     'holds_key', r.holds_key, 'dedupe_until', r.dedupe_until, 'user_id', r.user_id, 'template', r.template, 'parameters', r.parameters, \
     'relay', r.relay, 'status', \
     CASE WHEN r.status = 'failed' AND r.error ->> 'code' = 'discarded' THEN 'discarded' ELSE r.status END, 'due_at', r.due_at, 'not_before', r.not_before, 'attempts', r.attempts, 'ambiguous', r.ambiguous, \
     'claimed_by', r.claimed_by, 'claimed_at', r.claimed_at, 'expires_at', r.expires_at, 'first_tried_at', r.first_tried_at, \
     'body_bytes', pg_catalog.octet_length(r.body), 'body_hash', pg_catalog.encode(r.body_hash, 'hex'), 'provider_id', r.provider_id, \
     'reply', r.reply, 'error', r.error, 'created_at', r.created_at, 'updated_at', r.updated_at, 'completed_at', r.completed_at)::text \
     FROM outbox.request AS r WHERE r.request_id = $1::text::uuid OR r.dedupe_key = $2 AND r.holds_key LIMIT 1";

/// What was refused is rendered anew. What may have arrived stays as it is: the receiver may know its key.
const REDRIVE: &str = "WITH changed AS (UPDATE outbox.request AS r SET status = 'pending', due_at = pg_catalog.clock_timestamp(), \
     not_before = pg_catalog.clock_timestamp(), attempts = 0, \
     first_tried_at = NULL, token = NULL, expires_at = NULL, body = CASE WHEN r.ambiguous > 0 THEN r.body END, \
     body_hash = CASE WHEN r.ambiguous > 0 THEN r.body_hash END, updated_at = pg_catalog.clock_timestamp() \
     FROM pg_catalog.unnest($1::text[]) AS p(id) WHERE r.request_id = p.id::uuid AND r.status IN ('failed', 'unknown') \
     AND r.error ->> 'code' IS DISTINCT FROM 'discarded' RETURNING r.request_id, r.relay), \
     noted AS (INSERT INTO outbox.operation (operator, verb, cursor, detail) SELECT session_user || '/' || $2, 'request redrive', c.relay, \
     pg_catalog.jsonb_build_object('requests', pg_catalog.jsonb_agg(c.request_id)) FROM changed AS c GROUP BY c.relay) \
     SELECT c.request_id::text FROM changed AS c";

/// What to list.
#[derive(Clone, Copy, Debug)]
pub struct Filter<'a> {
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
pub struct Listed {
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
pub async fn list(client: &Client, filter: Filter<'_>) -> Result<Vec<Listed>, Error> {
    let parameters: [&(dyn ToSql + Sync); 4] = [&filter.relay, &filter.state, &filter.ambiguous, &filter.limit];
    let rows = client.query(LIST, &parameters).await?;
    Ok(rows.iter().map(listed).collect::<Result<_, _>>()?)
}

fn listed(row: &Row) -> Result<Listed, tokio_postgres::Error> {
    let ledger = match row.try_get::<_, Option<String>>(9)? {
        None => None,
        Some(user_id) => Some(Request {
            dedupe_key: row.try_get(8)?,
            user_id,
            template: row.try_get(10)?,
            provider_id: row.try_get(11)?,
        }),
    };
    Ok(Listed {
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

/// Makes failed and unknown requests pending again, and notes who did; the ids of those that were.
///
/// # Errors
/// The database's.
pub async fn redrive(client: &Client, ids: &[String], operator: &str) -> Result<Vec<String>, Error> {
    let rows = client.query(REDRIVE, &[&ids, &operator]).await?;
    Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
}
