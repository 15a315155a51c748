//! The paths and their answers. Whatever is wrong is answered as a problem; the order of looking is token, type, body,
//! ledger, so that who has no token learns nothing.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::TryStreamExt as _;
use tokio::time::{Instant, timeout_at};

use super::call::{self, Call};
use super::ledger::{Enqueued, WantedRequest};
use super::problem::Problem;
use super::{Intake, OPENAPI};
use crate::listener;
use crate::metrics::intake::IntakeResult;

pub(super) fn router(intake: Arc<Intake>) -> Router {
    Router::new()
        .route("/v1/requests", get(find).post(enqueue))
        .route("/v1/requests/{request_id}", get(show))
        .route("/openapi.json", get(openapi))
        .layer(middleware::from_fn(listener::limits))
        .layer(middleware::from_fn(problems))
        .with_state(intake)
}

/// Gives the answers of the layers below their documents.
async fn problems(request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    let problem = match answer.status() {
        _ if answer.headers().contains_key(header::CONTENT_TYPE) => return answer,
        StatusCode::NOT_FOUND => Problem::no_such_path(),
        StatusCode::METHOD_NOT_ALLOWED => Problem::method_not_allowed(),
        StatusCode::URI_TOO_LONG => Problem::url_too_long(),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => Problem::headers_too_large(),
        _ => return answer,
    };
    let mut response = problem.into_response();
    if let Some(allow) = answer.headers().get(header::ALLOW) {
        response.headers_mut().insert(header::ALLOW, allow.clone());
    }
    response
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

async fn enqueue(State(intake): State<Arc<Intake>>, request: Request) -> Response {
    let begun = Instant::now();
    let metrics = intake.metrics.clone();
    let answered = ask(intake, request, begun).await;
    let result = match &answered {
        Ok(enqueued) if enqueued.repeated => IntakeResult::Repeated,
        Ok(_) => IntakeResult::Accepted,
        Err(problem) if problem.status.is_server_error() => IntakeResult::Failed,
        Err(_) => IntakeResult::Refused,
    };
    metrics.answered(result, begun.elapsed());
    match answered {
        Ok(enqueued) => accepted(&enqueued),
        Err(problem) => problem.into_response(),
    }
}

fn accepted(enqueued: &Enqueued) -> Response {
    let Enqueued { request_id, status, already_sent, .. } = enqueued;
    let body = serde_json::json!({ "request_id": request_id, "status": status, "already_sent": already_sent });
    let code = if *already_sent { StatusCode::OK } else { StatusCode::ACCEPTED };
    let location = format!("/v1/requests/{request_id}");
    let headers = [(header::CONTENT_TYPE, "application/json".to_owned()), (header::LOCATION, location)];
    (code, headers, body.to_string()).into_response()
}

async fn ask(intake: Arc<Intake>, request: Request, begun: Instant) -> Result<Enqueued, Problem> {
    let deadline = begun + intake.timeout;
    intake.tokens.admit(request.headers())?;
    if !is_json(request.headers()) {
        return Err(Problem::media_type());
    }
    let bytes = read(request, intake.body_limit, deadline).await?;
    let call = Call::parse(&bytes).map_err(|faults| Problem::invalid_body(&faults))?;
    // A task of its own: a client that goes away must not cost the connection in whose statement its request stands.
    let asked = tokio::spawn(async move { intake.ledger.enqueue(&call, deadline).await });
    asked.await.unwrap_or_else(|_| Err(Problem::outcome_unknown()))
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(|value| value.to_str()) else { return false };
    value.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

/// The body, of which nothing is read when its length is known to be too large.
async fn read(request: Request, limit: usize, deadline: Instant) -> Result<Vec<u8>, Problem> {
    let length =
        request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|length| length > limit as u64) {
        return Err(Problem::too_large(limit));
    }
    timeout_at(deadline, collect(request.into_body(), limit)).await.unwrap_or_else(|_| Err(Problem::slow_body()))
}

/// A body that is too large is told from one that is not framed as its headers say.
async fn collect(body: Body, limit: usize) -> Result<Vec<u8>, Problem> {
    let (mut chunks, mut bytes) = (body.into_data_stream(), Vec::new());
    while let Some(chunk) = chunks.try_next().await.map_err(|_| Problem::unreadable_body())? {
        if chunk.len() > limit - bytes.len() {
            return Err(Problem::too_large(limit));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

async fn show(State(intake): State<Arc<Intake>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let missing = || Problem::no_such_request("No request has this id; it may have been pruned.");
    if let Err(refused) = intake.tokens.admit(&headers) {
        return Problem::from(refused).into_response();
    }
    if !call::is_uuid(&id) {
        return missing().into_response();
    }
    standing(&intake, &WantedRequest::Id(id), missing()).await
}

async fn find(State(intake): State<Arc<Intake>>, RawQuery(query): RawQuery, headers: HeaderMap) -> Response {
    let admitted = intake.tokens.admit(&headers).map_err(Problem::from);
    let key = admitted.and_then(|()| dedupe_key(query.as_deref().unwrap_or_default()));
    match key {
        Ok(key) => {
            let missing = Problem::no_such_request("No request holds this dedupe_key; it may have been pruned.");
            standing(&intake, &WantedRequest::Key(key), missing).await
        }
        Err(problem) => problem.into_response(),
    }
}

async fn standing(intake: &Intake, wanted: &WantedRequest, missing: Problem) -> Response {
    match intake.ledger.find(wanted, Instant::now() + intake.timeout).await {
        Ok(Some(found)) => ([(header::CONTENT_TYPE, "application/json")], found.to_string()).into_response(),
        Ok(None) => missing.into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// The one parameter of the query.
fn dedupe_key(query: &str) -> Result<String, Problem> {
    let wrong = || Problem::invalid_query("Write ?dedupe_key=… once, percent-encoded, and nothing else.");
    let (name, value) = query.split_once('=').ok_or_else(wrong)?;
    if name != "dedupe_key" || value.contains('&') {
        return Err(wrong());
    }
    // In a query a blank may be a plus.
    let value = value.replace('+', " ");
    let key = percent_encoding::percent_decode_str(&value).decode_utf8().map_err(|_| wrong())?;
    match call::wrong_key(&key) {
        None => Ok(key.into_owned()),
        Some(detail) => Err(Problem::invalid_query(format!("dedupe_key {detail}."))),
    }
}
