//! The paths and their answers. Everything else is 404, and 405 where only the method is wrong.

use axum::Router;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

use super::State;
use crate::listener::limits;
use crate::metrics::exporter::CONTENT_TYPE;

pub(super) fn router(state: State) -> Router {
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .layer(middleware::from_fn(limits))
        .with_state(state)
}

/// Whether the engine moves; never whether PostgreSQL or a receiver can be reached.
async fn livez(Shared(state): Shared<State>) -> Response {
    if state.heartbeat.is_alive() {
        return "alive\n".into_response();
    }
    let silent = format!("the engine has not moved for {} s\n", state.heartbeat.age().as_secs());
    (StatusCode::SERVICE_UNAVAILABLE, silent).into_response()
}

/// Whether the start is complete; what is missing, one reason a line.
async fn readyz(Shared(state): Shared<State>) -> Response {
    let missing = state.readiness.missing();
    if missing.is_empty() {
        return "ready\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, missing.join("\n") + "\n").into_response()
}

/// One at a time: many at once would keep a probe waiting until all of them are rendered.
async fn metrics(Shared(state): Shared<State>) -> Response {
    static TURN: Semaphore = Semaphore::const_new(1);
    let _turn = TURN.acquire().await;
    // What was asked meanwhile goes first.
    tokio::task::yield_now().await;
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], state.exporter.render()).into_response()
}
