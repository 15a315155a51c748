//! Whether the trigger is there that wakes a relay.

use crate::database::{Error, Session};
use crate::migrate;
use crate::source::Stream;
use crate::source::finding::{Finding, Level};

/// An enabled trigger of the table `$1` (an oid) that calls the function after each inserting statement.
const TRIGGER: &str = include_str!("../sql/check_notify_trigger.sql");

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
