//! Opens one session: TLS, password, settings, and the proof that they took.

use std::fmt::Write as _;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::ClientWrapper;
use postgres_native_tls::{MakeTlsConnector, TlsStream};
use secrecy::ExposeSecret as _;
use tokio_postgres::config::{Host, SslMode, SslNegotiation};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Socket};
use tokio_util::sync::CancellationToken;

use super::auth::{self, Guarded, Method, Plain, Rules, Secure};
use super::{Config, Error, Limits, PasswordSource, Server, Session, Sessions, TlsMode, error, refusal};
use crate::tls::{self, IdentityFiles, Unusable, Verify};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The version that brought `transaction_timeout`, which ends a holder that is silent in the middle of a statement, too.
const TRANSACTION_TIMEOUT: i32 = 170_000;

/// Before all else: the database's owner may set a path on which its own functions and operators stand before PostgreSQL's, and what a
/// superuser calls runs with a superuser's rights.
const NO_PATH: &str = "SET search_path = ''";

/// The server process, which server it belongs to, and its version.
const WHERE: &str = include_str!("sql/connect_where.sql");

/// The planner's part keeps every statement on the `(created_at, id)` index whatever the statistics say: a plan that sorts
/// the table would take longer with each row.
const PLANNER: [(&str, &str); 3] = [("enable_seqscan", "off"), ("enable_bitmapscan", "off"), ("enable_sort", "off")];

pub(super) async fn open(sessions: &Sessions) -> Result<Session, Error> {
    let limits = &sessions.limits;
    let mut session = connect(&sessions.config, limits, &sessions.application_name).await?;
    // A pooler without a free server connection lets a client in and then says nothing.
    tokio::time::timeout(limits.lock_kill, async {
        session.batch_execute(NO_PATH).await?;
        let row = session.query_one(WHERE, &[]).await?;
        session.pid = row.try_get(0)?;
        session.server = Arc::new(Server { system: row.try_get(1)?, started: row.try_get(2)? });
        session.settings = prepare(&session, sessions, row.try_get(3)?).await?;
        Ok::<(), Error>(())
    })
    .await
    .map_err(|_| Error::Silent { target: sessions.target(), limit: limits.lock_kill })??;
    Ok(session)
}

/// Whether every host is a Unix socket, where TLS and TCP settings do not exist.
fn local(config: &Config) -> bool {
    config.connection.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
}

async fn connect(config: &Config, limits: &Limits, application_name: &str) -> Result<Session, Error> {
    let (client, mut wire) = dial(config, limits, application_name).await?;
    let closed = CancellationToken::new();
    let guard = closed.clone().drop_guard();
    let task = tokio::spawn(async move {
        let _guard = guard;
        while wire.next().await.is_some() {}
    });
    Ok(Session {
        client: ClientWrapper::new(client, task),
        closed,
        pid: 0,
        server: Arc::default(),
        settings: String::new(),
    })
}

/// A connection as the server gives it, without settings; whoever has it drives it.
pub(super) async fn dial(config: &Config, limits: &Limits, application_name: &str) -> Result<(Client, Wire), Error> {
    let mut connection = config.connection.clone();
    connection.application_name(application_name);
    let Some(source) = &config.password else { return reach(config, limits, connection).await };
    loop {
        let Some(password) = source.read().await? else { return reach(config, limits, connection).await };
        connection.password(password.text.expose_secret());
        let reached = reach(config, limits, connection.clone()).await;
        // A rotation costs no connection. Twice at most: what a command has just printed is not asked for again.
        if !reached.as_ref().is_err_and(Error::refused_password) || !source.refused(&password).await {
            return reached;
        }
    }
}

