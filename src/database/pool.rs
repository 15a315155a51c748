//! The pool of a process, and the rule that a connection whose work failed half-way is never given back to it.

use deadpool::managed;

use super::{Error, Session, Sessions};

/// Ends what statements of others may have left in a session; prepared statements stay.
const RESET: &str = "RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; CLOSE ALL; UNLISTEN *; DISCARD TEMP; \
     SELECT pg_catalog.pg_advisory_unlock_all();";

impl managed::Manager for Sessions {
    type Type = Session;
    type Error = Error;

    async fn create(&self) -> Result<Session, Error> {
        self.open().await
    }

    async fn recycle(&self, session: &mut Session, _: &managed::Metrics) -> managed::RecycleResult<Error> {
        if session.is_closed() {
            return Err(managed::RecycleError::message("connection has ended"));
        }
        if self.runs_user_sql {
            // A session that cannot be reset is closed, and another one is opened.
            let reset = format!("{RESET}{}", session.settings);
            let limit = self.limits.lock_kill;
            tokio::time::timeout(limit, session.batch_execute(&reset))
                .await
                .map_err(|_| managed::RecycleError::Backend(Error::Timeout(limit)))?
                .map_err(|error| managed::RecycleError::Backend(error.into()))?;
        }
        Ok(())
    }
}

/// The process's connections. A connection whose work failed half-way is closed, never given back: see
/// [`Fragile`].
pub type Pool = managed::Pool<Sessions>;
/// A connection on loan from the pool.
pub type Loan = managed::Object<Sessions>;

/// A pool of at most `size` connections.
///
/// # Errors
/// When the pool cannot be built.
pub fn pool(sessions: Sessions, size: usize) -> Result<Pool, managed::BuildError> {
    // The connection that was used last: what its server process has in its caches is what the next turn needs.
    Pool::builder(sessions).max_size(size).queue_mode(managed::QueueMode::Lifo).build()
}

/// A connection in the middle of its work. Dropped, it is closed, not given back: nobody shall find another's transaction
/// on it, and the locks of an abandoned one are free at once.
#[derive(Debug)]
pub struct Fragile(Option<Loan>);

impl Fragile {
    /// Work begins.
    #[must_use]
    pub const fn new(loan: Loan) -> Self {
        Self(Some(loan))
    }

    /// Work has come to a good end: the connection may be given back.
    pub fn give_back(mut self) {
        drop(self.0.take());
    }
}

impl std::ops::Deref for Fragile {
    type Target = Loan;

    fn deref(&self) -> &Loan {
        self.0.as_ref().expect("taken only by giving back, which consumes it")
    }
}

impl std::ops::DerefMut for Fragile {
    fn deref_mut(&mut self) -> &mut Loan {
        self.0.as_mut().expect("taken only by giving back, which consumes it")
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        if let Some(loan) = self.0.take() {
            drop(managed::Object::take(loan));
        }
    }
}

/// Takes a connection from the pool.
///
/// # Errors
/// See [`Error`]; `Pool` when the pool is closed.
pub async fn take(pool: &Pool) -> Result<Loan, Error> {
    pool.get().await.map_err(|error| match error {
        managed::PoolError::Backend(error) => error,
        other => Error::Pool(other.to_string()),
    })
}
