//! The paths and their answers. Everything else is 404, and 405 where only the method is wrong.

use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::State;
use crate::metrics::exporter::CONTENT_TYPE;

/// The longest path and query; the routes need ten bytes.
const URL_LIMIT: usize = 1 << 10;
/// The most bytes of header names and values.
const HEADER_LIMIT: usize = 16 << 10;

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

async fn metrics(Shared(state): Shared<State>) -> Response {
    ([(header::CONTENT_TYPE, CONTENT_TYPE)], state.exporter.render()).into_response()
}

async fn limits(request: Request, next: Next) -> Response {
    let url = request.uri().path_and_query().map_or(0, |url| url.as_str().len());
    if url > URL_LIMIT {
        return StatusCode::URI_TOO_LONG.into_response();
    }
    let headers: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if headers > HEADER_LIMIT {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response();
    }
    next.run(request).await
}
