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
    record(engine, ready, failure, message_id, true).await;
}

/// The relay tries again by itself.
pub(super) async fn retry(engine: &Engine, ready: &Ready, failure: &Failure, message_id: Option<&str>) {
    record(engine, ready, failure, message_id, false).await;
}

async fn record(engine: &Engine, ready: &Ready, failure: &Failure, message_id: Option<&str>, halted: bool) {
    ready.set_reported(true);
    let report = ErrorReport {
        class: failure.class.as_str(),
        code: &failure.code,
        message: &failure.message,
        hint: &failure.hint,
        message_id,
    };
    let fingerprint = halted.then_some(ready.fingerprint.as_str());
    let written = async {
        let session = engine.probe.session().await?;
        cursor::report(&session, &ready.config.name, &report, fingerprint).await
    };
    let written =
        tokio::time::timeout(engine.call_deadline, written).await.unwrap_or(Err(Error::Timeout(engine.call_deadline)));
    if let Err(error) = written {
        tracing::warn!(cursor = ready.config.name, %error, "cannot record the cursor's status");
    }
}
