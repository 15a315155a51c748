//! Hints that rows have come: notifications of the trigger that `migrate up --notify` installs.
//!
//! A hint ends a group's pause, and nothing else: what there is to read is still found by looking. One that is lost, or a
//! listener that is, costs the rest of a pause and never a row. A listener that has just connected may have missed some:
//! then every relay looks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::database::{Error, Sessions};
use crate::pace::Backoff;

/// The channel; the payload is the table's oid.
const CHANNEL: &str = "outbox_relay";
const TOGETHER: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Debug)]
pub(in crate::relay) struct Hints {
    sessions: Sessions,
    waiting: Mutex<Vec<Weak<Sleeper>>>,
}

/// Whoever waits for rows of a table.
#[derive(Debug, Default)]
pub(in crate::relay) struct Sleeper {
    /// The table's oid; 0 while it is not known.
    table: AtomicU32,
    woken: Notify,
}

impl Sleeper {
    /// From now on it waits for rows of this table.
    pub(in crate::relay) fn waits_for(&self, table: u32) {
        self.table.store(table, Ordering::Relaxed);
    }

    /// Until the next hint; one that came since the last call counts.
    pub(in crate::relay) async fn woken(&self) {
        self.woken.notified().await;
    }
}

/// Until a hint comes; indefinitely when no relay listens. Under load hints come faster than looks can follow: those that come
/// within [`TOGETHER`] are answered together. A hint is `heard` before that time is over: whoever gives up waiting has it.
pub(in crate::relay) async fn hint(sleeper: Option<&Sleeper>, heard: &mut bool) {
    match sleeper {
        Some(sleeper) => {
            sleeper.woken().await;
            *heard = true;
            tokio::time::sleep(TOGETHER).await;
        }
        None => std::future::pending().await,
    }
}

impl Hints {
    /// Hears nothing before [`listen`] runs.
    pub(in crate::relay) fn new(sessions: Sessions) -> Self {
        Self { sessions, waiting: Mutex::default() }
    }

    /// Somebody who waits, until it is dropped.
    pub(in crate::relay) fn sleeper(&self) -> Arc<Sleeper> {
        let sleeper = Arc::new(Sleeper::default());
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|sleeper| sleeper.strong_count() > 0);
        waiting.push(Arc::downgrade(&sleeper));
        sleeper
    }

    /// Wakes those who wait for this table, or all.
    fn wake(&self, table: Option<u32>) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for sleeper in waiting.iter().filter_map(Weak::upgrade) {
            if table.is_none_or(|table| sleeper.table.load(Ordering::Relaxed) == table) {
                sleeper.woken.notify_one();
            }
        }
    }
}

/// Listens until `stop`; a connection that has ended is opened again.
pub(in crate::relay) async fn listen(hints: &Hints, stop: &CancellationToken) {
    let mut backoff = Backoff::new();
    while !stop.is_cancelled() {
        let error = tokio::select! {
            () = stop.cancelled() => return,
            heard = hear(hints, &mut backoff) => heard.err(),
        };
        let pause = backoff.failed(fastrand::f64());
        let error = error.map_or_else(|| "connection ended".to_owned(), |error| error.to_string());
        tracing::warn!(error, ?pause, "notifications are not heard: rows are found by polling until they are again");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.cancelled() => {}
        }
    }
}

async fn hear(hints: &Hints, backoff: &mut Backoff) -> Result<(), Error> {
    let mut ear = hints.sessions.listen(CHANNEL).await?;
    *backoff = Backoff::new();
    tracing::debug!("notifications are heard");
    hints.wake(None);
    while let Some(payload) = ear.next().await? {
        if let Ok(table) = payload.parse() {
            hints.wake(Some(table));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_hint_that_comes_as_the_pause_ends_is_not_forgotten() {
        let sleeper = Sleeper::default();
        sleeper.woken.notify_one();
        let mut heard = false;
        tokio::select! {
            biased;
            () = hint(Some(&sleeper), &mut heard) => {}
            () = std::future::ready(()) => {} // something else that ends the pause
        }
        assert!(heard);
    }
}
