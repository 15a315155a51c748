//! Whether the trigger is there that wakes a relay.

use crate::database::{Error, Session};
use crate::migrate;
use crate::source::Stream;
use crate::source::finding::{Finding, Level};

/// An enabled trigger of the table `$1` (an oid) that calls the function after each inserting statement.
const TRIGGER: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_trigger AS t \
     JOIN pg_catalog.pg_proc AS p ON p.oid = t.tgfoid JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace \
     WHERE t.tgrelid = $1::oid AND n.nspname = 'outbox' AND p.proname = 'notify' AND t.tgenabled IN ('O', 'A') \
     AND t.tgtype & 71 = 4 AND t.tgqual IS NULL)";

pub(super) async fn trigger(session: &Session, root: u32, stream: &Stream) -> Result<Finding, Error> {
    if session.query_one(TRIGGER, &[&root]).await?.try_get(0)? {
        return Ok(Finding::new(Level::Ok, "notify_trigger", format!("inserts into {} wake the relay", stream.table)));
    }
    let message = format!(
        "[relay.poll] notify is on, and no trigger of {} notifies: rows are found by polling alone",
        stream.table
    );
    let sql = migrate::notify_triggers(&[(&stream.table.schema, &stream.table.name)]);
    Ok(Finding::new(Level::Warn, "notify_trigger_missing", message).sql(sql.trim_end().to_owned()))
}
