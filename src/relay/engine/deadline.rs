//! How long a call to the database may take.

use futures_util::FutureExt as _;

use crate::database::Error;
use crate::relay::engine::Engine;

/// Bounds a call by this process's clock, too: a server that hangs keeps its connection alive and never answers. What
/// is given up closes its connection, and the lock ends with it.
pub(in crate::relay) fn within<T>(
    engine: &Engine,
    call: impl Future<Output = Result<T, Error>>,
) -> impl Future<Output = Result<T, Error>> {
    // Not an async function: that would hold the call twice, and copy kilobytes for each statement.
    let limit = engine.call_deadline;
    tokio::time::timeout(limit, call).map(move |done| done.unwrap_or(Err(Error::Timeout(limit))))
}
