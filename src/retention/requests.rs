//! Requests that are completed or were given up: `outbox.prune_requests` has the rule.

use super::{Kept, OldRecords, What};
use crate::database::{Error, Session};

/// Old requests: how many may go, and what keeps the others.
pub(super) async fn look(session: &Session, seconds: f64) -> Result<OldRecords, Error> {
    let row = session.query_one(include_str!("sql/requests_look.sql"), &[&seconds]).await?;
    let kept = [
        (row.try_get(1)?, "dedupe_until has not passed"),
        (row.try_get(2)?, "dedupe_key without an end"),
        (row.try_get(3)?, "failed: a person decides"),
        (row.try_get(4)?, "unknown: a person decides"),
    ];
    let kept = kept.into_iter().filter_map(|(rows, held_by)| Kept::some(rows, held_by)).collect();
    Ok(OldRecords { what: What::Requests, of: "outbox.request".to_owned(), rows: row.try_get(0)?, kept })
}

/// Prunes at most `most`; gives how many.
pub(super) async fn prune(session: &Session, seconds: f64, most: i32) -> Result<i64, Error> {
    let sql = "SELECT outbox.prune_requests(pg_catalog.make_interval(secs => $1::float8), $2)";
    Ok(i64::from(session.query_one(sql, &[&seconds, &most]).await?.try_get::<_, i32>(0)?))
}
