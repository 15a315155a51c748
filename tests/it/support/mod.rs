//! What tests share: one PostgreSQL cluster and one broker per test process, a database per test.

pub mod naive_relay;
pub mod servers;

use std::time::Duration;

pub use servers::{Database, broker, database};

/// Long enough for a busy machine; a test never waits for it unless it fails.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// Awaits a state, looking every 10 ms.
///
/// # Panics
/// When `deadline` has passed and the state has not come.
#[track_caller]
pub fn eventually(deadline: Duration, mut state: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let end = tokio::time::Instant::now() + deadline;
        while !state().await {
            assert!(tokio::time::Instant::now() < end, "{caller}: the awaited state has not come within {deadline:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
