//! A throw-away PostgreSQL server on the loopback interface and on a Unix socket, which asks for a random password: a
//! superuser may run programs as the server's user.
//!
//! Root cannot run PostgreSQL, so as root it belongs to the user `postgres`, or else `nobody`. It can be killed and
//! started again on the same port and files; nothing of it outlives this process (see [`super::watchdog`]).

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use std::os::unix::process::CommandExt;

use anyhow::ensure;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use super::startup::{free_port, tail, until};
use super::wait;
use super::watchdog::{Process, Program, Signal, Watchdog};
use installed::{PASSWORD_FILE, initdb_command, run_initdb, unprivileged};

mod installed;
mod password;

pub use installed::{BINARIES, binaries};
pub use password::{login, password, role_of, without_password};

/// Names the major version that the server must have, so that nothing passes on another one than was asked for.
pub const MAJOR: &str = "OUTBOX_RELAY_PG_MAJOR";

const START: Duration = Duration::from_secs(30);
const PROMOTION: Duration = Duration::from_secs(60);

/// How the server should be.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose password its URLs have.
    pub auth: Auth,
    /// Whether commits reach the disk. Off is quicker, and enough unless the machine itself crashes; figures need it on.
    pub fsync: bool,
    /// Further settings, name and value; they win over the defaults here.
    pub settings: Vec<(String, String)>,
}

/// Whose password a URL has. Every connection needs one (scram-sha-256).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// Each role has its [`password`]: see [`login`].
    Shared,
    /// Only the superuser has; other roles have their own, and URLs do not contain it.
    Own,
}

impl Default for Options {
    fn default() -> Self {
        Self { auth: Auth::Shared, fsync: false, settings: Vec::new() }
    }
}

mod ready;

/// A running server.
#[derive(Debug)]
pub struct Postgres {
    watchdog: Watchdog,
    process: Option<Process>,
    program: Program,
    port: u16,
    auth: Auth,
}

impl Postgres {
    /// Initialises a cluster and starts its server; it accepts connections when this returns.
    ///
    /// # Errors
    /// When PostgreSQL is not installed, or does not start; the end of its log is part of the error.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let binaries = binaries()?;
        let user = unprivileged()?;
        let watchdog = Watchdog::start("postgres")?;
        let dir = watchdog.dir().to_owned();
        if let Some(user) = user {
            std::os::unix::fs::chown(&dir, Some(user.uid), Some(user.gid))?;
        }
        let initdb = initdb_command(&binaries, &dir, user)?;
        tokio::task::spawn_blocking(move || run_initdb(initdb)).await??;
        std::fs::remove_file(dir.join(PASSWORD_FILE))?;

