//! Connections before they are needed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::relay::engine::Engine;

/// For no more turns than this: each costs PostgreSQL two sessions.
const TURNS: usize = 8;
/// Turns wait no longer than this for what is being opened.
const PATIENCE: Duration = Duration::from_secs(2);

impl Engine {
    /// Has the connections of one more turn opened, so that the first rows need not wait for that. One slot is left to those
    /// who cannot wait.
    pub(in crate::relay) fn warm(self: &Arc<Self>) {
        let turns = self.warmed.fetch_add(1, Relaxed) + 1;
        if turns > TURNS || turns >= self.slots.count() {
            return;
        }
        let engine = Arc::clone(self);
        tokio::spawn(async move {
            // Those of the turns before, too, so that this one's are not taken for them.
            let permits: Vec<_> = (0..turns).map_while(|_| engine.slots.try_permit()).collect();
            let opened = futures_util::future::try_join_all((0..permits.len() * 2).map(|_| engine.connection()));
            match tokio::time::timeout(PATIENCE, opened).await {
                Ok(Ok(_back_in_the_pool)) => {}
                Ok(Err(error)) => tracing::debug!(%error, "connections cannot be opened ahead of the first turns"),
                Err(_) => tracing::debug!("connections ahead of the first turns take too long"),
            }
        });
    }
}
