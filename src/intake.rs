//! The HTTP intake: writes requests into the ledger for clients that have no connection to PostgreSQL.
//!
//! Promise: what is answered 200 or 202 is committed. Every other answer but 504 means that this call has recorded nothing.
//! 504 means that the outcome is unknown, and so does a connection that ends without an answer: the same call again, with the same
//! `dedupe_key` or `request_id`, is safe, and makes no second request. It refuses whoever has no token, and reads no body
//! beyond its limit. It speaks HTTP without TLS.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::database::{self, Limits, Sessions};
use crate::listener::{self, BindError, Bounded, Bounds};
use crate::metrics::intake::IntakeMetrics;
use crate::tokens::Tokens;

mod call;
mod keys;
mod ledger;
mod problem;
mod routes;

use ledger::Ledger;

/// The description of the routes, as it is served.
pub const OPENAPI: &str = include_str!("../docs/openapi.json");

/// The most connections of clients at once.
const CLIENTS: usize = 512;
/// How long a client may be silent before its question, and after each answer.
const SILENCE: Duration = Duration::from_secs(10);

/// `[intake]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen; loopback unless configured.
    pub listen: SocketAddr,
    /// The file of the tokens that are accepted, one a line; read at each request.
    pub token_file: PathBuf,
    /// The longest body.
    pub body_limit: usize,
    /// Connections to PostgreSQL, beside those of `[postgres] pool_size`.
    pub connections: usize,
    /// When a request is given up.
    pub timeout: Duration,
}

impl Config {
    /// How long its sessions may be busy or silent: a statement that begins in the first half of `timeout` is given up by
    /// PostgreSQL before the client is told that nobody knows.
    #[must_use]
    pub fn limits(&self) -> Limits {
        Limits { statement: self.timeout * 2 / 5, lock_kill: self.timeout * 2 }
    }
}

/// What the routes work with.
#[derive(Debug)]
pub struct Intake {
    ledger: Ledger,
    tokens: Tokens,
    metrics: IntakeMetrics,
    body_limit: usize,
    timeout: Duration,
}

impl Intake {
    /// Connects to nothing yet. `application_name` is what its sessions call themselves.
    ///
    /// # Errors
    /// When there is no token that could be accepted, or the pool cannot be built.
    pub fn new(config: &Config, database: database::Config, application_name: String) -> anyhow::Result<Self> {
        let tokens = Tokens::new("intake", config.token_file.clone());
        tokens.verify()?;
        let sessions = Sessions::new(database, config.limits(), application_name)
            .planned_freely()
            .with_first(format!("SET lock_timeout = {}", ledger::LOCK_TIMEOUT.as_millis()));
        Ok(Self {
            ledger: Ledger::new(database::pool(sessions, config.connections)?, config.timeout / 2),
            tokens,
            metrics: IntakeMetrics::new(),
            body_limit: config.body_limit,
            timeout: config.timeout,
        })
    }
}

/// Takes the configured address.
///
/// # Errors
/// When another process has it, or this one may not.
pub async fn bind(config: &Config) -> Result<TcpListener, BindError> {
    listener::bind(config.listen, "intake").await
}

/// Answers until `stop` is done; from then on no connection is accepted, and requests in flight are answered until `cut`.
///
/// # Errors
/// Never at present; the signature leaves room for a listener that fails.
pub async fn serve(
    listener: TcpListener,
    intake: Intake,
    stop: impl Future<Output = ()> + Send + 'static,
    cut: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    // A request in flight has all its time, whenever it came.
    let life = SILENCE + intake.timeout;
    let bounds = Bounds { connections: CLIENTS, question: life, life };
    let intake = Arc::new(intake);
    let opening = Arc::clone(&intake);
    tokio::spawn(async move { opening.ledger.open().await });
    let router = routes::router(intake);
    tokio::select! {
        served = axum::serve(Bounded::new(listener, bounds), router).with_graceful_shutdown(stop).into_future() => served,
        () = cut => Ok(()),
    }
}
