//! What the process shows to the outside over HTTP: `/livez`, `/readyz`, `/metrics`.
//!
//! Read only, and on the loopback interface unless configured otherwise.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use crate::health::{Heartbeat, Readiness};
use crate::listener::{self, BindError, Bounded, Bounds};
use crate::metrics::exporter::Exporter;

pub use crate::metrics::Phases;

mod routes;

/// One that dribbles must not keep a probe waiting for long; a life longer than a slow scrape, and shorter than what a
/// stuck client could hold indefinitely.
const BOUNDS: Bounds =
    Bounds { connections: 64, question: Duration::from_secs(5), life: Duration::from_secs(30), renewed: false };

/// How long open connections may go on after the end.
const LINGER: Duration = Duration::from_secs(1);

/// `[admin]` of the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where to listen; loopback unless configured.
    pub listen: SocketAddr,
}

impl Default for Config {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 9464)) }
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
}

/// Takes the configured address.
///
/// # Errors
/// When another process has it, or this one may not.
pub async fn bind(config: Config) -> Result<TcpListener, BindError> {
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
