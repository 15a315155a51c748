//! Connections to PostgreSQL: TLS, session settings, the pool, and how long each may last.

use std::path::PathBuf;

/// `[postgres]` of the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Host, port, user, database and so on, as the driver reads them; never `sslmode`, which is [`Self::tls`].
    pub connection: tokio_postgres::Config,
    /// How the connection is protected.
    pub tls: TlsMode,
    /// Read at every connection, so that a rotated password is picked up.
    pub password_file: Option<PathBuf>,
    /// Certificate authorities to trust in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// All connections of this process: one watcher, one for probes and samples, the rest two by two for turns. At least 4.
    pub pool_size: usize,
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
