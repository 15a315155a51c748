//! What went wrong, for the log and for the cursor's status, where all replicas and operators see it.

use std::sync::Arc;

use crate::cursor::{self, ErrorReport};
use crate::database::{Error, Session, sqlstate};
use crate::metrics::PublishError;
use crate::relay::Ready;
use crate::relay::engine::Engine;
use crate::sink::{Class, Failure};
use crate::source::Rule;
use crate::source::shape::Shape;

/// The relay stands still until somebody mends it.
pub(in crate::relay) async fn halt(engine: &Engine, ready: &Ready, failure: &Failure, message_id: Option<&str>) {
    halted(ready, failure, message_id);
    record(engine, ready, &error(failure, message_id), true, Some(false)).await;
}

/// Logs a halt whose report is written by the caller.
pub(in crate::relay) fn halted(ready: &Ready, failure: &Failure, message_id: Option<&str>) {
    ready.set_reported(true);
    tracing::error!(
        cursor = ready.config.name,
        message_id,
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        "relay halted"
    );
}

/// The relay tries again by itself; `circuit_open` says what the failure says of the sink, if anything.
pub(in crate::relay) async fn retry(
    engine: &Engine,
    ready: &Ready,
    failure: &Failure,
    message_id: Option<&str>,
    circuit_open: Option<bool>,
) {
    record(engine, ready, &error(failure, message_id), false, circuit_open).await;
}

/// Looks at the table of these relays fail again and again, although there is a connection.
pub(in crate::relay) async fn blind<'a>(engine: &Engine, relays: impl Iterator<Item = &'a Arc<Ready>>, error: &Error) {
    for ready in relays {
        let hint = sqlstate::meaning(error).hint.replace("NAME", &ready.config.name);
        let failure = Failure::of(Class::Retry, &sqlstate::word(error), error.to_string(), hint);
        if !record(engine, ready, &self::error(&failure, None), false, None).await {
            return;
        }
    }
}

/// Relays whose rule is another than the one that their positions rest on stand still until an operator accepts it.
pub(in crate::relay) async fn rule_changed<'a>(
    session: &Session,
    relays: impl Iterator<Item = &'a Arc<Ready>>,
    before: Rule,
    shape: &Shape,
) -> Result<(), Error> {
    let message = changed(shape, before);
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

/// How a halt ends that follows from another rule.
pub(in crate::relay) fn restore(cursor: &str) -> String {
    format!(
        "If the change was a mistake, undo it. Then, or to accept the new rule: `outbox-relay cursor resume {cursor}`."
    )
}

/// That the horizon rule of a table has changed.
pub(in crate::relay) fn changed(shape: &Shape, before: Rule) -> String {
    let (table, column, rule) = (&shape.config.table, &shape.config.created_at, shape.rule.as_str());
    let (before, sure) = (before.as_str(), shape.certainty.as_str());
    format!(
        "the default or trigger of {table}.{column} has changed, a partition's, or the right to read activity: the horizon rule was {before} and is {rule} now, {sure}"
    )
}

/// A failure as operators see it.
pub(in crate::relay) fn error<'a>(failure: &'a Failure, message_id: Option<&'a str>) -> ErrorReport<'a> {
    ErrorReport {
        class: failure.class.as_str(),
        code: &failure.code,
        message: &failure.message,
        hint: &failure.hint,
        message_id,
    }
}

async fn record(
    engine: &Engine,
    ready: &Ready,
    report: &ErrorReport<'_>,
    halted: bool,
    circuit_open: Option<bool>,
) -> bool {
    ready.set_reported(true);
    let fingerprint = halted.then_some(ready.fingerprint.as_str());
    write(engine, &ready.config.name, report, fingerprint, circuit_open).await
}

/// Writes into the cursor's status; whether it could be. See [`cursor::report`].
pub(in crate::relay) async fn write(
    engine: &Engine,
    name: &str,
    report: &ErrorReport<'_>,
    halted: Option<&str>,
    circuit_open: Option<bool>,
) -> bool {
    let written = async {
        let session = engine.probe.session().await?;
        cursor::report(&session, name, report, halted, circuit_open).await
    };
    let written =
        tokio::time::timeout(engine.call_deadline, written).await.unwrap_or(Err(Error::Timeout(engine.call_deadline)));
    if let Err(error) = &written {
        tracing::warn!(cursor = name, %error, "cannot record the cursor's status");
    }
    written.is_ok()
}

/// What a failure counts as.
pub(in crate::relay) fn counted(failure: &Failure) -> PublishError {
    match failure.class {
        _ if failure.ambiguous => PublishError::Ambiguous,
        Class::Retry => PublishError::Retry,
        Class::Poison => PublishError::Poison,
        Class::Fatal => PublishError::Fatal,
    }
}
