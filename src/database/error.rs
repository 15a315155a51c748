//! What can go wrong with PostgreSQL, in words that an operator can act on.

use std::path::PathBuf;

use tokio_postgres::error::SqlState;

use super::sqlstate;
use crate::visible::visible;

/// An error of a connection or a statement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The password file cannot be read.
    #[error("cannot read [postgres] password_file {path}: {source}")]
    PasswordFile {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The certificate authorities cannot be used.
    #[error("cannot use the certificate authorities ([postgres] ca_file): {0}")]
    Authorities(String),
    /// No connection: the server cannot be reached or refused it.
    #[error("cannot connect to PostgreSQL at {target}: {reason}")]
    Connect {
        /// Host, port, database and user.
        target: String,
        /// Why.
        reason: String,
        /// The server's code, when it answered.
        state: Option<SqlState>,
    },
    /// No connection that can be trusted: nothing was sent, no password either.
    #[error("cannot trust PostgreSQL at {target}: {reason}. {mend}")]
    Tls {
        /// Host, port, database and user.
        target: String,
        /// Why.
        reason: String,
        /// What to change.
        mend: &'static str,
    },
    /// The server is a standby.
    #[error(
        "PostgreSQL at {0} is a standby (pg_is_in_recovery): the relay reads the primary only; point [postgres] url at \
         the primary"
    )]
    Standby(String),
    /// A transaction pooler is in between.
    #[error(
        "PostgreSQL at {0} is reached through a transaction pooler: locks and settings need a direct connection; point \
         [postgres] url at PostgreSQL itself"
    )]
    Pooler(String),
    /// A session setting did not take.
    #[error("session setting {setting} reads back as {found}, not {wanted}: is a connection pooler in between?")]
    Setting {
        /// Which setting.
        setting: &'static str,
        /// What `SHOW` says.
        found: String,
        /// What was set.
        wanted: String,
    },
    /// A statement failed. Its message says all, so it is no `source` that a report would print again.
    #[error("{}", describe(.0))]
    Statement(tokio_postgres::Error),
    /// A cursor's row is gone while it was held.
    #[error("the row of cursor {0} was deleted while it was held; it is made anew at the next start")]
    Vanished(String),
    /// The pool is closed.
    #[error("connection pool: {0}")]
    Pool(String),
    /// No answer in time.
    #[error("PostgreSQL did not answer within {0:?}")]
    Timeout(std::time::Duration),
}

impl From<tokio_postgres::Error> for Error {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Statement(error)
    }
}

impl Error {
    /// The server's error code, when it gave one.
    #[must_use]
    pub fn state(&self) -> Option<&SqlState> {
        match self {
            Self::Connect { state, .. } => state.as_ref(),
            Self::Statement(error) => error.code(),
            Self::PasswordFile { .. }
            | Self::Authorities(_)
            | Self::Tls { .. }
            | Self::Standby(_)
            | Self::Pooler(_)
            | Self::Setting { .. }
            | Self::Pool(_)
            | Self::Vanished(_)
            | Self::Timeout(_) => None,
        }
    }

    /// What an operator can do about a connection that there is not, or that failed; none where the message says it already.
    #[must_use]
    pub fn mend(&self) -> Option<&'static str> {
        match self {
            Self::PasswordFile { .. } => Some(
                "Write the password into that file, or correct [postgres] password_file: a relative path counts from the \
                 directory that the program is started in.",
            ),
            Self::Authorities(_) => Some("Correct [postgres] ca_file."),
            Self::Connect { reason, state: None, .. } if reason == NO_PASSWORD => {
                Some("Write [postgres] password_file, or set PGPASSWORD.")
            }
            Self::Connect { state: None, .. } => {
                Some("Check host and port of [postgres] url, and that the server runs and can be reached from here.")
            }
            Self::Tls { .. } | Self::Standby(_) | Self::Pooler(_) => None,
            Self::Setting { .. } => Some("Point [postgres] url at PostgreSQL itself."),
            Self::Connect { .. } | Self::Statement(_) | Self::Vanished(_) | Self::Pool(_) | Self::Timeout(_) => {
                Some(sqlstate::meaning(self).hint)
            }
        }
    }

    /// Whether a session lost its prepared statements, or met another's: it is not always the same server process.
    #[must_use]
    pub(super) fn tells_of_pooler(&self) -> bool {
        let strange = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
        self.state().is_some_and(|state| strange.contains(state))
    }

    /// Whether the credentials were refused: a wrong password, an unknown role or database, or no right to connect.
    #[must_use]
    pub fn refused_credentials(&self) -> bool {
        matches!(self, Self::PasswordFile { .. })
            || self.state().is_some_and(|state| {
                [
                    SqlState::INVALID_PASSWORD,
                    SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                    SqlState::INVALID_CATALOG_NAME,
                ]
                .contains(state)
            })
    }
}

/// What is said when the server asks for a password and there is none; the driver's words are about its own configuration.
const NO_PASSWORD: &str = "the server asks for a password, and none is configured";

/// Why there is no connection.
pub(super) fn refusal(error: &tokio_postgres::Error) -> String {
    let reason = describe(error);
    if reason.ends_with("password missing") { NO_PASSWORD.to_owned() } else { reason }
}

/// What the driver says, without a source of a type of its own, when TLS is asked for and the server has none.
const NO_TLS: &str = "server does not support TLS";

/// The refusal to trust the server, when that is what the driver's error is: a broken connection is not.
pub(super) fn distrust(error: &tokio_postgres::Error, target: &str) -> Option<Error> {
    let causes = || std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    if causes().any(|cause| cause.is::<std::io::Error>()) {
        return None;
    }
    let target = target.to_owned();
    if causes().any(|cause| cause.to_string() == NO_TLS) {
        let mend = "Switch ssl on at the server; only if nobody can listen in between, write sslmode=disable into \
                    [postgres] url";
        return Some(Error::Tls { target, reason: NO_TLS.to_owned(), mend });
    }
    let refused = causes().find(|cause| cause.is::<native_tls::Error>())?;
    let mend = "The server's certificate must be valid now, name the host of [postgres] url, and be signed by an \
                authority of [postgres] ca_file (without it: one of the system's)";
    Some(Error::Tls { target, reason: refused.to_string(), mend })
}

/// The driver's error with the server's message, code and detail, which its own `Display` leaves out.
#[must_use]
pub fn describe(error: &tokio_postgres::Error) -> String {
    if let Some(db) = error.as_db_error() {
        let mut text = format!("{}: {} ({})", db.severity(), db.message(), db.code().code());
        if let Some(hint) = db.hint() {
            text.push_str("; hint: ");
            text.push_str(hint);
        }
        return visible(&text);
    }
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
