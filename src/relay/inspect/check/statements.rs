//! Whether statements can be run as this role.

use crate::database::{self, Session};
use crate::relay::Config;
use crate::relay::setup::naming;
use crate::sink::sql::SqlSink;
use crate::source::finding::{Finding, Level};

/// Whether the statement can be prepared as this role.
pub(super) async fn statement(session: &Session, sink: &SqlSink) -> Finding {
    match sink.inspect(session).await {
        Ok(()) => Finding::new(Level::Ok, "statement", "the statement can be prepared, and this role may run it"),
        Err(failure) => Finding::new(Level::Error, "statement_invalid", failure.message).setting(failure.hint),
    }
}

/// Whether the statements can be run as this role; what is wrong with the first that cannot.
pub(super) async fn prepare(
    session: &Session,
    relay: &Config,
    (statements, fix): (&[String], &str),
    findings: &mut Vec<Finding>,
) -> bool {
    for sql in statements {
        if let Err(error) = session.prepare(sql).await {
            let message = database::error::describe(&error);
            let fix = naming::hint(relay, &message, fix);
            findings.push(Finding::new(Level::Error, "column_unreadable", message).setting(fix));
            return false;
        }
    }
    true
}
