//! The database as the status page asks it: by two sessions of its own, which no turn waits for.

use async_trait::async_trait;

use super::board::Source;
use crate::database::{Limits, Sessions};
use crate::relay::Config;
use crate::relay::engine::Shared;
use crate::relay::inspect::overview::{Overview, overview};
use crate::source::watcher::Watcher;

/// See the module.
#[derive(Debug)]
pub struct Database {
    session: Shared,
    watcher: Watcher,
    relays: Vec<Config>,
}

impl Database {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(sessions: impl Fn() -> Sessions, limits: Limits, relays: Vec<Config>) -> Self {
        Self { watcher: Watcher::new(sessions(), limits.statement), session: Shared::silent(sessions()), relays }
    }
}

#[async_trait]
impl Source for Database {
    async fn look(&self) -> anyhow::Result<Overview> {
        let session = self.session.session().await?;
        overview(&session, &self.watcher, &self.relays).await
    }

    async fn rest(&self) {
        self.session.forget().await;
        self.watcher.forget().await;
    }
}
