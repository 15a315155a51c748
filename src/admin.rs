//! What the process shows to the outside over HTTP: the status page and its changes, `/livez`, `/readyz`, `/metrics`.
//!
//! Read only, and on the loopback interface unless configured otherwise. The page asks for a token where tokens are configured.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::health::{Heartbeat, Readiness};
use crate::listener::{self, BindError, Bounded, Bounds};
use crate::metrics::exporter::Exporter;
use crate::tokens::Tokens;

pub use self::board::Source;
pub use self::source::Database;
pub use self::status_page::StatusPage;
pub use crate::metrics::Phases;

mod board;
mod live;
mod page;
mod routes;
mod source;
mod status_page;

/// One that dribbles must not keep a probe waiting for long; a life longer than a slow scrape and than the pause between two events,
/// and shorter than what a stuck client could hold indefinitely.
const BOUNDS: Bounds = Bounds { connections: 64, question: Duration::from_secs(5), life: Duration::from_secs(30) };

/// How long open connections may go on after the end.
const LINGER: Duration = Duration::from_secs(1);

/// `[admin]` of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen; loopback unless configured.
    pub listen: SocketAddr,
    /// The file of the tokens of which the status page asks for one; it is free without.
    pub token_file: Option<PathBuf>,
    /// Whether `/metrics` asks for one, too.
    pub token_for_metrics: bool,
}

impl Config {
    /// The tokens that are asked for.
    #[must_use]
    pub fn tokens(&self) -> Option<Tokens> {
        self.token_file.clone().map(|file| Tokens::new("admin", file))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 9464)), token_file: None, token_for_metrics: false }
    }
}

/// What the routes show.
#[derive(Clone, Debug)]
pub struct State {
    /// The engine's sign of life.
    pub heartbeat: Arc<Heartbeat>,
    /// What the start still waits for.
    pub readiness: Readiness,
    /// The metrics.
    pub exporter: Exporter,
    /// The status page; none where there is nothing to show.
    pub page: Option<Arc<StatusPage>>,
    /// The tokens of which it asks for one.
    pub tokens: Option<Tokens>,
    /// Whether the metrics ask for one, too.
    pub token_for_metrics: bool,
    /// Ends when the process begins to end, and with it streams of changes.
    pub ending: CancellationToken,
}

/// Takes the configured address.
///
/// # Errors
/// When another process has it, or this one may not.
pub async fn bind(config: &Config) -> Result<TcpListener, BindError> {
    listener::bind(config.listen, "admin").await
}

/// Answers until `shutdown` is done, and a moment longer for answers on their way.
///
/// # Errors
/// Never at present; the signature leaves room for a listener that fails.
pub async fn serve(
    listener: TcpListener,
    state: State,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let (ending, mut ended) = tokio::sync::watch::channel(());
    let shutdown = async move {
        shutdown.await;
        drop(ending);
    };
    let serving = axum::serve(Bounded::new(listener, BOUNDS), routes::router(state)).with_graceful_shutdown(shutdown);
    // A client that keeps its connection open must not keep the process alive.
    let cut = async {
        while ended.changed().await.is_ok() {}
        tokio::time::sleep(LINGER).await;
    };
    tokio::select! {
        served = serving => served,
        () = cut => Ok(()),
    }
}

#[cfg(test)]
mod tests;
