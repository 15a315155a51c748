//! How a process ends: the first signal drains, the second exits at once.

use std::time::Duration;

use futures_util::StreamExt;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook_tokio::Signals;
use tokio_util::sync::CancellationToken;

use crate::telemetry;

/// Watches for SIGTERM and SIGINT from now on. The first ends `stop`, and `cut` when `grace` has passed since; the second
/// exits with 128 + its number, without any clean-up: PostgreSQL frees the locks.
///
/// # Errors
/// When the signals cannot be caught.
pub fn watch(stop: CancellationToken, cut: CancellationToken, grace: Duration) -> std::io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    tokio::spawn(async move {
        if let Some(signal) = signals.next().await {
            tracing::info!(signal, ?grace, "draining: running turns end, no new one begins");
            stop.cancel();
        }
        tokio::select! {
            () = tokio::time::sleep(grace) => {
                tracing::warn!(?grace, "the grace period is over: running turns are cut");
                cut.cancel();
            }
            signal = signals.next() => exit(signal),
        }
        exit(signals.next().await);
    });
    Ok(())
}

fn exit(signal: Option<i32>) {
    if let Some(signal) = signal {
        telemetry::flush();
        std::process::exit(128 + signal);
    }
}
