//! Connections before they are needed.

use std::sync::Arc;

use super::Engine;

impl Engine {
    /// Opens the connections of so many turns, as far as there are slots: the first rows shall not wait for that.
    pub(in crate::relay) async fn warm(self: Arc<Self>, turns: usize) {
        let slots = self.slots.available_permits().min(turns);
        let opened = futures_util::future::try_join_all((0..slots).map(|_| self.slot(false)));
        tokio::select! {
            () = self.stop.cancelled() => {}
            opened = opened => if let Err(error) = opened {
                tracing::debug!(%error, "connections cannot be opened ahead of the first turns");
            },
        }
    }
}
