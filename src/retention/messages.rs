//! `outbox.message`, a partition for each day: made ahead, and dropped when nobody needs them.
//!
//! The rules stand in functions of the schema. The relay's role drops by `outbox.prune_messages`, which takes the partition
//! away in one transaction and waits at most a second for the table. Its owner, who may run `prune`, detaches the partition
//! CONCURRENTLY, so that no writer waits; each step may be the last one that a killed `prune` made, and the next one, the
//! owner's or a replica's, goes on there.

use super::{Kept, OldRecords, What};
use crate::database::{Error, Session, quote_ident};
use crate::{relay, source};

/// How `outbox.message` is stored, and who may change that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageTable {
    pub(super) partitioned: bool,
    /// This role may run DDL on it.
    pub(super) owned: bool,
}

pub(super) async fn table(session: &Session) -> Result<MessageTable, Error> {
    let sql = include_str!("sql/messages_table.sql");
    let row = session.query_one(sql, &[]).await?;
    Ok(MessageTable { partitioned: row.try_get(0)?, owned: row.try_get(1)? })
}

/// Makes the partitions of today and of days ahead; gives the names of those that were missing.
pub(super) async fn extend(session: &Session, ahead: i32) -> Result<Option<String>, Error> {
    Ok(session.query_one("SELECT outbox.extend_messages($1)", &[&ahead]).await?.try_get(0)?)
}

fn found(of: String, rows: i64, kept: Vec<Kept>) -> OldRecords {
    OldRecords { what: What::Messages, of, rows, kept }
}

/// What says that the table has no partitions.
pub(super) fn plain() -> OldRecords {
    let why = "it has no partitions: SELECT outbox.partition_messages(), as its owner (docs/RETENTION.md)";
    found("outbox.message".to_owned(), 0, vec![Kept::all(why.to_owned())])
}

/// A relay of this table without a cursor: it is about to begin, and may begin with the oldest row.
pub(super) async fn beginner(session: &Session, relays: &[relay::Config]) -> Result<Option<OldRecords>, Error> {
    let of_messages = |relay: &&relay::Config| {
        let source::Config::Stream(stream) = &relay.source else { return false };
        stream.table.schema == "outbox" && stream.table.name == "message"
    };
    let names: Vec<&str> = relays.iter().filter(of_messages).map(|relay| relay.name.as_str()).collect();
    let sql = include_str!("sql/messages_beginner.sql");
    let Some(row) = session.query_opt(sql, &[&names]).await? else { return Ok(None) };
    let held_by = format!("relay {}, which has no cursor yet", row.try_get::<_, String>(0)?);
    Ok(Some(found("outbox.message".to_owned(), 0, vec![Kept::all(held_by)])))
}

/// The table itself, for what went wrong with it.
pub(super) fn whole(kept: Kept) -> OldRecords {
    found("outbox.message".to_owned(), 0, vec![kept])
}

/// A partition that was dropped.
pub(super) fn gone(old: Old) -> OldRecords {
    found(old.name, 1, Vec::new())
}

/// A partition that is kept.
pub(super) fn stays(old: Old, kept: Option<Kept>) -> OldRecords {
    found(old.name, 0, kept.into_iter().collect())
}

/// A partition that is old enough.
pub(super) struct Old {
    name: String,
    state: String,
}

/// The partitions whose last day ended so long ago, oldest first.
pub(super) async fn old(session: &Session, seconds: f64) -> Result<Vec<Old>, Error> {
    let rows = session.query(include_str!("sql/messages_old.sql"), &[&seconds]).await?;
    rows.iter().map(|row| Ok(Old { name: row.try_get(0)?, state: row.try_get(1)? })).collect()
}

/// Who needs it.
async fn held(session: &Session, name: &str) -> Result<Option<String>, Error> {
    Ok(session.query_one("SELECT outbox.message_held($1, true)", &[&name]).await?.try_get(0)?)
}

/// Each partition that is old enough: whether it may go, and else who needs it.
pub(super) async fn look(session: &Session, relays: &[relay::Config], seconds: f64) -> Result<Vec<OldRecords>, Error> {
    if !table(session).await?.partitioned {
        return Ok(vec![plain()]);
    }
    if let Some(beginner) = beginner(session, relays).await? {
        return Ok(vec![beginner]);
    }
    let mut all = Vec::new();
    for old in old(session, seconds).await? {
        let kept = held(session, &old.name).await?.and_then(|held_by| Kept::some(1, &held_by));
        all.push(found(old.name, i64::from(kept.is_none()), kept.into_iter().collect()));
    }
    Ok(all)
}

/// Drops one partition in one transaction; none when none is old enough, one that is kept when all are needed.
pub(super) async fn prune(session: &Session, seconds: f64) -> Result<Option<OldRecords>, Error> {
    let sql = "SELECT partition, held_by FROM outbox.prune_messages(pg_catalog.make_interval(secs => $1::float8))";
    let row = session.query_one(sql, &[&seconds]).await?;
    let (partition, held_by): (Option<String>, Option<String>) = (row.try_get(0)?, row.try_get(1)?);
    let Some(partition) = partition else { return Ok(None) };
    let kept: Vec<Kept> = held_by.and_then(|held_by| Kept::some(1, &held_by)).into_iter().collect();
    Ok(Some(found(partition, i64::from(kept.is_empty()), kept)))
}

/// Whether a partition that is old enough is on its way out, and still there: no cursor goes on below it.
pub(super) async fn missing(session: &Session, seconds: f64) -> Result<bool, Error> {
    Ok(old(session, seconds).await?.iter().any(|old| old.state != "attached"))
}

/// Drops one partition as the owner, so that no writer waits; gives who needs it.
pub(super) async fn drop_concurrently(session: &Session, old: &Old) -> Result<Option<String>, Error> {
    let name = quote_ident(&old.name);
    match old.state.as_str() {
        "attached" => {
            if let Some(held_by) = held(session, &old.name).await? {
                return Ok(Some(held_by));
            }
            let sql = format!("ALTER TABLE outbox.message DETACH PARTITION outbox.{name} CONCURRENTLY");
            if let Err(error) = session.batch_execute(&sql).await {
                return locked(session, &old.name, error).await.map(Some);
            }
        }
        "detaching" => {
            let sql = format!("ALTER TABLE outbox.message DETACH PARTITION outbox.{name} FINALIZE");
            if let Err(error) = session.batch_execute(&sql).await {
                return locked(session, &old.name, error).await.map(Some);
            }
        }
        _ => {}
    }
    // Nobody can write into it any more. What a transaction wrote that ended meanwhile, or a change to move back, puts it back.
    if let Some(held_by) = held(session, &old.name).await? {
        session.execute("SELECT outbox.attach_messages($1)", &[&old.name]).await?;
        return Ok(Some(held_by));
    }
    session.batch_execute(&format!("DROP TABLE outbox.{name}")).await?;
    Ok(None)
}

/// Who has the locks that were waited for in vain; another error stays one.
async fn locked(session: &Session, name: &str, error: tokio_postgres::Error) -> Result<String, Error> {
    if error.code() != Some(&tokio_postgres::error::SqlState::LOCK_NOT_AVAILABLE) {
        return Err(error.into());
    }
    let sql = include_str!("sql/messages_lockers.sql");
    Ok(session.query_one(sql, &[&name]).await?.try_get(0)?)
}
