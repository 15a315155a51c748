//! What the process shows to the outside over HTTP: `/livez`, `/readyz`, `/metrics`. It answers GET only, and changes
//! nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::relay::health::{Heartbeat, Readiness};

/// The engine goes round at least once a second; a process that has not for this long is stuck.
const STUCK: Duration = Duration::from_secs(60);
/// How often the recorder tidies its histograms up.
const UPKEEP: Duration = Duration::from_secs(5);

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

/// Why there is no listener.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {listen}: {source} (set [admin] listen to a free address)")]
pub struct BindError {
    listen: SocketAddr,
    source: std::io::Error,
}

/// What the routes show.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Renders the metrics.
    pub metrics: PrometheusHandle,
    /// Whether the engine goes round.
    pub heartbeat: Arc<Heartbeat>,
    /// Whether the process is ready.
    pub readiness: Arc<Readiness>,
}

/// Takes the address, so that a start fails early when it is taken already.
///
/// # Errors
/// When it cannot be had.
pub async fn bind(config: &Config) -> Result<TcpListener, BindError> {
    TcpListener::bind(config.listen).await.map_err(|source| BindError { listen: config.listen, source })
}

/// Serves until `shutdown` ends.
///
/// # Errors
/// The listener's.
pub async fn serve(listener: TcpListener, facts: Facts, shutdown: CancellationToken) -> std::io::Result<()> {
    let metrics = facts.metrics.clone();
    let upkeep = shutdown.clone();
    tokio::spawn(async move {
        while upkeep.run_until_cancelled(tokio::time::sleep(UPKEEP)).await.is_some() {
            metrics.run_upkeep();
        }
    });
    axum::serve(listener, router(facts)).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

fn router(facts: Facts) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(facts)
}

async fn livez(State(facts): State<Facts>) -> Response {
    let age = facts.heartbeat.age();
    if age < STUCK {
        (StatusCode::OK, "ok\n").into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("the engine has not gone round for {} s\n", age.as_secs()))
            .into_response()
    }
}

async fn readyz(State(facts): State<Facts>) -> Response {
    let reasons = facts.readiness.reasons();
    if reasons.is_empty() {
        (StatusCode::OK, "ok\n").into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", reasons.join("\n"))).into_response()
    }
}

async fn metrics(State(facts): State<Facts>) -> Response {
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], facts.metrics.render()).into_response()
}
