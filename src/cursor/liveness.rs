//! Which processes of `run` live, as every role can read it.
//!
//! Each session of a process holds a lock of the process, which they share, for as long as it lasts: the server releases it with the
//! session, however that ends. So a process is told from another one with the same replica id, and nothing is written.

use crate::database::quote_literal;

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
const KEY: &str = "(l.classid::bigint << 32) | l.objid::bigint";

/// These columns of the advisory locks `l` of this database that are held and meet a condition.
fn held(columns: &str, condition: &str) -> String {
    format!(
        "SELECT {columns} FROM pg_catalog.pg_locks AS l WHERE l.locktype = 'advisory' AND l.granted AND l.database = \
         (SELECT d.oid FROM pg_catalog.pg_database AS d WHERE d.datname = pg_catalog.current_database()) AND {condition}"
    )
}
