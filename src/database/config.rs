//! What is configured of the connections to PostgreSQL.

use std::path::PathBuf;

use super::{IdentityFiles, Method, PasswordSource};

/// `[postgres]` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Host, port, user, database and so on, as the driver reads them; never `sslmode`, which is [`Self::tls`].
    pub connection: tokio_postgres::Config,
    /// How the connection is protected.
    pub tls: TlsMode,
    /// What the server may ask for; none: anything but the password in clear text without TLS.
    pub auth: Option<Vec<Method>>,
    /// Where the password is from, when it stands not in [`Self::connection`].
    pub password: Option<PasswordSource>,
    /// Certificate authorities to trust instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// What the relay shows for itself, read at every connection.
    pub identity: Option<IdentityFiles>,
    /// All connections of this process but the intake's: one watcher, one for probes and samples, the rest two by two for turns. At least 4.
    pub pool_size: usize,
    /// How many of them are neither the watcher's, nor for probes, nor for turns: one hears notifications, one renews the
    /// claims of actions.
    pub dedicated: usize,
}

impl Config {
    /// How many turns may run at the same time: each has two connections.
    #[must_use]
    pub fn slots(&self) -> usize {
        (self.pool_size.saturating_sub(2 + self.dedicated) / 2).max(1)
    }

    /// The database's name: libpq's default is the user's.
    #[must_use]
    pub fn name(&self) -> &str {
        self.connection.get_dbname().or_else(|| self.connection.get_user()).unwrap_or("(operating system user)")
    }

    /// Where it connects to, for messages: `host:port/database as user`, no secrets.
    #[must_use]
    pub fn target(&self) -> String {
        let host = match self.connection.get_hosts().first() {
            Some(tokio_postgres::config::Host::Tcp(host)) => host.clone(),
            Some(tokio_postgres::config::Host::Unix(path)) => path.display().to_string(),
            None => "localhost".to_owned(),
        };
        let port = self.connection.get_ports().first().copied().unwrap_or(5432);
        let user = self.connection.get_user().unwrap_or("(operating system user)");
        let database = self.name();
        format!("{host}:{port}/{database} as {user}")
    }
}

/// `sslmode`, ours: the driver has no `verify-full`. TLS is not used on Unix sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// No TLS.
    Disable,
    /// TLS, certificate not verified.
    Require,
    /// TLS, certificate verified against the authorities, host name not.
    VerifyCa,
    /// TLS, certificate and host name verified. The default.
    VerifyFull,
}
