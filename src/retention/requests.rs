//! Requests that are completed or were given up: `outbox.prune_requests` has the rule.

use super::{Found, Kept, What};
use crate::database::{Error, Session};

/// Old requests: how many may go, and what keeps the others.
pub(super) async fn look(session: &Session, seconds: f64) -> Result<Found, Error> {
    let row = session
        .query_one(
            "SELECT pg_catalog.count(*) FILTER (WHERE done AND free), \
             pg_catalog.count(*) FILTER (WHERE done AND NOT free AND dedupe_until IS NOT NULL), \
             pg_catalog.count(*) FILTER (WHERE done AND NOT free AND dedupe_until IS NULL), \
             pg_catalog.count(*) FILTER (WHERE status = 'failed' AND NOT done), pg_catalog.count(*) FILTER (WHERE status = 'unknown') \
             FROM (SELECT status, dedupe_until, status = 'completed' OR status = 'failed' AND COALESCE(error ->> 'code' = 'discarded', false) AS done, \
             COALESCE(dedupe_until < pg_catalog.clock_timestamp(), dedupe_key IS NULL) AS free FROM outbox.request \
             WHERE CASE status WHEN 'completed' THEN completed_at ELSE updated_at END \
             < pg_catalog.clock_timestamp() - pg_catalog.make_interval(secs => $1::float8)) AS old",
            &[&seconds],
        )
        .await?;
    let kept = [
        (row.try_get(1)?, "dedupe_until has not passed"),
        (row.try_get(2)?, "dedupe_key without an end"),
        (row.try_get(3)?, "failed: a person decides"),
        (row.try_get(4)?, "unknown: a person decides"),
    ];
    let kept = kept.into_iter().filter_map(|(rows, held_by)| Kept::some(rows, held_by)).collect();
    Ok(Found { what: What::Requests, of: "outbox.request".to_owned(), rows: row.try_get(0)?, kept })
}

/// Prunes at most `most`; gives how many.
pub(super) async fn prune(session: &Session, seconds: f64, most: i32) -> Result<i64, Error> {
    let sql = "SELECT outbox.prune_requests(pg_catalog.make_interval(secs => $1::float8), $2)";
    Ok(i64::from(session.query_one(sql, &[&seconds, &most]).await?.try_get::<_, i32>(0)?))
}
