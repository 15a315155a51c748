//! How a process ends: the first signal drains, the second exits at once.

use std::time::Duration;

use futures_util::StreamExt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook_tokio::Signals;
use tokio_util::sync::CancellationToken;

use crate::telemetry;

/// Watches for SIGTERM, SIGINT, SIGQUIT and SIGHUP from now on; SIGQUIT and SIGHUP only if they are not ignored, as SIGHUP is
/// under `nohup`. Whether they are is known on Linux; elsewhere they count as not ignored.
///
/// The first ends `stop`, and `cut` when `grace` has passed since; the second exits with 128 + its number, without any
/// clean-up: PostgreSQL frees the locks. SIGHUP is never counted as one of the two.
///
/// # Errors
/// When the signals cannot be caught.
pub fn watch(stop: CancellationToken, cut: CancellationToken, grace: Duration) -> std::io::Result<()> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let signals = Signals::new(watched(&status))?;
    tokio::spawn(async move {
        let mut orders = Orders { signals, is_given: false };
        if let Some(signal) = orders.first().await {
            tracing::info!(signal, ?grace, "draining: running turns end, no new one begins");
            stop.cancel();
        }
        tokio::select! {
            () = tokio::time::sleep(grace) => {
                tracing::warn!(?grace, "the grace period is over: running turns are cut");
                cut.cancel();
            }
            signal = orders.second() => exit(signal),
        }
        exit(orders.second().await);
    });
    Ok(())
}

/// The orders to end. A terminal that closes may send SIGHUP twice, by the shell and by the system, and a service manager sends
/// it beside SIGTERM: it drains, and hurries nothing.
struct Orders {
    signals: Signals,
    /// Whether one was given that counts.
    is_given: bool,
}

impl Orders {
    /// The signal that drains.
    async fn first(&mut self) -> Option<i32> {
        let signal = self.signals.next().await?;
        self.is_given = signal != SIGHUP;
        Some(signal)
    }

    /// The one that ends the process at once. What was counted is kept when this is cancelled.
    async fn second(&mut self) -> Option<i32> {
        loop {
            let signal = self.signals.next().await?;
            if signal != SIGHUP && self.is_given {
                return Some(signal);
            }
            self.is_given |= signal != SIGHUP;
            tracing::info!(signal, "draining goes on; the second signal that is not SIGHUP exits immediately");
        }
    }
}

/// The signals to act on, by the text of `/proc/self/status`. Who starts a program with SIGHUP or SIGQUIT ignored wants it to
/// go on; SIGINT is acted on also where a shell's `&` had it ignored.
fn watched(status: &str) -> Vec<i32> {
    let unless_ignored = [SIGHUP, SIGQUIT].into_iter().filter(|signal| !is_ignored(status, *signal));
    [SIGTERM, SIGINT].into_iter().chain(unless_ignored).collect()
}

/// Whether `SigIgn`, a mask in hexadecimal digits, has this signal; false without a mask.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u128::from_str_radix(mask.trim(), 16).is_ok_and(|mask| (mask >> (signal - 1)) & 1 == 1)
}

fn exit(signal: Option<i32>) {
    if let Some(signal) = signal {
        telemetry::flush();
        std::process::exit(128 + signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched_with(mask: &str) -> Vec<i32> {
        watched(&format!("Name:\tname\nSigBlk:\tffffffffffffffff\nSigIgn:\t{mask}\nSigCgt:\tffffffffffffffff\n"))
    }

    #[test]
    fn hangup_and_quit_are_acted_on_unless_they_are_ignored() {
        let all = [SIGTERM, SIGINT, SIGHUP, SIGQUIT];
        assert_eq!(watched_with("0000000000001000"), all, "SIGPIPE, which every program in Rust ignores");
        assert_eq!(watched_with("0000000000001001"), [SIGTERM, SIGINT, SIGQUIT], "nohup");
        assert_eq!(watched_with("0000000000000006"), [SIGTERM, SIGINT, SIGHUP], "a shell's & without job control");
        assert_eq!(watched_with("00000000000000000000000000000001"), [SIGTERM, SIGINT, SIGQUIT], "128 signals");
    }

    #[test]
    fn without_a_mask_that_can_be_read_nothing_is_ignored() {
        for status in ["", "SigIgn:\n", "SigIgn:\tno mask\n", "SigBlk:\t0000000000000001\n"] {
            assert_eq!(watched(status).len(), 4, "{status:?}");
        }
    }
}