async fn reach(
    config: &Config,
    limits: &Limits,
    mut connection: tokio_postgres::Config,
) -> Result<(Client, Wire), Error> {
    let timeout = *connection.get_connect_timeout().unwrap_or(&CONNECT_TIMEOUT);
    connection.connect_timeout(timeout);
    connection.tcp_user_timeout(limits.lock_kill);
    let plain = config.tls == TlsMode::Disable || local(config);
    connection.ssl_mode(if plain { SslMode::Disable } else { SslMode::Require });
    let failed = |source: tokio_postgres::Error| {
        if let Some(method) = auth::refused(&source) {
            return Error::Method { target: config.target(), method };
        }
        if refusal::misses_password(&source) {
            return match &config.password {
                Some(PasswordSource::File(path)) => {
                    Error::PasswordEmpty { target: config.target(), path: path.clone() }
                }
                Some(PasswordSource::Command(_)) | None => Error::PasswordMissing(config.target()),
            };
        }
        if config.identity.is_some()
            && let Some(alert) = refusal::alert(&source)
        {
            return Error::Identity(format!("PostgreSQL at {} refuses it: {alert}", config.target()));
        }
        refusal::distrust(&source, &config.target()).unwrap_or_else(|| Error::Connect {
            target: config.target(),
            reason: error::describe(&source) + &origin(config, source.code()),
            state: source.code().cloned(),
        })
    };
    // The driver's own time-out covers the TCP connection only; a server that accepts and says nothing needs this one.
    let late = |_| Error::Timeout(timeout * 2);
    let rules = Rules::new(config.auth.clone().unwrap_or_else(|| Method::allowed(!plain)));
    if plain && !local(config) {
        // To the driver the guard is TLS that begins at once; it sends what it would send without.
        connection.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
        let connecting = tokio::time::timeout(timeout * 2, connection.connect(Plain(rules.clone())));
        let (client, connection) = connecting.await.map_err(late)?.map_err(failed)?;
        rules.opened();
        return Ok((client, Wire::Guarded(connection)));
    }
    if plain {
        let connecting = tokio::time::timeout(timeout * 2, connection.connect(NoTls));
        let (client, connection) = connecting.await.map_err(late)?.map_err(failed)?;
        return Ok((client, Wire::Plain(connection)));
    }
    let tls = Secure(MakeTlsConnector::new(connector(config)?), rules.clone());
    let connecting = tokio::time::timeout(timeout * 2, connection.connect(tls));
    let (client, connection) = connecting.await.map_err(late)?.map_err(failed)?;
    rules.opened();
    Ok((client, Wire::Tls(connection)))
}

/// Of a refused password, where it came from; as the end of a sentence.
fn origin(config: &Config, state: Option<&SqlState>) -> String {
    if state != Some(&SqlState::INVALID_PASSWORD) {
        return String::new();
    }
    config
        .password
        .as_ref()
        .map_or_else(|| "; the password is from [postgres] url or PGPASSWORD".to_owned(), PasswordSource::origin)
}

/// What carries a session's bytes. Without TLS no connector is made: to load the system's authorities takes a processor
/// tens of milliseconds for each connection.
pub(super) enum Wire {
    Plain(Connection<Socket, NoTlsStream>),
    Guarded(Connection<Socket, Guarded<Socket>>),
    Tls(Connection<Socket, Guarded<TlsStream<Socket>>>),
}

impl Wire {
    /// Carries bytes until the server says something unasked; none when the connection has ended.
    pub(super) async fn next(&mut self) -> Option<AsyncMessage> {
        let message = poll_fn(|context| match self {
            Self::Plain(connection) => connection.poll_message(context),
            Self::Guarded(connection) => connection.poll_message(context),
            Self::Tls(connection) => connection.poll_message(context),
        });
        match message.await? {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::debug!(error = error::describe(&error), "connection ended");
                None
            }
        }
    }
}

