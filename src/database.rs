//! Connections to PostgreSQL: TLS, session settings, the pool, and how long each may last.
//!
//! Promise: every connection handed out has the settings that the relay's rules rest on (see [`Limits`]), talks to a
//! primary, and tells at once when it ends, so that a holder never publishes on after its lock is gone.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use deadpool_postgres::ClientWrapper;
use futures_util::future::try_join_all;
use tokio_postgres::SimpleQueryMessage;
use tokio_util::sync::CancellationToken;

mod auth;
pub mod codec;
mod config;
mod connect;
pub mod error;
pub mod listen;
mod password;
mod pool;
mod refusal;
pub mod sqlstate;

pub use auth::Method;
pub use config::{Config, TlsMode};
pub use error::Error;
pub use password::{PasswordCommand, PasswordSource};
pub use pool::{Fragile, Loan, Pool, pool, take};

pub use crate::tls::IdentityFiles;

/// Ends the session's time limits: it waits for others' transactions, and its statements take as long as they take.
pub(crate) const PATIENT: &str = include_str!("database/sql/patient.sql");

/// How long a session may be silent or busy, set for each session and read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest single statement.
    pub statement: Duration,
    /// When PostgreSQL ends a silent holder: idle in a transaction, or not taking what is sent to it.
    pub lock_kill: Duration,
}

/// Which server a session is on.
///
/// While a name or a proxy moves from one server to another, the sessions of one replica can be on both. What a scan of one
/// server's writers says is nothing about the rows of the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// The cluster's system identifier, which a promoted standby shares with its former primary.
    pub system: String,
    /// When its postmaster started, in microseconds since the Unix epoch: no two servers share it.
    pub started: i64,
}

impl Server {
    /// Whether a session on `other` may work with what was learned on this one.
    ///
    /// # Errors
    /// [`Error::TwoServers`] when it is another server.
    pub fn same_as(&self, other: &Self) -> Result<(), Error> {
        if self == other { Ok(()) } else { Err(Error::TwoServers { one: self.to_string(), other: other.to_string() }) }
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let started = crate::position::Timestamp::from_unix_micros(self.started);
        write!(f, "system {} started at {started}", self.system)
    }
}

/// One connection, ready for use.
#[derive(Debug)]
pub struct Session {
    client: ClientWrapper,
    closed: CancellationToken,
    /// The server process.
    pub pid: i32,
    /// The server that the process belongs to.
    pub server: Arc<Server>,
    /// The statements that made its settings, and what is run after them.
    settings: String,
}

impl Session {
    /// Ends when the connection does, for whatever reason.
    #[must_use]
    pub fn closed(&self) -> CancellationToken {
        self.closed.clone()
    }
}

impl std::ops::Deref for Session {
    type Target = ClientWrapper;

    fn deref(&self) -> &ClientWrapper {
        &self.client
    }
}

impl std::ops::DerefMut for Session {
    fn deref_mut(&mut self) -> &mut ClientWrapper {
        &mut self.client
    }
}

/// Opens sessions; the pool's manager.
#[derive(Debug)]
pub struct Sessions {
    config: Config,
    limits: Limits,
    application_name: String,
    planned_freely: bool,
    runs_user_sql: bool,
    /// How long opening one may take, besides the limits of its steps.
    opened_within: Option<Duration>,
    /// Run in each, after its settings.
    first: String,
}

impl Sessions {
    /// Sessions that call themselves `application_name`.
    #[must_use]
    pub fn new(config: Config, limits: Limits, application_name: String) -> Self {
        Self {
            config,
            limits,
            application_name,
            planned_freely: false,
            runs_user_sql: false,
            opened_within: None,
            first: String::new(),
        }
    }

    /// Without the planner settings that keep turns on the index `(created_at, id)`: other statements are slow under them.
    #[must_use]
    pub fn planned_freely(mut self) -> Self {
        self.planned_freely = true;
        self
    }

    /// Opened within so long, from the name's look-up to the last setting, or not at all.
    #[must_use]
    pub fn opened_within(mut self, limit: Duration) -> Self {
        self.opened_within = Some(limit);
        self
    }

