//! What went wrong with a stream's relay, for the log and for its cursor's status.

use std::sync::Arc;

use crate::cursor::{self, ErrorReport};
use crate::database::{Error, Session, sqlstate};
use crate::relay::engine::Engine;
use crate::relay::engine::report::write;
pub(in crate::relay) use crate::relay::engine::report::{changed, error, restore};
use crate::relay::setup::prepared::PreparedStream;
use crate::sink::{Class, Failure, named};
use crate::source::shape::Shape;

/// Records that the relay is well again, and logs the end of an outage when this has closed the circuit.
///
/// # Errors
/// The database's.
pub(in crate::relay) async fn clear(session: &Session, cursor: &str, why: &str) -> Result<(), Error> {
    if cursor::clear(session, cursor, None).await? {
        tracing::info!(cursor, "circuit closed: {why}");
    }
    Ok(())
}

/// The relay halts until an operator fixes it.
pub(in crate::relay) async fn halt(
    engine: &Engine,
    ready: &PreparedStream,
    failure: &Failure,
    message_id: Option<&str>,
) {
    halted(ready, failure, message_id);
    record(engine, ready, &error(failure, message_id), true, Some(false)).await;
}

/// Logs a halt whose report is written by the caller.
pub(in crate::relay) fn halted(ready: &PreparedStream, failure: &Failure, message_id: Option<&str>) {
    ready.status.set_reported(true);
    tracing::error!(
        cursor = ready.config.name,
        message_id,
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        "relay halted"
    );
}

/// The relay retries by itself; `circuit_open` says what the failure says of the sink, if anything.
pub(in crate::relay) async fn retry(
    engine: &Engine,
    ready: &PreparedStream,
    failure: &Failure,
    message_id: Option<&str>,
    circuit_open: Option<bool>,
) {
    record(engine, ready, &error(failure, message_id), false, circuit_open).await;
}

/// Looks at the table of these relays fail again and again, although there is a connection.
pub(in crate::relay) async fn blind<'a>(
    engine: &Engine,
    relays: impl Iterator<Item = &'a Arc<PreparedStream>>,
    error: &Error,
) {
    for ready in relays {
        let hint = named(sqlstate::meaning(error).hint, &ready.config.name);
        let failure = Failure::of(Class::Retry, &sqlstate::word(error), error.to_string(), hint);
        if !record(engine, ready, &self::error(&failure, None), false, None).await {
            return;
        }
    }
}

/// Relays whose rule is another than the one that their positions rest on stand still until an operator accepts it.
pub(in crate::relay) async fn rule_changed<'a>(
    session: &Session,
    relays: impl Iterator<Item = &'a Arc<PreparedStream>>,
    before: &Shape,
    shape: &Shape,
) -> Result<(), Error> {
    let message = changed(shape, before.rule, Some(before.certainty));
    for ready in relays {
        let name = &ready.config.name;
        let hint = restore(name);
        tracing::error!(cursor = name, error = message, hint, "relay halted");
        let (class, code) = (Class::Fatal.as_str(), "horizon_rule_changed");
        let report = ErrorReport { class, code, message: &message, hint: &hint, message_id: None };
        cursor::report(session, name, &report, Some(&ready.fingerprint), None).await?;
    }
    Ok(())
}

async fn record(
    engine: &Engine,
    ready: &PreparedStream,
    report: &ErrorReport<'_>,
    halted: bool,
    circuit_open: Option<bool>,
) -> bool {
    ready.status.set_reported(true);
    let fingerprint = halted.then_some(ready.fingerprint.as_str());
    write(engine, &ready.config.name, report, fingerprint, circuit_open).await
}