fn connector(config: &Config) -> Result<native_tls::TlsConnector, Error> {
    let verify = match config.tls {
        TlsMode::VerifyFull => Verify::Name,
        TlsMode::VerifyCa => Verify::Authority,
        TlsMode::Require | TlsMode::Disable => Verify::Nothing,
    };
    let own = config.identity.as_ref().map(IdentityFiles::read).transpose().map_err(Error::Identity)?;
    tls::connector_as(verify, config.ca_file.as_deref(), own, &[]).map_err(|unusable| match unusable {
        Unusable::Authorities(reason) => Error::Authorities(reason),
        Unusable::Own(reason) => Error::Identity(reason),
    })
}

/// The settings that the relay's rules rest on.
fn settings(config: &Config, limits: &Limits) -> Vec<(&'static str, String)> {
    let millis = |duration: Duration| duration.as_millis().to_string();
    let mut settings: Vec<(&'static str, String)> = [
        ("TimeZone", "UTC"),
        ("DateStyle", "ISO, MDY"),
        ("IntervalStyle", "postgres"),
        ("extra_float_digits", "1"),
        ("bytea_output", "hex"),
        ("row_security", "off"),
        // PostgreSQL prints expressions by it, and a table's default is known by its words.
        ("quote_all_identifiers", "off"),
        ("search_path", ""),
        // Statements of sinks get arrays with NULL, and XML of every form.
        ("array_nulls", "on"),
        ("xmloption", "content"),
        ("client_min_messages", "warning"),
        ("idle_session_timeout", "0"),
        ("lock_timeout", "2000"),
        // Statements outside explicit transactions write too, and each must have a snapshot of its own.
        ("default_transaction_isolation", "read committed"),
        ("default_transaction_read_only", "off"),
        ("default_transaction_deferrable", "off"),
        ("jit", "off"),
        ("max_parallel_workers_per_gather", "0"),
    ]
    .into_iter()
    .map(|(name, value)| (name, value.to_owned()))
    .collect();
    settings.push(("statement_timeout", millis(limits.statement)));
    settings.push(("idle_in_transaction_session_timeout", millis(limits.lock_kill)));
    if !local(config) {
        settings.push(("tcp_user_timeout", millis(limits.lock_kill)));
    }
    settings
}

/// Makes a session's settings, and runs what is first run in it; the statements that did.
async fn prepare(session: &Session, sessions: &Sessions, version: i32) -> Result<String, Error> {
    let Sessions { config, limits, planned_freely, first, .. } = sessions;
    let mut settings = settings(config, limits);
    if !*planned_freely {
        settings.extend(PLANNER.map(|(name, value)| (name, value.to_owned())));
    }
    if version >= TRANSACTION_TIMEOUT {
        settings.push(("transaction_timeout", limits.lock_kill.as_millis().to_string()));
    }
    let mut sql = String::new();
    for (name, value) in &settings {
        let _ = write!(sql, "SET {name} = '{value}';");
    }
    sql.push_str(first);
    session.batch_execute(&sql).await?;
    if session.query_one("SELECT pg_is_in_recovery()", &[]).await?.try_get(0)? {
        return Err(Error::Standby(config.target()));
    }
    verify(session, limits, local(config), version).await?;
    Ok(sql)
}

/// Reads the chain's last link back: a pooler that drops `SET`, or a server that does not know a setting, would leave a
/// frozen holder with its lock indefinitely.
async fn verify(session: &Session, limits: &Limits, local: bool, version: i32) -> Result<(), Error> {
    let wanted = limits.lock_kill.as_millis().to_string();
    for name in ["idle_in_transaction_session_timeout", "tcp_user_timeout", "transaction_timeout"] {
        // The second does not exist on a Unix socket, the third not before PostgreSQL 17.
        if local && name == "tcp_user_timeout" || version < TRANSACTION_TIMEOUT && name == "transaction_timeout" {
            continue;
        }
        let row = session.query_one("SELECT setting FROM pg_catalog.pg_settings WHERE name = $1", &[&name]).await?;
        let found: String = row.try_get(0)?;
        if found != wanted {
            return Err(Error::Setting { setting: name, found, wanted });
        }
    }
    Ok(())
}
