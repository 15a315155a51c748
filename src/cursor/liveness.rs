//! Which processes of `run` live, and which of them looked at schedules a moment ago, as every role can read it.
//!
//! Each session of a process holds a lock of the process, which they share, for as long as it lasts: the server releases it with the
//! session, however that ends. So a process is told from another one with the same replica id, and nothing is written. A process
//! that is paused keeps its locks: until when it is there is said by another lock, whose key is an instant a few seconds ahead.

use crate::database::{Error, Session, quote_literal};
use crate::position::Timestamp;

/// The first half of keys that are instants; an arbitrary number of our own.
const INSTANTS: i32 = 0x6f75_7474;

/// A key that does not matter is NULL: these functions do nothing then.
const SAY_THERE: &str =
    "SELECT pg_catalog.pg_advisory_lock_shared($1, $2), pg_catalog.pg_advisory_unlock_shared($1, $3)";

/// An instant as half of a lock's key: whole seconds since 1970, up to the year 2106.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Second(i32);

impl Second {
    /// The next whole second.
    #[must_use]
    pub fn after(at: Timestamp) -> Self {
        let second = at.unix_micros().div_euclid(1_000_000).saturating_add(1);
        Self(u32::try_from(second).unwrap_or(u32::MAX).cast_signed())
    }
}

/// Says in a session, for as long as it lasts, that its process is there until one instant, and takes back another.
///
/// # Errors
/// The database's.
pub async fn say_there(session: &Session, until: Option<Second>, former: Option<Second>) -> Result<(), Error> {
    let statement = session.prepare_cached(SAY_THERE).await?;
    let [until, former] = [until, former].map(|second| second.map(|Second(second)| second));
    session.execute(&statement, &[&INSTANTS, &until, &former]).await?;
    Ok(())
}

/// A query for one value: until when the process of this row of `outbox.replica` is there; NULL when no session of it says so.
#[must_use]
pub fn there_until(replica: &str) -> String {
    let of_process = held("l.pid", &format!("l.objsubid = 1 AND {KEY} = {}", key(&format!("{replica}.instance"))));
    let instants = format!("l.classid::bigint = {INSTANTS} AND l.objsubid = 2 AND l.pid IN ({of_process})");
    held("pg_catalog.to_timestamp(pg_catalog.max(l.objid::bigint))", &instants)
}

/// What each session of a process runs when it begins, and after whatever resets it.
#[must_use]
pub fn hold(instance: &str) -> String {
    format!("SELECT pg_catalog.pg_advisory_lock_shared({});", key(&quote_literal(instance)))
}

/// A condition: the process of this row of `outbox.replica` has a session.
#[must_use]
pub fn is_live(replica: &str) -> String {
    format!("{} IN ({})", key(&format!("{replica}.instance")), held(KEY, "l.objsubid = 1"))
}

/// The key of a process's lock; `instance` is an expression.
fn key(instance: &str) -> String {
    format!("pg_catalog.hashtextextended('outbox-relay process ' || ({instance})::text, 0)")
}

/// The key of a lock `l` that has one of 64 bits.
const KEY: &str = "((l.classid::bigint << 32) | l.objid::bigint)";

/// These columns of the advisory locks `l` of this database that are held and meet a condition.
fn held(columns: &str, condition: &str) -> String {
    format!(
        "SELECT {columns} FROM pg_catalog.pg_locks AS l WHERE l.locktype = 'advisory' AND l.granted AND l.database = \
         (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()) AND {condition}"
    )
}
