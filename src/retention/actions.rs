//! Actions that have ended: `outbox.prune_actions` has the rule.

use super::{Kept, OldRecords, What};
use crate::database::{Error, Session};

/// Old actions: how many may go, and how many stay because they have not ended.
pub(super) async fn look(session: &Session, seconds: f64) -> Result<OldRecords, Error> {
    let row = session.query_one(include_str!("sql/actions_look.sql"), &[&seconds]).await?;
    let kept = Kept::some(row.try_get(1)?, "not ended").into_iter().collect();
    Ok(OldRecords { what: What::Actions, of: "outbox.action".to_owned(), rows: row.try_get(0)?, kept })
}

/// Prunes at most `most`; gives how many.
pub(super) async fn prune(session: &Session, seconds: f64, most: i32) -> Result<i64, Error> {
    let sql = "SELECT outbox.prune_actions(pg_catalog.make_interval(secs => $1::float8), $2)";
    Ok(i64::from(session.query_one(sql, &[&seconds, &most]).await?.try_get::<_, i32>(0)?))
}
