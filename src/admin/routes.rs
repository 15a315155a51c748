//! The paths and their answers. Everything else is 404, and 405 where only the method is wrong.

use std::net::IpAddr;

use axum::Router;
use axum::extract::{Request, State as Shared};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::sync::Semaphore;

use super::{State, live, page};
use crate::listener::limits;
use crate::metrics::exporter::CONTENT_TYPE;
use crate::tokens::Refused;

/// Nothing but the page's own style and script is loaded, nothing is sent anywhere else, and no page may frame it.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

pub(super) fn router(state: State) -> Router {
    let asks = |router: Router<State>| router.route_layer(middleware::from_fn_with_state(state.clone(), admitted));
    let metrics = Router::new().route("/metrics", get(metrics));
    let metrics = if state.token_for_metrics { asks(metrics) } else { metrics };
    let page = match &state.page {
        None => Router::new(),
        Some(_) => asks(
            Router::new()
                .route("/", get(status_page))
                .route("/events", get(events))
                .route("/page.css", get(async || ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], page::STYLE)))
                .route(
                    "/page.js",
                    get(async || ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], page::SCRIPT)),
                )
                .route_layer(middleware::map_response(guarded)),
        ),
    };
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .merge(metrics)
        .merge(page)
        .layer(middleware::from_fn(limits))
        .with_state(state)
}

/// Lets a request pass that has a token, where one is configured. A browser is told to ask for it.
async fn admitted(Shared(state): Shared<State>, request: Request, next: Next) -> Response {
    let refused = match state.tokens.as_ref().map(|tokens| tokens.admit_browser(request.headers())) {
        None if !names_this_machine(request.headers()) => {
            let told = "without [admin] token_file this page is shown under an IP address or localhost only\n";
            return guarded((StatusCode::FORBIDDEN, told).into_response()).await;
        }
        None | Some(Ok(())) => return next.run(request).await,
        Some(Err(refused)) => refused,
    };
    let (status, told) = match refused {
        Refused::Unreadable => (StatusCode::SERVICE_UNAVAILABLE, "the tokens cannot be read: see [admin] token_file\n"),
        Refused::Missing | Refused::Wrong => (
            StatusCode::UNAUTHORIZED,
            "a token of [admin] token_file is needed: as the password, with any user, or Authorization: Bearer TOKEN\n",
        ),
    };
    let mut response = guarded((status, told).into_response()).await;
    if status == StatusCode::UNAUTHORIZED {
        let asks = HeaderValue::from_static("Basic realm=\"outbox-relay\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, asks);
    }
    response
}

/// Whether a browser that sends this has asked for an address, and not for a name: a page of another site can make a name of its own
/// lead here, and then read what is answered.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(header::HOST) else { return true };
    let Some(authority) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else { return false };
    let name = authority.host().trim_matches(['[', ']']);
    name.parse::<IpAddr>().is_ok() || name.eq_ignore_ascii_case("localhost")
}

async fn guarded(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

async fn status_page(Shared(state): Shared<State>) -> Response {
    let Some(page) = &state.page else { return StatusCode::NOT_FOUND.into_response() };
    let html = page.shown(&state.heartbeat, &state.readiness).await.html;
    ([(header::CONTENT_TYPE, "text/html; charset=utf-8")], html).into_response()
}

/// Says when the page shows something else.
async fn events(Shared(state): Shared<State>) -> Response {
    let Some(page) = &state.page else { return StatusCode::NOT_FOUND.into_response() };
    match live::open(page, &state).await {
        Ok(events) => ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response(),
        Err(refused) => (StatusCode::SERVICE_UNAVAILABLE, refused.told()).into_response(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_localhost_are_this_machine() {
        let asked = |host: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().expect("a value"));
            names_this_machine(&headers)
        };
        for host in ["127.0.0.1:9464", "10.1.2.3", "[::1]:9464", "[::1]", "localhost:9464", "LOCALHOST"] {
            assert!(asked(host), "{host}");
        }
        for host in ["evil.example", "evil.example:9464", "localhost.evil.example", "127.0.0.1.evil.example:9464", ""] {
            assert!(!asked(host), "{host}");
        }
        assert!(names_this_machine(&HeaderMap::new()));
    }
}