    /// With a statement that each runs when its settings are made, and again after they were reset.
    #[must_use]
    pub fn with_first(mut self, statement: String) -> Self {
        self.first = statement;
        self
    }

    /// Whether the user's SQL runs on them: statements of sinks, queries of schedules, triggers that marks fire. What it leaves
    /// in a session (a setting, a role, an advisory lock) ends before the session is used again.
    #[must_use]
    pub fn with_user_sql(mut self, runs: bool) -> Self {
        self.runs_user_sql = runs;
        self
    }

    /// Opens a session that hears the notifications of `channel`.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn listen(&self, channel: &str) -> Result<listen::Ear, Error> {
        listen::open(&self.config, &self.limits, &self.application_name, channel)
            .await
            .map_err(|error| self.named(error))
    }

    /// How many turns may run at the same time; see [`Config::slots`].
    #[must_use]
    pub fn slots(&self) -> usize {
        self.config.slots()
    }

    /// What they connect to, for messages.
    #[must_use]
    pub fn target(&self) -> String {
        self.config.target()
    }

    /// What they show for themselves, if the server asks.
    #[must_use]
    pub fn identity(&self) -> Option<&IdentityFiles> {
        self.config.identity.as_ref()
    }

    /// Opens one session outside the pool.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn open(&self) -> Result<Session, Error> {
        // Boxed: it is rare, and whoever may have to open a session would be kilobytes larger, and is moved for each turn.
        let opening = Box::pin(connect::open(self));
        let Some(limit) = self.opened_within else { return opening.await.map_err(|error| self.named(error)) };
        let begun = Instant::now();
        match tokio::time::timeout(limit, opening).await {
            Ok(Ok(session)) => Ok(session),
            // The driver's own limit for TCP can pass at the same moment.
            Ok(Err(error)) if begun.elapsed() < limit || matches!(error, Error::PasswordCommand { .. }) => {
                Err(self.named(error))
            }
            Ok(Err(_)) | Err(_) => match &self.config.password {
                Some(source) if source.is_awaited() => Err(source.late(limit)),
                Some(_) | None => Err(Error::Opening { target: self.target(), limit }),
            },
        }
    }

    /// Makes sure that each session is one server process for all its life: `count` of them at once, so that a
    /// transaction pooler, which gives each transaction whichever process is free, mixes them up.
    ///
    /// # Errors
    /// [`Error::Pooler`] when it is not; any other when it could not be tried.
    pub async fn direct(&self, count: usize) -> Result<(), Error> {
        let sessions = try_join_all((0..count).map(|_| self.open())).await?;
        if sessions.iter().map(|session| session.pid).collect::<BTreeSet<_>>().len() < count {
            return Err(Error::Pooler(self.target())); // several share one process
        }
        for round in 1..=3 {
            let pids = sessions.iter().enumerate().map(|(index, session)| async move {
                // They end in another order each time, so that a pooler's free processes change hands.
                let pause = (index * round * 7) % 10;
                // The simple protocol: no prepared statement that a pooler could lose.
                let sql = format!("SELECT pg_catalog.pg_backend_pid() FROM pg_catalog.pg_sleep(0.00{pause})");
                session.simple_query(&sql).await.map_err(|error| self.named(error.into()))
            });
            for (messages, session) in try_join_all(pids).await?.iter().zip(&sessions) {
                let same = messages.iter().any(|message| match message {
                    SimpleQueryMessage::Row(row) => {
                        row.try_get(0).ok().flatten() == Some(session.pid.to_string().as_str())
                    }
                    _ => false,
                });
                if !same {
                    return Err(Error::Pooler(self.target()));
                }
            }
        }
        Ok(())
    }

    fn named(&self, error: Error) -> Error {
        if error.tells_of_pooler() { Error::Pooler(self.target()) } else { error }
    }
}

/// An SQL identifier in quotes: any name is safe, and its case is kept.
#[must_use]
pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// An SQL string literal: any text is safe.
#[must_use]
pub fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if quoted.contains('\\') { format!(" E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}
