//! Waiting for a state that is looked for again and again.

use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(50);

/// Waits until something is so; `what` names it when that takes too long.
///
/// # Errors
/// When it is not so within `longest`, and those of `reached`.
pub async fn until(
    longest: Duration,
    what: &str,
    mut reached: impl AsyncFnMut() -> anyhow::Result<bool>,
) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !reached().await? {
        anyhow::ensure!(begun.elapsed() < longest, "not within {longest:?}: {what}");
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}