        let port = free_port()?;
        let program = Program {
            path: binaries.join("postgres"),
            args: arguments(&options, &dir, port),
            env: vec![("LC_ALL".into(), "C.UTF-8".into())],
            log: dir.join("log"),
            user,
            stop: Signal::QUIT,
        };
        let mut postgres = Self { watchdog, process: None, program, port, auth: options.auth };
        postgres.restart().await?;
        Ok(postgres)
    }

    /// A standby that streams from this server; it accepts queries when this returns. [`Self::promote`] makes it a primary.
    ///
    /// # Errors
    /// When it cannot be copied or does not start.
    pub async fn standby(&self, name: &str) -> anyhow::Result<Self> {
        // What is on PATH may be a link to the server alone.
        let server = std::fs::canonicalize(binaries()?.join("postgres"))?;
        let user = unprivileged()?;
        let watchdog = Watchdog::start("postgres")?;
        let dir = watchdog.dir().to_owned();
        if let Some(user) = user {
            std::os::unix::fs::chown(&dir, Some(user.uid), Some(user.gid))?;
        }
        let mut copy = Command::new(server.with_file_name("pg_basebackup"));
        // Every user of the machine sees the arguments of a program.
        let url = without_password(&self.url("postgres", "postgres"));
        let source = format!("{url}&application_name={name}");
        copy.env("PGPASSWORD", password("postgres"));
        copy.args(["-R", "-X", "stream", "-c", "fast", "--no-sync", "-d", &source, "-D"]).arg(dir.join("data"));
        copy.current_dir(&dir).process_group(0);
        if let Some(user) = user {
            copy.uid(user.uid).gid(user.gid);
        }
        let output = tokio::task::spawn_blocking(move || copy.output()).await??;
        ensure!(output.status.success(), "pg_basebackup failed: {}", String::from_utf8_lossy(&output.stderr).trim());
        let port = free_port()?;
        let args = self.program.args.iter().skip(2).cloned();
        let own = ["-D".to_owned(), dir.join("data").display().to_string()];
        let settings = [format!("port={port}"), format!("unix_socket_directories={}", dir.display())];
        let settings = settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]);
        // The last of two values counts.
        let args = own.into_iter().chain(args).chain(settings).collect();
        let program = Program { args, log: dir.join("log"), ..self.program.clone() };
        let mut postgres = Self { watchdog, process: None, program, port, auth: self.auth };
        postgres.restart().await?;
        Ok(postgres)
    }

    /// Makes a standby a primary, and waits until it is one.
    ///
    /// # Errors
    /// When it does not become one.
    pub async fn promote(&self) -> anyhow::Result<()> {
        let client = self.connect("postgres", "postgres").await?;
        // Not one statement that waits: replay of the rest of the log cancels statements whose snapshot is in its way.
        client.execute("SELECT pg_promote(wait => false)", &[]).await?;
        wait::until(PROMOTION, "the standby is a primary", async || {
            match client.query_one("SELECT NOT pg_is_in_recovery()", &[]).await {
                Ok(row) => Ok(row.get(0)),
                Err(error) if error.code() == Some(&SqlState::T_R_SERIALIZATION_FAILURE) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }

    /// The port on 127.0.0.1, and of the Unix socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where the Unix socket is.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        self.watchdog.dir()
    }

    /// The server's log so far.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.program.log
    }

    /// The connection URL by TCP, without TLS; its password is as [`Auth`] says.
    #[must_use]
    pub fn url(&self, user: &str, database: &str) -> String {
        let password = match self.auth {
            Auth::Own if user != "postgres" => String::new(),
            Auth::Own | Auth::Shared => format!(":{}", password(user)),
        };
        format!("postgresql://{user}{password}@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }

    /// A connection by the Unix socket: no other user of the machine can listen there while the server is away, and be told a password.
    ///
    /// # Errors
    /// PostgreSQL's.
    pub async fn connect(&self, user: &str, database: &str) -> Result<Client, tokio_postgres::Error> {
        driven(self.by_socket(user, database)).await
    }

    fn by_socket(&self, user: &str, database: &str) -> tokio_postgres::Config {
        let mut config = tokio_postgres::Config::new();
        config.host_path(self.socket_dir()).port(self.port).user(user).dbname(database).password(password(user));
        config
    }

    /// Kills the server like a crash: with SIGKILL, nothing is written any more.
    ///
    /// # Errors
    /// When it does not end.
    pub async fn kill9(&mut self) -> anyhow::Result<()> {
        self.end(Signal::KILL).await
    }

    /// Stops the server if it runs (`fast`: open transactions are rolled back) and starts it again, same port and files.
    ///
    /// # Errors
    /// When it does not accept connections within half a minute.
    pub async fn restart(&mut self) -> anyhow::Result<()> {
        self.end(Signal::INT).await?;
        // After a kill, the old server's children may live for an instant and forbid a new one: hence more attempts.
        let deadline = tokio::time::Instant::now() + START;
        let config = self.by_socket("postgres", "postgres");
        loop {
            let process = self.process.insert(self.watchdog.spawn(&self.program)?);
            let (data, pid) = (self.watchdog.dir().join("data"), process.pid());
            let connecting = || async {
                ready::has_started(&data, pid)?;
                Ok(driven(config.clone()).await?)
            };
            let ready = until(START, || process.is_running(), connecting).await;
            match ready {
                Ok(client) => return has_major(&client).await,
                Err(error) if process.is_running() || tokio::time::Instant::now() > deadline => {
                    let log = tail(&self.program.log);
                    return Err(error.context(format!("PostgreSQL does not start; its log ends with:\n{log}")));
                }
                Err(_) => self.end(Signal::KILL).await?,
            }
        }
    }

    /// Stops the server and removes everything.
    ///
    /// # Errors
    /// When something of it remains.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.watchdog.stop().await
    }

    async fn end(&mut self, signal: Signal) -> anyhow::Result<()> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        if process.is_running() {
            process.signal(signal)?;
        }
        self.watchdog.reap(&mut process, START).await?;
        Ok(())
    }
}

/// A connection whose other half is driven in the background.
///
/// # Errors
/// PostgreSQL's.
pub async fn connect(url: &str) -> Result<Client, tokio_postgres::Error> {
    driven(url.parse()?).await
}

async fn driven(config: tokio_postgres::Config) -> Result<Client, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection to PostgreSQL ended");
        }
    });
    Ok(client)
}

/// Refuses a server of another major version than [`MAJOR`] names.
async fn has_major(client: &Client) -> anyhow::Result<()> {
    let Ok(wanted) = std::env::var(MAJOR) else { return Ok(()) };
    let version: String = client.query_one("SHOW server_version_num", &[]).await?.get(0);
    let major = version.parse::<u32>()? / 10_000;
    ensure!(
        wanted == major.to_string(),
        "{MAJOR}={wanted}, but the server says {version}: name its binaries in {BINARIES}"
    );
    Ok(())
}

fn arguments(options: &Options, dir: &Path, port: u16) -> Vec<String> {
    let defaults = [
        ("port", port.to_string()),
        ("listen_addresses", "127.0.0.1".into()),
        ("unix_socket_directories", dir.display().to_string()),
        ("fsync", if options.fsync { "on" } else { "off" }.into()),
        ("max_connections", "200".into()),
        ("max_prepared_transactions", "10".into()),
        // Its segments are files here, so that they are gone with the directory even after a kill.
        ("dynamic_shared_memory_type", "mmap".into()),
    ];
    let settings = defaults.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(options.settings.clone());
    let mut args = vec!["-D".to_owned(), dir.join("data").display().to_string()];
    args.extend(settings.flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]));
    args
}
