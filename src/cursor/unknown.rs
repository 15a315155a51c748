//! Outcomes that nobody knows: rows that were sent or not, and are never sent again (`at_most_once`); requests of the ledger
//! are counted with them.

use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use super::status::{self, ErrorReport};
use crate::database::{Error, Fragile, Session};
use crate::position::{Timestamp, instant_sql};

/// A row can come here again after an operator has moved the position back; the list has it once, as it was last. Of rows that
/// have one id, each at another instant, the first is named by its id alone, every other by both.
macro_rules! record {
    ($rows:literal) => {
        concat!(
            "INSERT INTO outbox.claim AS c (relay, key, due_at, state, token, attempts, claimed_by, error) \
             SELECT r.relay, CASE WHEN p.due_at = r.at THEN ARRAY[r.id] \
             WHEN p.due_at IS NOT NULL OR r.nth > 1 OR EXISTS (SELECT FROM outbox.claim AS e WHERE e.relay = r.relay AND e.key = ARRAY[r.id, ",
            instant_sql!("r.at"),
            "]) THEN ARRAY[r.id, ",
            instant_sql!("r.at"),
            "] ELSE ARRAY[r.id] END, r.at, 'unknown', r.token, r.attempts, r.by, r.error \
             FROM (SELECT q.*, pg_catalog.row_number() OVER (PARTITION BY q.id ORDER BY q.at) AS nth FROM (",
            $rows,
            ") AS q) AS r LEFT JOIN outbox.claim AS p ON p.relay = r.relay AND p.key = ARRAY[r.id] \
             ON CONFLICT (relay, key) DO UPDATE SET due_at = excluded.due_at, state = excluded.state, token = excluded.token, \
             attempts = c.attempts + excluded.attempts, claimed_by = excluded.claimed_by, claimed_at = excluded.claimed_at, \
             expires_at = NULL, not_before = NULL, error = excluded.error, updated_at = pg_catalog.clock_timestamp()"
        )
    };
}

const RECORD: &str = record!(
    "SELECT $1::text AS relay, $2::text AS id, $3::timestamptz AS at, $4::text AS token, 1 AS attempts, $5::text AS by, \
     $6::text::jsonb || pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp()) AS error"
);

const RECORD_IN_FLIGHT: &str = record!(
    "SELECT DISTINCT ON (i.id, i.created_at) k.name AS relay, i.id, i.created_at AS at, k.token ->> 'token' AS token, \
     0 AS attempts, k.token ->> 'by' AS by, \
     pg_catalog.jsonb_build_object('at', pg_catalog.clock_timestamp(), 'class', 'retry', 'code', $3::text, \
     'message', 'Replica ' || (k.token ->> 'by') || ' ended, or lost its lock, while this row was in flight', 'hint', $2::text) AS error \
     FROM outbox.cursor AS k, pg_catalog.jsonb_to_recordset(k.token -> 'rows') AS i(id text, created_at timestamptz) WHERE k.name = $1"
);

/// Rows that this token reserved are listed as unknown, or will be.
const IS_LOST: &str = include_str!("sql/unknown_is_lost.sql");

const COUNT: &str = include_str!("sql/unknown_count.sql");

/// With the keys of the newest twenty.
const COUNTS: &str = include_str!("sql/unknown_counts.sql");

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

/// Whether the commit that was to settle the rows of this token, and was not answered, has not taken place.
///
/// # Errors
/// The database's.
pub async fn is_lost(session: &Session, cursor: &str, token: &str) -> Result<bool, Error> {
    Ok(session.query_one(IS_LOST, &[&cursor, &token, &HOLDER_LOST]).await?.try_get(0)?)
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
