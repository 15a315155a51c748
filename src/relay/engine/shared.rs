//! A session for what is asked beside turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use crate::database::{Error, Session, Sessions};
use crate::metrics;

/// The statements of many tasks wait for each other in one session: one that meets a locked table must not hold the others
/// up for long.
const NOBODY_WAITS: &str = "SET lock_timeout = '500ms'";
/// Every relay waits for the session: a server that does not answer must not hold them indefinitely.
const SETTING: Duration = Duration::from_secs(3);

/// A session that many tasks use at the same time, each statement on its own; opened again when it has ended.
#[derive(Debug)]
pub struct Shared {
    sessions: Sessions,
    state: Mutex<State>,
    /// Whether PostgreSQL counts as reachable by this one.
    tells: bool,
}

#[derive(Debug, Default)]
struct State {
    session: Option<Arc<Session>>,
    /// Since when none can be opened.
    away: Option<Instant>,
}

impl Shared {
    /// Opens nothing yet. Whether PostgreSQL can be reached is told by this session, which is opened again whenever it has ended.
    #[must_use]
    pub fn new(sessions: Sessions) -> Self {
        Self { sessions, state: Mutex::default(), tells: true }
    }

    /// One that is opened now and then: what it tells of PostgreSQL would stay long after.
    #[must_use]
    pub fn silent(sessions: Sessions) -> Self {
        Self { tells: false, ..Self::new(sessions) }
    }

    /// The session.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub async fn session(&self) -> Result<Arc<Session>, Error> {
        let mut state = self.state.lock().await;
        if let Some(session) = state.session.as_ref().filter(|session| !session.is_closed()) {
            return Ok(Arc::clone(session));
        }
        let opened = self.sessions.open().await;
        if self.tells {
            metrics::set_postgres_up(opened.is_ok());
        }
        if opened.is_err() {
            state.away.get_or_insert_with(Instant::now);
        } else if let Some(since) = state.away.take().filter(|_| self.tells) {
            tracing::info!(away = ?since.elapsed(), "connected to PostgreSQL again");
        }
        let session = Arc::new(opened?);
        let set = tokio::time::timeout(SETTING, session.batch_execute(NOBODY_WAITS)).await;
        set.map_err(|_| Error::Timeout(SETTING))??;
        state.session = Some(Arc::clone(&session));
        Ok(session)
    }

    /// Forgets the session: what it has prepared may be for a table that is no longer as it was.
    pub async fn forget(&self) {
        self.state.lock().await.session = None;
    }
}
