//! What went wrong, for the log and for the cursor's status, where all replicas and operators see it.

use crate::cursor::{self, ErrorReport};
use crate::database::Error;
use crate::metrics::PublishError;
use crate::relay::engine::Engine;
use crate::sink::{Class, Failure};
use crate::source::Rule;
use crate::source::certainty::Certainty;
use crate::source::shape::Shape;

/// How a halt ends that follows from another rule.
pub(in crate::relay) fn restore(cursor: &str) -> String {
    format!(
        "If the change was a mistake, undo it. Then, or to accept the new rule: `outbox-relay cursor resume {cursor}`."
    )
}

/// That the horizon rule of a table has changed, and how sure it was, if that is known.
pub(in crate::relay) fn changed(shape: &Shape, before: Rule, was: Option<Certainty>) -> String {
    let (table, column, rule) = (&shape.config.table, &shape.config.created_at, shape.rule.as_str());
    let (before, sure) = (before.as_str(), shape.certainty.as_str());
    let now = match before == rule {
        true => format!("is {rule} as before, but {sure} now"),
        false => format!("was {before} and is {rule} now, {sure}"),
    };
    let fell = was.filter(|was| *was > shape.certainty);
    let fell = fell.map_or_else(String::new, |was| format!(", and was {} before", was.as_str()));
    let trigger = &shape.trigger;
    format!(
        "the default or trigger of {table}.{column} has changed, a partition's, or the right to read activity: the horizon rule \
         {now}{fell}{trigger}"
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
