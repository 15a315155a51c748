//! Resolved dead letters: `outbox.prune_dead_letters` has the rule.

use super::{Kept, OldRecords, What};
use crate::database::{Error, Session};

/// Old dead letters: how many may go, and which cursor has the others.
pub(super) async fn look(session: &Session, seconds: f64) -> Result<OldRecords, Error> {
    let rows = session.query(include_str!("sql/letters_look.sql"), &[&seconds]).await?;
    let mut found =
        OldRecords { what: What::DeadLetters, of: "outbox.dead_letter".to_owned(), rows: 0, kept: Vec::new() };
    for row in &rows {
        let cursor: String = row.try_get(0)?;
        found.rows += row.try_get::<_, i64>(1)?;
        found.kept.extend(Kept::some(row.try_get(2)?, &format!("open dead letters of cursor {cursor}")));
    }
    Ok(found)
}

/// Prunes at most `most`; gives how many.
pub(super) async fn prune(session: &Session, seconds: f64, most: i32) -> Result<i64, Error> {
    let sql = "SELECT outbox.prune_dead_letters(pg_catalog.make_interval(secs => $1::float8), $2)";
    Ok(i64::from(session.query_one(sql, &[&seconds, &most]).await?.try_get::<_, i32>(0)?))
}
