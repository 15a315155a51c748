//! What can go wrong with PostgreSQL, in words that an operator can act on.

use std::path::PathBuf;

use tokio_postgres::error::SqlState;

use super::auth::Method;
use crate::visible::visible;

mod fix;

pub use fix::UNREACHABLE;

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
    /// The command printed no password.
    #[error("[postgres] password_command: {program} {reason}")]
    PasswordCommand {
        /// The program.
        program: String,
        /// What it did instead.
        reason: String,
    },
    /// The relay's own certificate cannot be used.
    #[error("cannot use the relay's own certificate ([postgres] cert_file, key_file): {0}")]
    Identity(String),
    /// The certificate authorities cannot be used.
    #[error("cannot use the certificate authorities ([postgres] ca_file): {0}")]
    Authorities(String),
    /// The server asks for a password.
    #[error("PostgreSQL at {0} asks for a password, and none is configured")]
    PasswordMissing(String),
    /// The server asks for a password, and the file that should hold it holds none.
    #[error("PostgreSQL at {target} asks for a password, and {} ([postgres] password_file) is empty", path.display())]
    PasswordEmpty {
        /// Host, port and database.
        target: String,
        /// The file.
        path: PathBuf,
    },
    /// The server asks for what it must not be given.
    #[error("PostgreSQL at {target} asks for {method}: nothing was sent")]
    Method {
        /// Host, port, database and user.
        target: String,
        /// What it asks for.
        method: Method,
    },
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
    /// No connection in time.
    #[error("PostgreSQL at {target} did not answer within {limit:?} (--connect-timeout)")]
    Opening {
        /// Host, port, database and user.
        target: String,
        /// How long it was tried.
        limit: std::time::Duration,
    },
    /// The server let a session in, and then did not answer in time.
    #[error("PostgreSQL at {target} let a session in and did not answer within {limit:?}")]
    Silent {
        /// Host, port, database and user.
        target: String,
        /// How long it had.
        limit: std::time::Duration,
    },
    /// No connection that can be trusted: nothing was sent, no password either.
    #[error("cannot trust PostgreSQL at {target}: {reason}. {fix}")]
    Tls {
        /// Host, port, database and user.
        target: String,
        /// Why.
        reason: String,
        /// What to change.
        fix: &'static str,
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
    /// A cursor's row is gone, or could not be changed, while it was held.
    #[error("the row of cursor {0} in outbox.cursor was not there to be changed, although its turn had locked it")]
    Vanished(String),
    /// Connections of this replica are on two servers.
    #[error("connections of this replica reach two PostgreSQL servers: {one}; {other}")]
    TwoServers {
        /// One of them.
        one: String,
        /// The other.
        other: String,
    },
    /// The pool is closed.
    #[error("connection pool: {0}")]
    Pool(String),
    /// A statement did not answer what it was asked for.
    #[error("the answer to a write of {table} cannot be used: {reason}")]
    Answer {
        /// What is written.
        table: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The server's answer is not what the protocol and the statement promise.
    #[error("PostgreSQL's answer cannot be read: {0}")]
    Unreadable(&'static str),
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
            | Self::PasswordCommand { .. }
            | Self::Identity(_)
            | Self::PasswordMissing(_)
            | Self::PasswordEmpty { .. }
            | Self::Method { .. }
            | Self::Opening { .. }
            | Self::Silent { .. }
            | Self::Authorities(_)
            | Self::Tls { .. }
            | Self::Standby(_)
            | Self::Pooler(_)
            | Self::Setting { .. }
            | Self::Pool(_)
            | Self::Vanished(_)
            | Self::TwoServers { .. }
            | Self::Answer { .. }
            | Self::Unreadable(_)
            | Self::Timeout(_) => None,
        }
    }

    /// The class of the server's code, which is its first two letters; empty without a code, or when it is none.
    #[must_use]
    pub fn state_class(&self) -> &str {
        self.state().and_then(|state| state.code().get(..2)).unwrap_or_default()
    }

    /// Whether a transaction that ended with this error may have been committed: its commit was not answered. PostgreSQL
    /// answers a commit before it ends a session by request, and a session whose commit it has ended by request gets no answer.
    #[must_use]
    pub fn may_have_committed(&self) -> bool {
        match (self, self.state()) {
            (Self::Statement(_), Some(state)) => self.state_class() == "08" || *state == SqlState::CRASH_SHUTDOWN,
            (Self::Statement(_) | Self::Timeout(_), None) => true,
            _ => false,
        }
    }

    /// Whether the server could not convert a value to the client's encoding, which is UTF-8.
    #[must_use]
    pub fn is_not_utf8(&self) -> bool {
        let states = [SqlState::CHARACTER_NOT_IN_REPERTOIRE, SqlState::UNTRANSLATABLE_CHARACTER];
        self.state().is_some_and(|state| states.contains(state))
    }

    /// Whether the server could not make a value as large as was asked for, however much memory it has: `string buffer exceeds
    /// maximum allowed length`, or `invalid memory alloc request size`, which has the code of every internal error, in words that
    /// are not translated. Not `out of memory`, which passes.
    #[must_use]
    pub fn is_server_limit(&self) -> bool {
        let Self::Statement(error) = self else { return false };
        error.as_db_error().is_some_and(|error| {
            *error.code() == SqlState::PROGRAM_LIMIT_EXCEEDED
                || *error.code() == SqlState::INTERNAL_ERROR && error.message().starts_with(TOO_LARGE)
        })
    }

    /// A code for people who may not know the server and the user: an SQLSTATE, or that no answer came.
    #[must_use]
    pub fn public_code(&self) -> String {
        // A server can send any text as its code.
        let state = self.state().map(SqlState::code);
        match state.filter(|code| code.len() == 5 && code.bytes().all(|c| c.is_ascii_alphanumeric())) {
            Some(code) => format!("postgres_{code}"),
            None => "connect_failed".to_owned(),
        }
    }

    /// Whether a session lost its prepared statements, or met another's: it is not always the same server process.
    #[must_use]
    pub(super) fn tells_of_pooler(&self) -> bool {
        let strange = [SqlState::INVALID_SQL_STATEMENT_NAME, SqlState::DUPLICATE_PSTATEMENT];
        self.state().is_some_and(|state| strange.contains(state))
    }

    /// Whether the server refused the password, in the code of passwords or of what PAM asks for.
    #[must_use]
    pub(super) fn refused_password(&self) -> bool {
        let states = [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION];
        matches!(self, Self::Connect { state: Some(state), .. } if states.contains(state))
    }

    /// Whether there are no credentials, or they were refused: a password that cannot be read or is wrong, a certificate that cannot be
    /// used, an unknown role or database, or no right to connect.
    #[must_use]
    pub fn refused_credentials(&self) -> bool {
        matches!(
            self,
            Self::PasswordFile { .. }
                | Self::PasswordCommand { .. }
                | Self::Identity(_)
                | Self::PasswordMissing(_)
                | Self::PasswordEmpty { .. }
                | Self::Method { .. }
        ) || self.state().is_some_and(|state| {
            [SqlState::INVALID_PASSWORD, SqlState::INVALID_AUTHORIZATION_SPECIFICATION, SqlState::INVALID_CATALOG_NAME]
                .contains(state)
        })
    }
}

/// How PostgreSQL begins its refusal to make a value of more than 1 GiB.
const TOO_LARGE: &str = "invalid memory alloc request size";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_odd_length_has_no_class() {
        for (code, class) in [("57P01", "57"), ("5", ""), ("", ""), ("é", "é"), ("5é", "")] {
            let (target, reason, state) = (String::new(), String::new(), Some(SqlState::from_code(code)));
            assert_eq!(Error::Connect { target, reason, state }.state_class(), class, "{code}");
        }
    }
}
