//! Who has a cursor's lock.

use crate::cursor::control;
use crate::database::{Error, Session};
use crate::relay::inspect::facts::Lock;
use crate::relay::inspect::status::CursorStatus;

/// Who has the lock now and had it at the first look, too.
pub(super) async fn lock(session: &Session, name: &str, first: Option<&CursorStatus>) -> Result<Option<Lock>, Error> {
    let Some(before) = first.and_then(|cursor| cursor.holder.as_ref()).filter(|holder| holder.pid.is_some()) else {
        return Ok(None);
    };
    let now = control::list(session).await?.into_iter().find(|cursor| cursor.name == name).and_then(|now| now.pid);
    let Some(pid) = now.filter(|pid| Some(*pid) == before.pid) else { return Ok(None) };
    lock_of(session, &before.replica, pid).await
}

/// The prepared transaction that has the cursor's lock.
pub(in crate::relay::inspect) async fn prepared_lock(session: &Session, name: &str) -> Result<Option<String>, Error> {
    Ok(match session.query_opt(include_str!("../sql/diagnose_prepared.sql"), &[&name]).await? {
        Some(row) => row.try_get(0)?,
        None => None,
    })
}

/// The lock of this server process; none when the process has ended.
pub(in crate::relay::inspect) async fn lock_of(session: &Session, by: &str, pid: i32) -> Result<Option<Lock>, Error> {
    let sql = include_str!("../sql/diagnose_lock_age.sql");
    let Some(row) = session.query_opt(sql, &[&pid]).await? else { return Ok(None) };
    Ok(Some(Lock { by: by.to_owned(), pid, age_seconds: row.try_get(0)?, waits_for_standby: row.try_get(1)? }))
}
