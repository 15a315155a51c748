//! The session for what is asked beside turns.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use crate::database::{Error, Session, Sessions};
use crate::metrics;

/// The statements of many tasks wait for each other in one session: one that meets a locked table must not hold the others
/// up for long.
const NOBODY_WAITS: &str = "SET lock_timeout = '500ms'";
/// Everybody waits for the session: a server that does not answer must not hold them for ever.
const SETTING: Duration = Duration::from_secs(3);

/// A session that many tasks use at the same time, each statement on its own; opened anew when it has ended.
#[derive(Debug)]
pub struct Shared {
    sessions: Sessions,
    session: Mutex<Option<Arc<Session>>>,
}

impl Shared {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(sessions: Sessions) -> Self {
        Self { sessions, session: Mutex::new(None) }
    }

    /// The session.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn session(&self) -> Result<Arc<Session>, Error> {
        let mut guard = self.session.lock().await;
        if let Some(session) = guard.as_ref().filter(|session| !session.is_closed()) {
            return Ok(Arc::clone(session));
        }
        let opened = self.sessions.open().await;
        metrics::set_postgres_up(opened.is_ok());
        let session = Arc::new(opened?);
        let set = tokio::time::timeout(SETTING, session.batch_execute(NOBODY_WAITS)).await;
        set.map_err(|_| Error::Timeout(SETTING))??;
        *guard = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Forgets the session: what it has prepared may be for a table that is no longer as it was.
    pub async fn forget(&self) {
        *self.session.lock().await = None;
    }
}
