//! What is answered when something is wrong: `application/problem+json` (RFC 9457).

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use crate::tokens::Refused;

/// When a client may try again what cannot be done now, in seconds.
const RETRY_AFTER: &str = "1";

/// One answer.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    /// Of the answer.
    pub(super) status: StatusCode,
    name: &'static str,
    title: &'static str,
    detail: String,
    more: Map<String, Value>,
    /// Its name in small letters.
    header: Option<(&'static str, &'static str)>,
}

/// What is wrong at one place of a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// RFC 6901; empty for the body as a whole.
    pub(super) pointer: String,
    /// In words.
    pub(super) detail: String,
}

impl Problem {
    fn new(status: StatusCode, name: &'static str, title: &'static str, detail: impl Into<String>) -> Self {
        Self { status, name, title, detail: detail.into(), more: Map::new(), header: None }
    }

    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    /// All that is wrong with a body.
    pub(super) fn invalid_body(faults: &[Fault]) -> Self {
        let told = |fault: &Fault| match fault.pointer.strip_prefix('/') {
            Some(member) => format!("{member}: {}", fault.detail),
            None => fault.detail.clone(),
        };
        let detail = faults.iter().map(told).collect::<Vec<_>>().join("; ");
        let mut problem = Self::new(StatusCode::BAD_REQUEST, "invalid-body", "The body cannot be used", detail);
        let errors = faults.iter().map(|fault| json!({ "pointer": fault.pointer, "detail": fault.detail })).collect();
        problem.more.insert("errors".to_owned(), errors);
        problem
    }

    pub(super) fn invalid_query(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid-query", "The query cannot be used", detail)
    }

    pub(super) fn without_token() -> Self {
        let detail = "Send one of the tokens of [intake] token_file: Authorization: Bearer TOKEN.";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "A token is needed", detail)
            .header("www-authenticate", "Bearer realm=\"outbox-relay\"")
    }

    pub(super) fn with_wrong_token() -> Self {
        let detail = "The token is none of [intake] token_file, or no longer.";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "The token is not known", detail)
            .header("www-authenticate", "Bearer realm=\"outbox-relay\", error=\"invalid_token\"")
    }

    pub(super) fn no_such_path() -> Self {
        let detail = "GET /openapi.json describes what is there.";
        Self::new(StatusCode::NOT_FOUND, "not-found", "There is nothing here", detail)
    }

    pub(super) fn no_such_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no-such-request", "There is no such request", detail)
    }

    pub(super) fn method_not_allowed() -> Self {
        let detail = "The header Allow names what can be done here.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "This cannot be done here", detail)
    }

    pub(super) fn slow_body() -> Self {
        let detail = "The body did not arrive in time; nothing was recorded.";
        Self::new(StatusCode::REQUEST_TIMEOUT, "slow-body", "The body came too slowly", detail)
    }

    pub(super) fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "another-body", "The request exists with another body", detail)
    }

    pub(super) fn unreadable_body() -> Self {
        let detail = "It ended early, or its chunks are not as HTTP has them; nothing was recorded.";
        Self::new(StatusCode::BAD_REQUEST, "unreadable-body", "The body cannot be read", detail)
    }

    pub(super) fn too_large(limit: usize) -> Self {
        let detail = format!("A body may have {limit} bytes.");
        let mut problem = Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "The body is too large", detail);
        problem.more.insert("limit_bytes".to_owned(), limit.into());
        problem
    }

    pub(super) fn url_too_long() -> Self {
        Self::new(StatusCode::URI_TOO_LONG, "url-too-long", "The URL is too long", "Path and query may have 4 KiB.")
    }

    pub(super) fn headers_too_large() -> Self {
        let (status, detail) = (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "All headers together may have 16 KiB.");
        Self::new(status, "headers-too-large", "The headers are too large", detail)
    }

    pub(super) fn media_type() -> Self {
        let (status, detail) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, "Send Content-Type: application/json.");
        Self::new(status, "media-type", "The body must be JSON", detail)
    }

    pub(super) fn unknown_template(detail: impl Into<String>) -> Self {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        Self::new(status, "unknown-template", "The template is not known", detail)
    }

    /// It was not done, and can be retried.
    pub(super) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "It cannot be done now", detail)
            .header("retry-after", RETRY_AFTER)
    }

    /// It was done or not.
    pub(super) fn outcome_unknown() -> Self {
        let detail = "The request may have been recorded or not. Send the same again with the same dedupe_key or request_id: \
                      that makes no second one. Without either, it could.";
        Self::new(StatusCode::GATEWAY_TIMEOUT, "outcome-unknown", "It is not known whether it was recorded", detail)
            .header("retry-after", RETRY_AFTER)
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unreadable => Self::unavailable("The tokens cannot be read."),
            Refused::Missing => Self::without_token(),
            Refused::Wrong => Self::with_wrong_token(),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut document = Map::new();
        document.insert("type".to_owned(), format!("/problems/{}", self.name).into());
        document.insert("title".to_owned(), self.title.into());
        document.insert("status".to_owned(), self.status.as_u16().into());
        document.insert("detail".to_owned(), self.detail.into());
        document.extend(self.more);
        let body = Value::Object(document).to_string();
        let mut response = (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        response
    }
}
