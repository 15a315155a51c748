//! What went wrong, for the log and for the cursor's status, where all replicas and operators see it.

use super::Ready;
use super::engine::Engine;
use crate::cursor::{self, ErrorReport};
use crate::database::Error;
use crate::sink::Failure;

/// The relay stands still until somebody mends it.
pub(super) async fn halt(engine: &Engine, ready: &Ready, failure: &Failure, message_id: Option<&str>) {
    tracing::error!(
        cursor = ready.config.name,
        message_id,
        code = failure.code,
        error = failure.message,
        hint = failure.hint,
        "relay halted"
    );
    record(engine, ready, &error(failure, message_id), true, false).await;
}

/// The relay tries again by itself.
pub(super) async fn retry(
    engine: &Engine,
    ready: &Ready,
    failure: &Failure,
    message_id: Option<&str>,
    circuit_open: bool,
) {
    record(engine, ready, &error(failure, message_id), false, circuit_open).await;
}

/// A failure as operators see it.
pub(super) fn error<'a>(failure: &'a Failure, message_id: Option<&'a str>) -> ErrorReport<'a> {
    ErrorReport {
        class: failure.class.as_str(),
        code: &failure.code,
        message: &failure.message,
        hint: &failure.hint,
        message_id,
    }
}

async fn record(engine: &Engine, ready: &Ready, report: &ErrorReport<'_>, halted: bool, circuit_open: bool) {
    ready.set_reported(true);
    let fingerprint = halted.then_some(ready.fingerprint.as_str());
    let written = async {
        let session = engine.probe.session().await?;
        cursor::report(&session, &ready.config.name, report, fingerprint, circuit_open).await
    };
    let written =
        tokio::time::timeout(engine.call_deadline, written).await.unwrap_or(Err(Error::Timeout(engine.call_deadline)));
    if let Err(error) = written {
        tracing::warn!(cursor = ready.config.name, %error, "cannot record the cursor's status");
    }
}
