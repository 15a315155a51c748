//! Outcomes that nobody knows: rows that were sent or not, and are never sent again (`at_most_once`); requests of the ledger
//! are counted with them.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::status::{self, ErrorReport};
use crate::database::{Error, Fragile, Session};
use crate::position::Timestamp;

/// A row can come here again after an operator has moved the position back; the list has it once, as it was last.
macro_rules! record {
    ($rows:literal) => {
        concat!(
            "INSERT INTO outbox.claim AS c (relay, key, due_at, state, token, attempts, claimed_by, error) ",
            $rows,
            " ON CONFLICT (relay, key) DO UPDATE SET due_at = excluded.due_at, state = excluded.state, token = excluded.token, \
             attempts = c.attempts + excluded.attempts, claimed_by = excluded.claimed_by, claimed_at = excluded.claimed_at, \
             expires_at = NULL, not_before = NULL, error = excluded.error, updated_at = pg_catalog.clock_timestamp()"
        )
    };
}

const RECORD: &str = record!(
    "VALUES ($1, ARRAY[$2::text], $3, 'unknown', $4, 1, $5, \
     $6::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()))"
);

const RECORD_IN_FLIGHT: &str = record!(
    "SELECT k.name, ARRAY[r.id], r.created_at, 'unknown', k.token ->> 'token', 0, k.token ->> 'by', \
     pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp(), 'class', 'retry', 'code', $3::text, \
     'message', 'Replica ' || (k.token ->> 'by') || ' ended, or lost its lock, while this row was in flight', 'hint', $2::text) \
     FROM outbox.cursor AS k, (SELECT DISTINCT ON (o.name, i.id) o.name, i.id, i.created_at FROM outbox.cursor AS o, \
     pg_catalog.jsonb_to_recordset(o.token -> 'rows') AS i(id text, created_at timestamptz) WHERE o.name = $1 \
     ORDER BY o.name, i.id, i.created_at DESC) AS r WHERE k.name = r.name"
);

const COUNT: &str = "SELECT (SELECT pg_catalog.count(*) FROM outbox.claim WHERE relay = $1 AND state = 'unknown') \
     + (SELECT pg_catalog.count(*) FROM outbox.request WHERE relay = $1 AND status = 'unknown')";

/// With the keys of the newest twenty.
const COUNTS: &str = "WITH unknown AS (SELECT relay, key, updated_at FROM outbox.claim WHERE state = 'unknown' \
     UNION ALL SELECT relay, ARRAY[request_id::text], updated_at FROM outbox.request WHERE status = 'unknown') \
     SELECT c.relay, pg_catalog.count(*), (SELECT pg_catalog.jsonb_agg(n.key)::text FROM \
     (SELECT k.key FROM unknown AS k WHERE k.relay = c.relay ORDER BY k.updated_at DESC, k.key LIMIT 20) AS n) \
     FROM unknown AS c GROUP BY c.relay";

/// The code of rows whose holder ended while they were in flight.
const HOLDER_LOST: &str = "holder_lost";

/// What to do about an unknown outcome.
pub const HINT: &str = "It is never sent again. See at the receiver whether it has arrived, then record that: \
     `outbox-relay request settle KEY --relay NAME --arrived`, or --lost";

/// A row whose outcome is not known.
#[derive(Clone, Debug)]
pub struct Unknown<'a> {
    /// Its id.
    pub id: &'a str,
    /// Its place.
    pub created_at: Timestamp,
    /// Why.
    pub error: ErrorReport<'a>,
}

/// Records one row, in the transaction that passes it.
pub(super) async fn record(
    loan: &Fragile,
    relay: &str,
    token: &str,
    unknown: &Unknown<'_>,
    by: &str,
) -> Result<(), Error> {
    let statement = loan.prepare_cached(RECORD).await?;
    let error = status::json(&unknown.error);
    let parameters: [&(dyn ToSql + Sync); 6] = [&relay, &unknown.id, &unknown.created_at, &token, &by, &error];
    loan.execute(&statement, &parameters).await?;
    Ok(())
}

/// Records the rows of the token that stands in the cursor; says how many.
pub(super) async fn record_in_flight(loan: &Fragile, cursor: &str) -> Result<u64, Error> {
    Ok(loan.execute(RECORD_IN_FLIGHT, &[&cursor, &HINT, &HOLDER_LOST]).await?)
}

/// How many outcomes of a relay are unknown.
///
/// # Errors
/// The database's.
pub async fn count(session: &Session, relay: &str) -> Result<i64, Error> {
    let statement = session.prepare_cached(COUNT).await?;
    Ok(session.query_one(&statement, &[&relay]).await?.try_get(0)?)
}

/// The outcomes of a relay that are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many there are.
    pub rows: i64,
    /// The keys of the newest twenty, as a JSON array of arrays.
    pub keys: Option<String>,
}

/// The same of every relay that has some.
///
/// # Errors
/// The database's.
pub async fn counts(client: &Client) -> Result<Vec<(String, Count)>, Error> {
    let rows = client.query(COUNTS, &[]).await?;
    let count = |row: &Row| Ok((row.try_get(0)?, Count { rows: row.try_get(1)?, keys: row.try_get(2)? }));
    Ok(rows.iter().map(count).collect::<Result<_, tokio_postgres::Error>>()?)
}
